package chaos_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// The levels: of the domain, of what is paid, and of one partner; and a rate.
	allAtOnce, paidAtOnce, partnerAtOnce = 30, 15, 3
	callsPerSecond, callsBurst           = 40, 5
	// callsLate is by how much the log may date a start later than the tables let it, while processes are killed.
	callsLate = 2 * time.Second
	// matchingNodes serve the shards.
	matchingNodes = 4
)

// levels counts what runs, in the handlers: the engine has no part in it.
type levels struct {
	t                *testing.T
	cluster          *cluster.Cluster
	client           *yard.Client
	all              gauge
	paid             gauge
	partner          gauge
	done, died       atomic.Int64
	mu               sync.Mutex
	submitted, calls []string
}

// gauge is how many run, and the most that ever did.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) up() {
	now := g.now.Add(1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
}

func (g *gauge) down() { g.now.Add(-1) }

// of are the gauges that a type counts in.
func (l *levels) of(typ string) []*gauge {
	switch typ {
	case "payout":
		return []*gauge{&l.all, &l.paid}
	case "partner":
		return []*gauge{&l.all, &l.paid, &l.partner}
	}
	return []*gauge{&l.all}
}

// TestI8_LevelsHoldWhileThingsAreKilled: four matching processes, a tasklist of five partitions, limits of 30, 15 and 3 and a rate, while matching,
// workers and Redis are killed at random: no more than those ever run at once, as counted by the handlers, no more start in any time than
// the rate and its burst give, as the log dates them, and each task completes. The long form takes YARD_CHAOS_LASTS.
func TestI8_LevelsHoldWhileThingsAreKilled(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	s := settingsOf(t)
	if !s.long {
		t.Parallel()
	}
	seed := testkit.Seed(t)
	c := cluster.Start(t, binaries, instances)
	for c.Instances(cluster.Matching) < matchingNodes {
		c.Restart(cluster.Matching, c.Add(binaries, cluster.Matching))
	}
	c.AwaitReady()
	l := &levels{t: t, cluster: c, client: c.Client(domain)}
	l.define()
	producing, stopProducers := context.WithCancel(t.Context())
	var producers sync.WaitGroup
	for range 4 {
		dice := fork(seed)
		client := c.Client(domain)
		producers.Go(func() { l.produce(producing, client, dice) })
	}
	lost := l.disturb(seed, s.lasts)
	stopProducers()
	producers.Wait()
	c.AwaitReady()
	l.finish()
	l.checkRate(lost)
	for name, g := range map[string]struct {
		*gauge
		most int64
	}{"the domain": {&l.all, allAtOnce}, "what is paid": {&l.paid, paidAtOnce}, "the partner": {&l.partner, partnerAtOnce}} {
		if most := g.gauge.most.Load(); most > g.most || most < g.most*2/3 {
			t.Errorf("of %s %d attempts ran at once, %d may", name, most, g.most)
		}
	}
	c.CheckAll()
	t.Logf("%d tasks completed once each, %d attempts died with their worker; at most %d, %d, %d of %d, %d, %d at once; Redis was lost %d times",
		l.done.Load(), l.died.Load(), l.all.most.Load(), l.paid.most.Load(), l.partner.most.Load(), allAtOnce, paidAtOnce, partnerAtOnce, len(lost))
}

func (l *levels) define() {
	l.t.Helper()
	defineLimit(l.t, l.cluster, l.client, allAtOnce, yard.Limit{Name: "paid", MaxConcurrency: paidAtOnce})
	lease := func(t yard.TaskType) yard.TaskType {
		t.StartToClose, t.HeartbeatTimeout = shortLeases.startToClose, shortLeases.heartbeat
		t.Retry = &yard.RetryPolicy{MaxAttempts: 50, InitialInterval: 50 * time.Millisecond, MaxInterval: 200 * time.Millisecond}
		return t
	}
	define(l.t, l.cluster, l.client, lease(yard.TaskType{Name: "free"}), lease(yard.TaskType{Name: "payout", Limits: []string{"paid"}}),
		lease(yard.TaskType{Name: "partner", Limits: []string{"paid"}, MaxConcurrency: partnerAtOnce}),
		lease(yard.TaskType{Name: "call", Rate: yard.Rate{Tasks: callsPerSecond, Burst: callsBurst}}))
	spread(l.t.Context(), l.t, l.client)
	// All shards know of the limits within a second.
	wait(l.t.Context(), 2*time.Second)
}

// produce submits about as much as the limits let run.
func (l *levels) produce(ctx context.Context, client *yard.Client, dice *rand.Rand) {
	for ctx.Err() == nil {
		var tasks []yard.Task
		for range 10 {
			typ := [...]string{"free", "free", "free", "free", "free", "payout", "payout", "payout", "payout", "partner", "call", "call"}[dice.IntN(12)]
			tasks = append(tasks, yard.Task{Tasklist: tasklist, Type: typ, Priority: 1 + dice.IntN(5), Payload: typ})
		}
		submitting, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTimeout)
		ids, err := client.SubmitMany(submitting, tasks)
		cancel()
		if err != nil {
			l.t.Errorf("submit: %v", err)
			return
		}
		l.mu.Lock()
		l.submitted = append(l.submitted, ids...)
		for i := range ids {
			if tasks[i].Type == "call" {
				l.calls = append(l.calls, ids[i])
			}
		}
		l.mu.Unlock()
		wait(ctx, time.Duration(100+dice.IntN(200))*time.Millisecond)
	}
}

// worker runs until it is killed: its handlers stop at once, and it says nothing more.
func (l *levels) worker(name string, dice *rand.Rand) (kill func()) {
	dead := make(chan struct{})
	client := l.cluster.Client(domain)
	k := yard.NewWorker(client, tasklist, yard.WithIdentity(name), yard.WithConcurrency(20),
		yard.WithPollWait(2*time.Second), yard.WithLogger(slog.New(slog.DiscardHandler)))
	var mu sync.Mutex
	for _, typ := range []string{"free", "payout", "partner", "call"} {
		k.HandleFunc(typ, func(ctx context.Context, _ *yard.Attempt) (yard.Payload, error) {
			mu.Lock()
			takes := time.Duration(20+dice.IntN(60)) * time.Millisecond
			mu.Unlock()
			for _, g := range l.of(typ) {
				g.up()
			}
			timer := time.NewTimer(takes)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			case <-dead:
			}
			for _, g := range l.of(typ) {
				g.down()
			}
			select {
			case <-dead:
				l.died.Add(1)
				client.Close() // its outcome goes nowhere
			default:
				l.done.Add(1)
			}
			return yard.Payload{}, context.Cause(ctx)
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = k.Run(ctx) // its connection may be gone
	}()
	return sync.OnceFunc(func() {
		close(dead)
		client.Close()
		cancel()
		<-ended
	})
}

// disturb kills matching, workers and Redis for a time, and returns when Redis had lost its memory, Unix ms.
func (l *levels) disturb(seed *rand.Rand, lasts time.Duration) (lost []int64) {
	c, n := l.cluster, 0
	var kill [4]func()
	hire := func(i int) {
		n++
		kill[i] = l.worker(fmt.Sprintf("worker-%d", n), fork(seed))
	}
	for i := range kill {
		hire(i)
	}
	l.t.Cleanup(func() {
		for _, k := range kill {
			k()
		}
	})
	for end := time.Now().Add(lasts); time.Now().Before(end); wait(l.t.Context(), upTo(seed, peaceMax)) {
		switch dice := seed.IntN(8); {
		case dice == 0:
			l.t.Log("kill redis-server")
			c.Redis.Stop()
			wait(l.t.Context(), upTo(seed, serverAwayMax))
			c.Redis.Restart(l.t)
			lost = append(lost, time.Now().UnixMilli())
		case dice == 1:
			l.t.Log("empty redis-server")
			c.Redis.Flush(l.t)
			lost = append(lost, time.Now().UnixMilli())
		case dice < 5:
			i := seed.IntN(len(kill))
			l.t.Logf("kill worker %d", i)
			kill[i]()
			hire(i)
		default:
			i := seed.IntN(c.Instances(cluster.Matching))
			l.t.Logf("kill matching-%d", i)
			c.Kill(cluster.Matching, i)
			wait(l.t.Context(), upTo(seed, awayMax))
			c.Restart(cluster.Matching, i)
		}
	}
	return lost
}

// finish waits until each task has completed, and no slot is in use.
func (l *levels) finish() {
	l.t.Helper()
	testkit.Eventually(l.t, 3*within, func() error { // slots of what died with a worker are held until its lease is over
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if d, err := l.client.DescribeTasklist(ctx, tasklist); err != nil || d.Ready+d.Running+d.Backoff > 0 {
			return fmt.Errorf("%d are ready, %d run, %d wait to be tried again: %v", d.Ready, d.Running, d.Backoff, err)
		}
		top, err := l.client.TopLimits(ctx, yard.TopOptions{})
		if err != nil {
			return err
		}
		for _, one := range top.Limits {
			if one.Running+one.SlotsInUse+one.UnexplainedSlots > 0 {
				return fmt.Errorf("%+v, and nothing runs", one)
			}
		}
		return nil
	})
	for _, id := range l.submitted {
		if task := l.get(id); task.State != yardv1.TaskState_TASK_STATE_COMPLETED {
			l.t.Errorf("task %s is %v: %v", id, task.State, task.Events)
			return
		}
	}
}

func (l *levels) get(id string) (task *yardv1.Task) {
	l.t.Helper()
	testkit.Eventually(l.t, within, func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		task, err = l.client.Wire().Get(ctx, id)
		return err
	})
	return task
}

// checkRate holds the starts against the rate: in no time more than it gives, a burst, and another one for each loss of Redis' memory.
func (l *levels) checkRate(lost []int64) {
	l.t.Helper()
	var starts []int64
	for _, id := range l.calls {
		for _, e := range l.get(id).Events {
			if e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED {
				starts = append(starts, e.AtMs)
			}
		}
	}
	slices.Sort(starts)
	for i := range starts {
		for j := i; j < len(starts); j++ {
			bursts := 1
			for _, at := range lost {
				if at >= starts[i]-callsLate.Milliseconds() && at <= starts[j]+callsLate.Milliseconds() {
					bursts++
				}
			}
			most := float64(callsBurst*bursts) + (float64(starts[j]-starts[i])/1000+callsLate.Seconds())*callsPerSecond + 1
			if float64(j-i+1) > most {
				l.t.Fatalf("%d calls started within %d ms, %.1f may", j-i+1, starts[j]-starts[i], most)
			}
		}
	}
	l.t.Logf("%d calls started, %d a second may", len(starts), callsPerSecond)
}
