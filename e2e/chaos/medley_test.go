package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The tasklists: one whose partitions come and go, one whose partitions the engine sets, and one with a cap per group.
const (
	wideList, scaledList, cappedList = "wide", "scaled", "capped"
	wideMost, scaledMost, groupCap   = 4, 3, 40
	// pausedGroup is paused and resumed, drainedGroup drained and resumed, floodGroup fills its cap.
	pausedGroup, drainedGroup, floodGroup = "paused", "drained", "flood"
	// fullAfter is how long a task waits for a limit until its policy acts.
	fullAfter = 700 * time.Millisecond
	// rateType may use so many starts a second.
	rateType                 = "call"
	ratePerSecond, rateBurst = 20, 10
	costMost                 = 5
	// medleyPaused is for how long a process is paused.
	medleyPaused = 10 * time.Second
)

// medleyLimit is a type with a limit of its own.
type medleyLimit struct {
	typ            string
	most, perGroup int
	onFull         yard.OnFull
}

// medleyLimits are all of them; one without a policy is the type's own.
var medleyLimits = []medleyLimit{
	{typ: "reject", most: 4, onFull: yard.OnFullRejectNewest},
	{typ: "oldest", most: 4, onFull: yard.OnFullCancelOldest},
	{typ: "rejectgroup", perGroup: 2, onFull: yard.OnFullRejectNewest},
	{typ: "oldestgroup", perGroup: 2, onFull: yard.OnFullCancelOldest},
	{typ: "waitgroup", most: 6, perGroup: 2},
}

// medley is a load that uses all that operators have, with an account of its own.
type medley struct {
	t       *testing.T
	cluster *cluster.Cluster
	client  *yard.Client
	gate    chan struct{} // closed where probes may end

	mu     sync.Mutex
	orders []*medleyOrder
	runs   []*medleyRun
	faults []window // what was disturbed
	lost   []int64  // when Redis had lost its memory, Unix ms
	stops  map[string][]window
}

// medleyOrder is one task as its submitter knows it.
type medleyOrder struct {
	key, typ, group, tasklist, id string
	cost                          int
	asked, answered               time.Time
	fate                          fate
}

// medleyRun is one run of a handler.
type medleyRun struct {
	key, id, typ, group, result string
	number                      int
	began, ended                time.Time
	succeeded                   bool
}

// window is a time; one that goes on has no end.
type window struct{ from, to time.Time }

// TestI1_I8_PoliciesGroupsAndPartitionsWhileThingsAreKilled: limits that are full reject and displace, groups are paused and drained, partitions of a tasklist come
// and go, and workers poll several tasklists by weight, while processes of all kinds are killed and paused, and Redis loses its memory or comes back with
// an old one. Each accepted task ends once, as its limit says; nothing exceeds a limit, nothing is stopped that no task waits for, and at the end
// each limit can be filled again. The long form takes YARD_CHAOS_LASTS.
func TestI1_I8_PoliciesGroupsAndPartitionsWhileThingsAreKilled(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	s := settingsOf(t)
	if !s.long {
		t.Parallel()
	}
	seed := testkit.Seed(t)
	c := cluster.Start(t, binaries, instances, cluster.WithRedis("--save", "15 1"), cluster.WithFlagsOf(cluster.Frontend,
		"--gateway.scale.tasks-per-second", "5", "--gateway.scale.every", "1s", "--gateway.scale.up-after", "5s", "--gateway.scale.down-after", "5s"))
	c.Restart(cluster.Matching, c.Add(binaries, cluster.Matching))
	c.AwaitReady()
	m := &medley{t: t, cluster: c, client: c.Client(domain), gate: make(chan struct{}), stops: map[string][]window{}}
	m.define()
	working, stopWorking := context.WithCancel(context.Background())
	producing, stopProducing := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	t.Cleanup(func() {
		stopProducing()
		stopWorking()
		busy.Wait()
	})
	crew := m.hire(working, &busy, seed)
	var producers sync.WaitGroup
	for i := range 3 {
		dice, client := fork(seed), c.Client(domain)
		producers.Go(func() { m.produce(producing, client, dice, i) })
	}
	operator := fork(seed)
	producers.Go(func() { m.stopAndResume(producing, operator) })
	producers.Go(func() { m.spread(producing) })
	m.disturb(seed, s, crew)
	stopProducing()
	producers.Wait()
	c.AwaitReady()
	m.crowd()
	m.finish()
	m.check()
	m.probe()
	c.CheckAll()
}

// define makes the domain, the limits and the types.
func (m *medley) define() {
	m.t.Helper()
	define(m.t, m.cluster, m.client)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	short := func(name string) yard.TaskType {
		return yard.TaskType{
			Name: name, StartToClose: shortLeases.startToClose, HeartbeatTimeout: shortLeases.heartbeat,
			Retry: &yard.RetryPolicy{MaxAttempts: 50, InitialInterval: 50 * time.Millisecond, MaxInterval: 200 * time.Millisecond},
		}
	}
	calls := short(rateType)
	calls.Rate = yard.Rate{Tasks: ratePerSecond, Burst: rateBurst}
	types := []yard.TaskType{calls, short("free")}
	for _, l := range medleyLimits {
		typ := short(l.typ)
		if l.onFull == "" {
			typ.MaxConcurrency, typ.MaxConcurrencyPerGroup = l.most, l.perGroup
		} else {
			typ.Limits = []string{l.typ}
			testkit.Eventually(m.t, within, func() error {
				_, err := m.client.PutLimit(ctx, yard.Limit{Name: l.typ, MaxConcurrency: l.most, MaxConcurrencyPerGroup: l.perGroup, OnFull: l.onFull, OnFullAfter: fullAfter})
				return err
			})
		}
		types = append(types, typ)
	}
	define(m.t, m.cluster, m.client, types...)
	for _, l := range []yard.Tasklist{{Name: wideList, Partitions: wideMost}, {Name: scaledList, PartitionsMax: scaledMost}, {Name: cappedList, MaxQueuedPerGroup: groupCap}} {
		testkit.NoError(m.t, testkit.Err(m.client.PutTasklist(ctx, l)))
	}
	wait(ctx, 2*time.Second) // all nodes know of them within a second
}

// next is a random task.
func (m *medley) next(dice *rand.Rand, key string) (*medleyOrder, yard.Task) {
	o := &medleyOrder{key: key, cost: 1, tasklist: [...]string{wideList, wideList, scaledList, scaledList, cappedList}[dice.IntN(5)]}
	switch n := dice.IntN(10); {
	case n < 7:
		o.typ = medleyLimits[dice.IntN(len(medleyLimits))].typ
	case n < 8:
		o.typ, o.cost = rateType, 1+dice.IntN(costMost)
	default:
		o.typ = "free"
	}
	o.group = [...]string{"", "a", "a", "b", "c", pausedGroup, pausedGroup}[dice.IntN(7)]
	task := yard.Task{Type: o.typ, Tasklist: o.tasklist, Group: o.group, Payload: key, Priority: 1 + dice.IntN(3), Cost: o.cost}
	if dice.IntN(20) == 0 {
		task.Delay = upTo(dice, delayMax)
	}
	return o, task
}

// produce submits more than the limits let run. The last producer fills the cap of a group.
func (m *medley) produce(ctx context.Context, client *yard.Client, dice *rand.Rand, number int) {
	for n := 0; ctx.Err() == nil; n++ {
		var orders []*medleyOrder
		var tasks []yard.Task
		drained := dice.IntN(5) == 0 // one of them is refused with all of its request
		for i := range 1 + dice.IntN(10) {
			o, task := m.next(dice, fmt.Sprintf("p%d-%d-%d", number, n, i))
			switch {
			case number == 2:
				o.typ, o.group, o.tasklist, o.cost = "waitgroup", floodGroup, cappedList, 1
			case drained:
				o.group = drainedGroup
			}
			task.Type, task.Group, task.Tasklist, task.Cost = o.typ, o.group, o.tasklist, o.cost
			orders, tasks = append(orders, o), append(tasks, task)
		}
		m.submit(client, orders, tasks)
		wait(ctx, time.Duration(80+dice.IntN(120))*time.Millisecond)
	}
}

// crowd has every policy act, however few tasks a slow machine has seen.
func (m *medley) crowd() {
	var orders []*medleyOrder
	var tasks []yard.Task
	for _, l := range medleyLimits {
		if l.onFull == "" {
			continue
		}
		for i := range 4 * max(l.most, l.perGroup) {
			o := &medleyOrder{key: fmt.Sprintf("crowd-%s-%d", l.typ, i), typ: l.typ, group: "a", tasklist: wideList, cost: 1}
			orders = append(orders, o)
			tasks = append(tasks, yard.Task{Type: o.typ, Tasklist: o.tasklist, Group: o.group, Payload: o.key})
		}
	}
	m.submit(m.client, orders, tasks)
}

// submit hands tasks in and notes what became of them. Tasks of a drained group are refused.
func (m *medley) submit(client *yard.Client, orders []*medleyOrder, tasks []yard.Task) {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), submitTimeout)
	defer cancel()
	ids, err := client.SubmitMany(ctx, tasks)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, o := range orders {
		o.asked, o.answered = asked, time.Now()
		switch {
		case i < len(ids):
			o.id, o.fate = ids[i], accepted
		case fault.CodeOf(err) == fault.Unknown:
			o.fate = unsure
		default:
			o.fate = refused
		}
		m.orders = append(m.orders, o)
	}
	// Where a repeat is refused, by the cap or the drain, no one knows whether the try before was stored.
	if code := fault.CodeOf(err); err != nil && ((code != fault.FailedPrecondition && code != fault.ResourceExhausted && code != fault.Unknown) ||
		orders[0].group != floodGroup && orders[0].group != drainedGroup) {
		m.t.Errorf("submit to %q: %v", orders[0].group, err)
	}
}

// hire starts workers that poll the tasklists in all ways, and returns how each is killed and replaced.
func (m *medley) hire(ctx context.Context, busy *sync.WaitGroup, seed *rand.Rand) (replace []func()) {
	for i, options := range [][]yard.WorkerOption{
		{yard.WithWeights(map[string]int{wideList: 4, scaledList: 2, cappedList: 1})},
		{yard.WithWeights(map[string]int{wideList: 1, scaledList: 1, cappedList: 1})},
		{yard.WithTasklists(scaledList, cappedList)},
		{},
	} {
		n, kill := 0, func() {}
		start := func() {
			n++
			kill = m.worker(ctx, busy, fork(seed), append(options, yard.WithIdentity(fmt.Sprintf("worker-%d-%d", i, n)))...)
		}
		start()
		replace = append(replace, func() {
			m.t.Logf("kill worker %d", i)
			kill()
			start()
		})
	}
	return replace
}

// worker runs until it is killed: its handlers end at once, and it says nothing more.
func (m *medley) worker(ctx context.Context, busy *sync.WaitGroup, dice *rand.Rand, options ...yard.WorkerOption) (kill func()) {
	dead := make(chan struct{})
	client := m.cluster.Client(domain)
	w := yard.NewWorker(client, wideList, append(options, yard.WithConcurrency(30), yard.WithPollWait(2*time.Second), yard.WithLogger(slog.New(slog.DiscardHandler)))...)
	var mu sync.Mutex
	handler := func(ctx context.Context, a *yard.Attempt) (yard.Payload, error) {
		mu.Lock()
		takes := 50*time.Millisecond + upTo(dice, time.Second)
		mu.Unlock()
		var key string
		if err := a.Payload.Decode(&key); err != nil {
			return yard.Payload{}, err
		}
		r := m.begin(key, a)
		err := m.run(ctx, key, takes, dead)
		m.mu.Lock()
		r.ended, r.succeeded = time.Now(), err == nil
		m.mu.Unlock()
		if errors.Is(err, errWanted) {
			client.Close() // its outcome goes nowhere
		}
		if err != nil {
			return yard.Payload{}, err
		}
		return yard.NewPayload(r.result)
	}
	w.HandleFunc(rateType, handler)
	w.HandleFunc("free", handler)
	for _, l := range medleyLimits {
		w.HandleFunc(l.typ, handler)
	}
	return working(ctx, busy, w, client, dead)
}

// working has a worker run until it is killed: that closes dead, so that its handlers end, and its client.
func working(ctx context.Context, busy *sync.WaitGroup, w *yard.Worker, client *yard.Client, dead chan<- struct{}) (kill func()) {
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	busy.Go(func() {
		defer close(ended)
		_ = w.Run(running) // its connection may be gone
	})
	return func() {
		close(dead)
		client.Close()
		stop()
		<-ended
	}
}

// run is what a handler does: a probe waits for all others.
func (m *medley) run(ctx context.Context, key string, takes time.Duration, dead <-chan struct{}) error {
	timer := time.NewTimer(takes)
	defer timer.Stop()
	done, gate := timer.C, (<-chan struct{})(nil)
	if isProbe(key) {
		done, gate = nil, m.gate
	}
	select {
	case <-done:
		return nil
	case <-gate:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-dead:
		return errWanted
	}
}

func (m *medley) begin(key string, a *yard.Attempt) *medleyRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &medleyRun{key: key, id: a.TaskID, typ: a.Type, group: a.Group, number: a.Number, began: time.Now(), result: fmt.Sprintf("%s/%d", key, len(m.runs))}
	m.runs = append(m.runs, r)
	return r
}
