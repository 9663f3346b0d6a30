package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// firedShort and firedLong are how many tasks are due per second, firedTrio with three nodes of NATS, which share the machine with all else.
	firedShort, firedLong, firedTrio = 300, 5000, 500
	// firesAfter is when the first one is due: by then all of them wait in the timer stores.
	firesAfter = 25 * time.Second
	// firedBatch is how many one request submits.
	firedBatch = 1000
	// timerPaused is how long a timer process is stopped.
	timerPaused = 10 * time.Second
	// firedWithin bounds the time from the last fault until all tasks have ended: an attempt that is lost takes shortAttempt.
	firedWithin = 3 * time.Minute
)

// firedLog counts how often the log of history took each task from the timer.
type firedLog struct {
	js jetstream.JetStream

	mu    sync.Mutex
	times map[ids.TaskID]int
}

// followFired reads the logs of all partitions until the test ends.
func followFired(t *testing.T, c *cluster.Cluster) *firedLog {
	t.Helper()
	js, err := jetstream.New(c.Inside(nats.MaxReconnects(-1)))
	testkit.NoError(t, err)
	f := &firedLog{js: js, times: map[ids.TaskID]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	for p := 0; ; p++ {
		_, err := js.Stream(ctx, topology.HistoryStream(p))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			break
		}
		testkit.NoError(t, err)
		following.Go(func() { f.follow(ctx, p) })
	}
	t.Cleanup(func() { cancel(); following.Wait() })
	return f
}

// follow reads one log, and begins again behind the last message when its consumer ends.
func (f *firedLog) follow(ctx context.Context, p int) {
	next := uint64(1)
	for ctx.Err() == nil {
		consumer, err := f.js.OrderedConsumer(ctx, topology.HistoryStream(p), jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{topology.SubmitAny(p)},
			DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
		})
		if err == nil {
			next = f.readOn(ctx, consumer, next)
		}
		wait(ctx, time.Second)
	}
}

func (f *firedLog) readOn(ctx context.Context, consumer jetstream.Consumer, next uint64) uint64 {
	messages, err := consumer.Messages()
	if err != nil {
		return next
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return next
		}
		meta, err := msg.Metadata()
		if err != nil || meta.Sequence.Stream < next {
			continue
		}
		next = meta.Sequence.Stream + 1
		f.take(msg.Data())
	}
}

// take counts the tasks of a message that come from the timer: they have waited there.
func (f *firedLog) take(data []byte) {
	var batch logv1.Batch
	if batch.UnmarshalVT(data) != nil {
		return // its tasks would be missing, and so be found
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range batch.Tasks {
		if r.Domain == domain && r.Parkings == 1 {
			f.times[ids.TaskID(r.Id)]++
		}
	}
}

// firing is a load of tasks that are due one after the other.
type firing struct {
	t      *testing.T
	client *yard.Client
	due    []time.Time
	ids    []string

	mu    sync.Mutex
	early []string
}

// storeWaiting stores tasks that are due at a rate, for as long as the faults go on.
func storeWaiting(t *testing.T, c *cluster.Cluster, rate int, lasts time.Duration) *firing {
	t.Helper()
	f := &firing{t: t, client: c.Client(domain)}
	define(t, c, f.client, yard.TaskType{Name: string(quick), StartToClose: shortAttempt, Retry: &yard.RetryPolicy{MaxAttempts: 100}})
	first := time.Now().Add(firesAfter)
	for i := range rate * int(lasts/time.Second) {
		f.due = append(f.due, first.Add(time.Duration(i)*time.Second/time.Duration(rate)).Truncate(time.Millisecond))
	}
	for from := 0; from < len(f.due); from += firedBatch {
		request := make([]yard.Task, min(firedBatch, len(f.due)-from))
		for i := range request {
			request[i] = yard.Task{Type: string(quick), Tasklist: tasklist, RunAt: f.due[from+i], Payload: from + i}
		}
		stored, err := f.client.SubmitMany(t.Context(), request)
		testkit.NoError(t, err)
		f.ids = append(f.ids, stored...)
	}
	if late := time.Until(first); late < 0 {
		t.Fatalf("storing %d tasks took %v longer than %v", len(f.due), -late, firesAfter)
	}
	wait(t.Context(), time.Until(first))
	return f
}

// work runs a worker until the test ends. It notes the tasks that start before they are due.
func (f *firing) work() {
	working, stop := context.WithCancel(context.Background())
	w := yard.NewWorker(f.client, tasklist, yard.WithConcurrency(1000))
	yard.Handle(w, string(quick), func(_ context.Context, i int) (string, error) {
		if early := time.Until(f.due[i]); early > 0 {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.early = append(f.early, fmt.Sprintf("task %s started %v before it was due", f.ids[i], early))
		}
		return "", nil
	})
	var running sync.WaitGroup
	running.Go(func() { testkit.Check(f.t, w.Run(working)) })
	f.t.Cleanup(func() { stop(); running.Wait() })
}

// ended waits until the archive has all tasks, and reports what is wrong with them.
func (f *firing) ended(a *archive, log *firedLog) (offences []string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), firedWithin)
	defer cancel()
	for a.read(ctx) != nil || len(a.tasks) < len(f.ids) && ctx.Err() == nil {
		wait(ctx, archiveEvery)
	}
	states := map[string]yardv1.TaskState{}
	for _, c := range a.copies {
		id, state := ids.TaskID(c.Record.Id).String(), yardv1.TaskState(c.Record.State)
		if before, ok := states[id]; ok && before != state {
			offences = append(offences, fmt.Sprintf("task %s is %v and %v in the archive", id, before, state))
		}
		states[id] = state
	}
	log.mu.Lock()
	defer log.mu.Unlock()
	for _, id := range f.ids {
		parsed, err := ids.ParseTaskID(id)
		testkit.NoError(f.t, err)
		if n, state := log.times[parsed], states[id]; n != 1 || state != yardv1.TaskState_TASK_STATE_COMPLETED {
			offences = append(offences, fmt.Sprintf("task %s fired %d times and is %v in the archive", id, n, state))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return append(offences, f.early...)
}

// TestI10_TimersKilledAndPausedUnderLoad: tasks that are due at a rate fire exactly once each, and none before its time, whatever of the timer, the
// other services and NATS dies or stops meanwhile. The log of history and the archive are what it is checked by.
func TestI10_TimersKilledAndPausedUnderLoad(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	s := settingsOf(t)
	rate := number(t, rateEnv, firedLong)
	if !s.long {
		t.Parallel()
		rate = number(t, rateEnv, firedShort)
	}
	fireThrough(t, s, rate, disturbFiring)
}

// TestI10_NATSNodesLostWhileTasksFire is the same with three nodes of NATS, of which one is killed or paused again and again, and timer processes die
// meanwhile.
func TestI10_NATSNodesLostWhileTasksFire(t *testing.T) {
	longOnly(t)
	fireThrough(t, settingsOf(t), number(t, rateEnv, firedTrio), disturbNodesAndFiring, cluster.WithNATSNodes(trio))
}

// fireThrough has tasks fire at a rate while a cluster is disturbed.
func fireThrough(t *testing.T, s settings, rate int, disturb func(*testing.T, *cluster.Cluster, *rand.Rand, time.Duration) (faults int), opts ...cluster.Option) {
	t.Helper()
	for n := range s.rounds {
		t.Run(fmt.Sprintf("round %d", n+1), func(t *testing.T) {
			seed := testkit.Seed(t)
			c := cluster.Start(t, binaries, instances, opts...)
			a, log := openArchive(t, c), followFired(t, c)
			f := storeWaiting(t, c, rate, s.lasts)
			f.work()
			faults := disturb(t, c, seed, s.lasts)
			offences := f.ended(a, log)
			for _, o := range offences[:min(len(offences), offencesMax)] {
				t.Error(o)
			}
			t.Logf("%d tasks, %d faults, %d offences", len(f.ids), faults, len(offences))
			c.CheckAll()
		})
	}
}

// disturbNodesAndFiring kills or pauses a node of NATS every 11 s, and has a timer process die while it is away, and returns how many it disturbed.
func disturbNodesAndFiring(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) (faults int) {
	t.Helper()
	for began := time.Now(); time.Since(began)+nodeEvery <= lasts; faults++ {
		next := time.Now().Add(nodeEvery)
		node, i := seed.IntN(trio), seed.IntN(c.Instances(cluster.Timer))
		end, back := c.Kill, func() { c.Restart(cluster.NATS, node); c.AwaitProcess(cluster.NATS, node) }
		if seed.IntN(2) == 0 {
			end, back = c.Pause, func() { c.Resume(cluster.NATS, node) }
		}
		t.Logf("%5.1f s: nats-%d is lost", time.Since(began).Seconds(), node)
		end(cluster.NATS, node)
		wait(t.Context(), upTo(seed, nodeAway))
		if seed.IntN(2) == 0 {
			t.Logf("%5.1f s: kill timer-%d", time.Since(began).Seconds(), i)
			c.Kill(cluster.Timer, i)
			c.Restart(cluster.Timer, i)
			faults++
		}
		back()
		wait(t.Context(), time.Until(next))
	}
	c.AwaitReplicas()
	c.AwaitReady()
	return faults
}

// disturbFiring kills or pauses a timer process, and now and then something else, and returns how often.
func disturbFiring(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) (faults int) {
	t.Helper()
	for end := time.Now().Add(lasts - calm); time.Now().Before(end); faults++ {
		i := seed.IntN(c.Instances(cluster.Timer))
		switch seed.IntN(4) {
		case 0:
			t.Logf("timer-%d is paused", i)
			c.Pause(cluster.Timer, i)
			wait(t.Context(), timerPaused)
			c.Resume(cluster.Timer, i)
		case 1:
			killSomething(t, c, seed)
		default:
			t.Logf("kill timer-%d", i)
			c.Kill(cluster.Timer, i)
			wait(t.Context(), upTo(seed, awayMax))
			c.Restart(cluster.Timer, i)
		}
		wait(t.Context(), upTo(seed, peaceMax))
	}
	c.AwaitReady()
	return faults
}
