package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/chaos/audit"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	plainType   = "plain"
	limitedType = "limited"
	pairedType  = "paired"
	// pairLimit is one that limitedType and pairedType share.
	pairLimit = "pair"
	// limitedSlots is the limit of limitedType, pairSlots of both together, allSlots of the domain.
	limitedSlots, pairSlots, allSlots = 30, 45, 300
	// fullRuns is how long attempts of both run, at most, to have the limits full most of the time.
	fullRuns = time.Second

	// parkedRetry is a wait that history does not keep in memory (10 s).
	parkedRetry = 10_500 * time.Millisecond
	// cancelTimeout bounds one request to cancel. It is the same as for an outcome.
	cancelTimeout = 20 * time.Second
	// endsWithin bounds the wait for one more task's end, longer than a parked retry
	// and an attempt that is lost; archiveEvery is how often the archive is read.
	endsWithin   = 25 * time.Second
	archiveEvery = 250 * time.Millisecond
	// submitEvery is the producer's beat.
	submitEvery = 10 * time.Millisecond
	// batchMax is the most tasks of one request.
	batchMax = 12

	pollers   = 8
	producers = 3
)

// wish is one task of the traffic: what is to happen to it, and its account.
type wish struct {
	account audit.Task
	task    yard.Task
	runs    time.Duration
	// fails is how many of its attempts fail first; the wait behind each is the
	// policy's, or this.
	fails int
	wait  time.Duration
	// cancelAfter its acceptance, if not negative; cancelRunning: in mid-attempt.
	cancelAfter   time.Duration
	cancelRunning bool
	// due: it is counted in the pace.
	due bool
}

// ready tells whether it can be handed out as soon as it is accepted, whatever comes.
func (w *wish) ready() bool {
	return w.task.Delay == 0 && w.cancelAfter < 0 && w.task.Type == plainType
}

// traffic is a mixed load with its own account of everything.
type traffic struct {
	t       *testing.T
	cluster *cluster.Cluster
	rate    int
	// fullLimit: the limit is full most of the time.
	fullLimit bool
	end       time.Time      // of the faults, about
	clients   []*yard.Client // one per connection

	producing, working         context.Context
	stopProducing, stopWorking context.CancelFunc
	// requests are submits and cancels under way, crew the pollers and their attempts.
	requests, crew sync.WaitGroup

	mu     sync.Mutex
	byKey  map[string]*wish
	ledger audit.Ledger
	done   int // completions that got OK
	pace   pace
}

// startTraffic sets the types up and lets everybody work until the test's end.
func startTraffic(t *testing.T, c *cluster.Cluster, s settings, seed *rand.Rand) *traffic {
	t.Helper()
	tr := &traffic{t: t, cluster: c, rate: s.rate, fullLimit: s.fullLimit, end: time.Now().Add(s.lasts), byKey: map[string]*wish{}, ledger: audit.Ledger{Limits: []audit.Limit{
		{Name: limitedType, Max: limitedSlots, Types: []string{limitedType}},
		{Name: pairLimit, Max: pairSlots, Types: []string{limitedType, pairedType}},
		{Name: "the domain", Max: allSlots},
	}}}
	for range pollers + producers {
		tr.clients = append(tr.clients, c.Client(domain))
	}
	tr.define(s)
	tr.producing, tr.stopProducing = context.WithCancel(context.Background())
	tr.working, tr.stopWorking = context.WithCancel(context.Background())
	t.Cleanup(tr.stop)
	for i := range pollers {
		p := &poller{traffic: tr, name: fmt.Sprintf("w%d", i), client: tr.clients[i], rand: fork(seed)}
		tr.crew.Go(p.run)
	}
	dice := fork(seed)
	tr.requests.Go(func() { tr.produce(dice) })
	return tr
}

// fork makes another source of randomness, for another goroutine.
func fork(seed *rand.Rand) *rand.Rand { return rand.New(rand.NewPCG(seed.Uint64(), seed.Uint64())) }

func (tr *traffic) define(s settings) {
	tr.t.Helper()
	types := []yard.TaskType{
		{Name: plainType},
		{Name: limitedType, MaxConcurrency: limitedSlots, Limits: []string{pairLimit}},
		{Name: pairedType, Limits: []string{pairLimit}},
	}
	for i := range types {
		types[i].StartToClose = s.attempt
		types[i].Retry = &yard.RetryPolicy{MaxAttempts: 30, InitialInterval: 50 * time.Millisecond, MaxInterval: 200 * time.Millisecond}
	}
	defineLimit(tr.t, tr.cluster, tr.clients[0], allSlots, yard.Limit{Name: pairLimit, MaxConcurrency: pairSlots})
	define(tr.t, tr.cluster, tr.clients[0], types...)
}

// stop ends everybody, the producers first.
func (tr *traffic) stop() {
	tr.stopProducing()
	tr.requests.Wait()
	tr.stopWorking()
	tr.crew.Wait()
}

// open is how many accepted tasks have no end in the archive. Those of which the
// submitter is unsure may end too and are not waited for.
func (tr *traffic) open(a *archive) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	n := 0
	for _, t := range tr.ledger.Tasks {
		if t.Fate == audit.Accepted && !a.tasks[t.ID] {
			n++
		}
	}
	return n
}

// awaitDone waits until completions of so many tasks have been confirmed.
func (tr *traffic) awaitDone(want int) {
	tr.t.Helper()
	testkit.Eventually(tr.t, within, func() error {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if tr.done < want {
			return fmt.Errorf("%d tasks are completed, want %d", tr.done, want)
		}
		return nil
	})
}

// finish stops the producers, waits until every accepted task has an end, or none
// has ended for long, stops the workers, and compares both accounts.
func (tr *traffic) finish(a *archive) audit.Report {
	tr.t.Helper()
	tr.stopProducing()
	tr.requests.Wait()
	ended := 0
	for moved := time.Now(); tr.open(a) > 0 && time.Since(moved) < endsWithin; wait(context.Background(), archiveEvery) {
		if tr.readArchive(a) == nil && len(a.tasks) > ended {
			ended, moved = len(a.tasks), time.Now()
		}
	}
	tr.stop()
	testkit.NoError(tr.t, tr.readArchive(a))
	return audit.Check(tr.ledger, a.copies)
}

// ask returns what the engine says of a task.
func (tr *traffic) ask(key string) string {
	ctx, cancel := context.WithTimeout(context.Background(), outcomeTry)
	defer cancel()
	task, err := tr.clients[0].Get(ctx, tr.byKey[key].account.ID)
	if err != nil {
		return fmt.Sprintf("%s: %v", key, err)
	}
	return fmt.Sprintf("%s: %v", key, task)
}

func (tr *traffic) readArchive(a *archive) error {
	ctx, cancel := context.WithTimeout(context.Background(), endsWithin)
	defer cancel()
	return a.read(ctx)
}

// produce submits at the rate, whatever becomes of the requests.
func (tr *traffic) produce(dice *rand.Rand) {
	began, made := time.Now(), 0
	for ; tr.producing.Err() == nil; wait(tr.producing, submitEvery) {
		for due := int(time.Since(began).Seconds() * float64(tr.rate)); made < due; {
			batch := make([]*wish, min(1+dice.IntN(batchMax), due-made))
			for i := range batch {
				batch[i] = tr.next(dice, made)
				made++
			}
			client := tr.clients[pollers+dice.IntN(producers)]
			tr.requests.Go(func() { tr.submit(client, batch) })
		}
	}
}

// submit brings one request to its end, and cancels what is to be cancelled.
func (tr *traffic) submit(client *yard.Client, batch []*wish) {
	ctx, cancel := context.WithTimeout(context.Background(), submitTimeout)
	defer cancel()
	tasks := make([]yard.Task, len(batch))
	tr.mu.Lock()
	for i, w := range batch {
		tasks[i] = w.task
		w.account.SentAt = time.Now()
		tr.byKey[w.account.Key] = w
		tr.ledger.Tasks = append(tr.ledger.Tasks, &w.account)
	}
	tr.mu.Unlock()
	ids, err := client.SubmitMany(ctx, tasks)
	now := time.Now()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for i, w := range batch {
		w.account.AnsweredAt = now
		switch {
		case i < len(ids):
			w.account.Fate, w.account.ID = audit.Accepted, ids[i]
			tr.pace.moved(ids[i], now, accepts)
			if w.ready() && len(w.account.Grants) == 0 {
				tr.pace.becameDue(ids[i], now)
				w.due = true
			}
		case fault.CodeOf(err) == fault.Unknown:
			w.account.Fate = audit.Unsure
		default:
			w.account.Fate = audit.Refused
		}
		if w.account.Fate == audit.Accepted && w.cancelAfter >= 0 {
			tr.requests.Go(func() {
				wait(context.Background(), w.cancelAfter)
				tr.cancel(client, w, w.account.ID)
			})
		}
	}
}

// cancel asks for the cancellation of a task.
func (tr *traffic) cancel(client *yard.Client, w *wish, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	sent := time.Now()
	verdicts, err := client.Wire().Cancel(ctx, &yardv1.CancelRequest{TaskIds: []string{id}, Reason: "by the traffic"})
	c := audit.Cancel{SentAt: sent, AnsweredAt: time.Now(), Code: string(fault.CodeOf(err))}
	if err == nil {
		c.Code, c.Running = verdicts[0].Code, verdicts[0].CancelRequested
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	w.account.Cancels = append(w.account.Cancels, c)
}

// next makes up a task.
func (tr *traffic) next(dice *rand.Rand, number int) *wish {
	upTo := func(d time.Duration) time.Duration { return time.Duration(dice.Int64N(int64(d))) }
	w := &wish{runs: upTo(30 * time.Millisecond), cancelAfter: -1}
	key := fmt.Sprintf("t%d", number)
	w.task = yard.Task{Type: plainType, Tasklist: tasklist, Priority: 1 + dice.IntN(5), Payload: key}
	attempts := 30
	asked := ""
	switch n := dice.IntN(100); {
	case n < 25:
		asked = "immediate"
	case n < 32:
		asked, w.runs = "slow", upTo(3*time.Second)
	case n < 46:
		asked, w.task.Delay = "delayed", 200*time.Millisecond+upTo(4800*time.Millisecond)
	case n < 57:
		asked, w.fails = "retried", 1+dice.IntN(3)
	case n < 65 && !tr.nearEnd():
		asked, w.fails, w.wait = "retried after a long wait", 1, parkedRetry
	case n < 70:
		asked, w.cancelAfter = "cancelled when ready", upTo(20*time.Millisecond)
	case n < 76:
		w.task.Delay = 200*time.Millisecond + upTo(4800*time.Millisecond)
		asked, w.cancelAfter = "cancelled when delayed or later", upTo(w.task.Delay+2*time.Second)
	case n < 80:
		asked, w.cancelRunning, w.runs = "cancelled when running", true, 100*time.Millisecond+upTo(2*time.Second)
		w.fails = dice.IntN(2)
	case n < 90:
		asked, w.task.Type = "of a limited type", []string{limitedType, pairedType}[dice.IntN(2)]
		if tr.fullLimit {
			w.runs = upTo(fullRuns)
		}
	default:
		asked, attempts = "tried once only", 1
		w.task.Retry = &yard.RetryPolicy{MaxAttempts: attempts}
		w.fails = dice.IntN(2)
	}
	if w.task.Delay > 0 {
		asked += fmt.Sprintf(", delay %v", w.task.Delay.Round(time.Millisecond))
	}
	if w.fails > 0 {
		asked += fmt.Sprintf(", fails %d times", w.fails)
	}
	w.account = audit.Task{Key: key, Type: w.task.Type, Asked: asked, MaxAttempts: attempts}
	return w
}

// nearEnd: a long wait would reach past the end of the faults.
func (tr *traffic) nearEnd() bool { return time.Until(tr.end) < parkedRetry }
