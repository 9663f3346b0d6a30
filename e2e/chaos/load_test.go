package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// kind is a task type of the load.
type kind string

const (
	quick  kind = "quick"  // milliseconds
	flaky  kind = "flaky"  // its first attempt fails
	doomed kind = "doomed" // every attempt fails; it ends dead
	slow   kind = "slow"   // longer than the heartbeat timeout
	capped kind = "capped" // limited to slotLimit at once
)

const (
	domain   = "chaos"
	tasklist = "work"
	// partitions are more than there are matching shards: some have two.
	partitions = 5

	slotLimit = 4
	slowFor   = 2500 * time.Millisecond
	delayMax  = 2 * time.Second

	// submitTimeout is how long a producer tries; longer than any outage in here.
	submitTimeout = 45 * time.Second
	// outcomeTimeout is the same for a worker of our own.
	outcomeTimeout = 30 * time.Second
)

// leases are those of all types.
type leases struct{ startToClose, heartbeat time.Duration }

var (
	// shortLeases bring an attempt back soon that was lost with a process.
	shortLeases = leases{startToClose: 10 * time.Second, heartbeat: 2 * time.Second}
	// longLeases are for a test in which no attempt is lost: only a worker that
	// cannot reach the system for long would break one.
	longLeases = leases{startToClose: time.Minute, heartbeat: 20 * time.Second}
)

// load is producers and workers at work.
type load struct {
	*ledger
	leases
	t       *testing.T
	cluster *cluster.Cluster
	client  *yard.Client

	stopProducers, stopWorkers context.CancelFunc
	producers, workers         sync.WaitGroup
	failures                   chan error
}

// startLoad sets the types up and lets everybody work until the test's end. With
// short leases some attempts are forgotten by their worker, as if it had died.
func startLoad(t *testing.T, c *cluster.Cluster, lease leases) *load {
	t.Helper()
	l := &load{ledger: newLedger(), leases: lease, t: t, cluster: c, client: c.Client(domain), failures: make(chan error, 16)}
	l.define()
	var producing, working context.Context
	producing, l.stopProducers = context.WithCancel(context.Background())
	working, l.stopWorkers = context.WithCancel(context.Background())
	t.Cleanup(l.stop)
	seed := testkit.Seed(t)
	for i, batch := range []int{1, 1, 20, 40} {
		p := &producer{load: l, name: fmt.Sprintf("p%d", i), batch: batch, client: c.Client(domain), rand: rand.New(rand.NewPCG(seed.Uint64(), 0))}
		l.producers.Go(func() { p.run(producing) })
	}
	for i := range 2 {
		w := l.worker(fmt.Sprintf("worker-%d", i))
		l.workers.Go(func() {
			if err := w.Run(working); err != nil {
				l.fail(err)
			}
		})
	}
	hand := &handWorker{load: l, client: c.Client(domain), rand: rand.New(rand.NewPCG(seed.Uint64(), 0))}
	l.workers.Go(func() { hand.run(working) })
	return l
}

// define makes the domain and its types.
func (l *load) define() {
	l.t.Helper()
	var types []yard.TaskType
	for _, k := range []kind{quick, flaky, doomed, slow, capped} {
		tt := yard.TaskType{
			Name: string(k), StartToClose: l.startToClose, HeartbeatTimeout: l.heartbeat,
			Retry: &yard.RetryPolicy{MaxAttempts: 20, InitialInterval: 100 * time.Millisecond, MaxInterval: 500 * time.Millisecond},
		}
		switch k {
		case doomed:
			tt.Retry.MaxAttempts = 2
		case capped:
			tt.MaxConcurrency = slotLimit
		}
		types = append(types, tt)
	}
	define(l.t, l.cluster, l.client, types...)
}

// define makes the domain and types of it. A frontend learns of a new domain a
// moment after the one that stored it.
func define(t *testing.T, c *cluster.Cluster, client *yard.Client, types ...yard.TaskType) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if _, err := c.Admin().GetDomain(ctx, domain); err != nil {
		testkit.NoError(t, testkit.Err(c.Admin().PutDomain(ctx, yard.Domain{Name: domain, Events: true, LateAfter: time.Second, StuckAfter: time.Second})))
	}
	for _, tt := range types {
		testkit.Eventually(t, within, func() error {
			_, err := client.PutType(ctx, tt)
			return err
		})
	}
	if settingsOf(t).long {
		spread(ctx, t, client)
	}
}

// spread gives the tasklist its partitions.
func spread(ctx context.Context, t *testing.T, client *yard.Client) {
	t.Helper()
	testkit.NoError(t, testkit.Err(client.PutTasklist(ctx, yard.Tasklist{Name: tasklist, Partitions: partitions})))
}

// defineLimit creates the domain, with a limit of its own, and one that types share.
func defineLimit(t *testing.T, c *cluster.Cluster, client *yard.Client, all int, shared yard.Limit) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(ctx, yard.Domain{Name: domain, MaxConcurrency: all})))
	testkit.Eventually(t, within, func() error {
		_, err := client.PutLimit(ctx, shared)
		return err
	})
}

// leaseEnd is until when an attempt with this deadline is certainly current: the
// engine granted it startToClose before.
func (s leases) leaseEnd(deadline time.Time) time.Time {
	return deadline.Add(s.heartbeat - s.startToClose)
}

func (l *load) fail(err error) {
	select {
	case l.failures <- err:
	default: // the first ones are enough
	}
}

// stop ends everybody, the producers first.
func (l *load) stop() {
	l.stopProducers()
	l.producers.Wait()
	l.stopWorkers()
	l.workers.Wait()
}

// await waits until handlers are done with n more tasks of some kinds.
func (l *load) await(n int, of ...kind) {
	l.t.Helper()
	want := l.doneCount(of...) + n
	testkit.Eventually(l.t, within, func() error {
		if have := l.doneCount(of...); have < want {
			return fmt.Errorf("%d tasks of %v are done, want %d", have, of, want)
		}
		return nil
	})
}

// works waits until tasks of all sorts get through.
func (l *load) works() {
	l.t.Helper()
	l.await(60, quick, flaky, doomed)
	l.await(5, capped)
}

// awaitAcceptedBefore waits until handlers are done with all that was accepted
// before an instant, and logs how long after it that was.
func (l *load) awaitAcceptedBefore(at time.Time, what string) {
	l.t.Helper()
	var unlimited time.Duration
	for began := time.Now(); ; wait(context.Background(), 10*time.Millisecond) {
		open := l.open(at)
		if unlimited == 0 && !slices.ContainsFunc(open, func(o *order) bool { return o.kind != capped }) {
			unlimited = time.Since(at)
		}
		if len(open) == 0 {
			break
		}
		if time.Since(began) > 3*within {
			l.t.Fatalf("%s: %d tasks accepted before are not done, such as %s", what, len(open), l.tell(open[0]))
		}
	}
	l.t.Logf("%s: all that was accepted before was done %.1f s later, without the limited type %.1f s", what, time.Since(at).Seconds(), unlimited.Seconds())
}

// tell is what the engine says of a task.
func (l *load) tell(o *order) string {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	task, err := l.client.Wire().Get(ctx, o.id)
	if err != nil {
		return fmt.Sprintf("%s task %s (%s): %v", o.kind, o.key, o.id, err)
	}
	return fmt.Sprintf("%s task %s: %v", o.kind, o.key, task)
}

// producer submits batches of one size.
type producer struct {
	*load
	name   string
	batch  int
	client *yard.Client
	rand   *rand.Rand
	made   int
}

func (p *producer) run(ctx context.Context) {
	for ctx.Err() == nil {
		orders := make([]*order, p.batch)
		tasks := make([]yard.Task, p.batch)
		for i := range orders {
			orders[i], tasks[i] = p.next()
		}
		// A request begun is brought to its end.
		submitting, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTimeout)
		ids, err := p.client.SubmitMany(submitting, tasks)
		cancel()
		p.submitted(orders, ids, err)
		wait(ctx, time.Duration(p.batch*(15+p.rand.IntN(20)))*time.Millisecond)
	}
}

func (p *producer) next() (*order, yard.Task) {
	o := &order{key: fmt.Sprintf("%s-%d", p.name, p.made), kind: quick}
	p.made++
	task := yard.Task{Tasklist: tasklist, Priority: 1 + p.rand.IntN(5), Payload: o.key}
	switch n := p.rand.IntN(100); {
	case n < 15:
		o.kind = flaky
	case n < 18:
		o.kind = doomed
	case n < 20:
		o.kind = slow
	case n < 35:
		o.kind = capped
	case n < 45:
		o.delayed = true
		task.Delay = time.Duration(p.rand.Int64N(int64(delayMax)))
	}
	task.Type = string(o.kind)
	return o, task
}

var errWanted = errors.New("this attempt fails on purpose")

// work is what a handler does with one attempt.
func work(ctx context.Context, k kind, key string, number int) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // it never fails
	d := time.Duration(5+h.Sum32()%25) * time.Millisecond
	if k == slow {
		d = slowFor
	}
	wait(ctx, d)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case k == doomed, k == flaky && number == 1:
		return errWanted
	default:
		return nil
	}
}

// worker is one of the SDK.
func (l *load) worker(name string) *yard.Worker {
	w := yard.NewWorker(l.cluster.Client(domain), tasklist, yard.WithIdentity(name), yard.WithConcurrency(40),
		yard.WithPollWait(2*time.Second), yard.WithLogger(slog.New(slog.DiscardHandler)))
	for _, k := range []kind{quick, flaky, doomed, slow, capped} {
		w.HandleFunc(string(k), func(ctx context.Context, a *yard.Attempt) (yard.Payload, error) {
			var key string
			if err := a.Payload.Decode(&key); err != nil {
				l.fail(err)
				return yard.Payload{}, err
			}
			run := l.begin(key, k, a.TaskID, l.leaseEnd(a.Deadline))
			err := work(ctx, k, key, a.Failures+1)
			l.end(run, err)
			if err != nil {
				return yard.Payload{}, err
			}
			return yard.NewPayload(run.result)
		})
	}
	return w
}

// handWorker polls by itself, so that it hears every verdict. Now and then it
// forgets an attempt, as a worker does that dies. It sends no heartbeats.
type handWorker struct {
	*load
	client *yard.Client
	rand   *rand.Rand
	runs   sync.WaitGroup
}

func (w *handWorker) run(ctx context.Context) {
	defer w.runs.Wait()
	for ctx.Err() == nil {
		tasks, err := w.client.Wire().Poll(ctx, &yardv1.PollRequest{
			Tasklist: tasklist, MaxTasks: 10, WaitMs: 1000, Types: []string{string(quick), string(flaky), string(capped)}, Worker: "hand",
		})
		if err != nil {
			wait(ctx, 100*time.Millisecond)
			continue
		}
		kept := tasks[:0]
		for _, task := range tasks {
			if w.leases == longLeases || w.rand.IntN(50) > 0 {
				kept = append(kept, task)
			}
		}
		w.runs.Go(func() { w.serve(context.WithoutCancel(ctx), kept) })
	}
}

// serve runs the tasks of one poll, one after the other, and reports them together.
func (w *handWorker) serve(ctx context.Context, tasks []*yardv1.PolledTask) {
	var done []*attempt
	var completions []*yardv1.Completion
	var failures []*yardv1.Failure
	for _, task := range tasks {
		key := string(task.Payload.GetData())
		key = key[1 : len(key)-1] // a JSON string without escapes
		run := w.begin(key, kind(task.Type), task.TaskId, w.leaseEnd(time.Now().Add(time.Duration(task.TimeoutMs)*time.Millisecond)))
		err := work(ctx, kind(task.Type), key, int(task.Failures)+1)
		w.end(run, err)
		if err != nil {
			failures = append(failures, &yardv1.Failure{TaskId: task.TaskId, Token: task.Token, Message: err.Error()})
			continue
		}
		done = append(done, run)
		completions = append(completions, &yardv1.Completion{TaskId: task.TaskId, Token: task.Token, Result: &yardv1.Payload{Data: []byte(`"` + run.result + `"`)}})
	}
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	if len(failures) > 0 {
		_, _ = w.client.Wire().Fail(ctx, failures) // unreported ones run out
	}
	if len(completions) == 0 {
		return
	}
	verdicts, err := w.client.Wire().Complete(ctx, completions)
	if err != nil {
		return // as above
	}
	for i, v := range verdicts {
		w.confirm(done[i], v.Code)
	}
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
