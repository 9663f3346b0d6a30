package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// spreadRun is one setting of Cadence's simulation of scalable task lists (its testdata/matching_simulation_*.yaml), smaller: tasks are
// handed in at rates, one after the other, and run by workers of one slot.
type spreadRun struct {
	name       string
	partitions int
	workers    int
	// waiting is handed in before there are workers.
	waiting int
	// rates are tasks in a second, each for a second.
	rates []int
	// edits are what partitions becomes when so many tasks have been handed in.
	edits map[int]int
}

func spreadRuns() []spreadRun {
	return []spreadRun{
		{name: "one partition", partitions: 1, workers: 8, rates: []int{160}},
		{name: "default", partitions: 4, workers: 8, rates: []int{160}},
		{name: "one poller on four", partitions: 4, workers: 1, rates: []int{40}},
		{name: "sparse on eight", partitions: 8, workers: 1, rates: slices.Repeat([]int{1}, 20)},
		{name: "sparse on sixty-four", partitions: 64, workers: 1, rates: []int{10, 10}},
		{name: "burst on one", partitions: 1, workers: 8, rates: []int{800}},
		{name: "burst", partitions: 4, workers: 8, rates: []int{800}},
		{name: "fluctuating", partitions: 4, workers: 8, rates: []int{10, 300, 10}},
		{name: "backlog of one", partitions: 1, workers: 8, waiting: 600, rates: []int{100}},
		{name: "backlog", partitions: 4, workers: 8, waiting: 600, rates: []int{100}},
		{name: "uneven backlog", partitions: 1, workers: 8, waiting: 500, rates: []int{300}, edits: map[int]int{500: 4}},
		{name: "fewer than before", partitions: 8, workers: 8, waiting: 600, rates: []int{100}, edits: map[int]int{600: 1}},
		{name: "more and fewer", partitions: 1, workers: 8, rates: []int{300}, edits: map[int]int{80: 30, 150: 2, 220: 7}},
	}
}

// TestPartitionsDeliverAll: whatever the number of partitions and pollers, and however the number is edited meanwhile, each task runs
// once. It prints how long tasks waited, and how many polls were forwarded.
func TestPartitionsDeliverAll(t *testing.T) {
	testkit.Slow(t, "floods the system for half a minute and more")
	eachKind(t, func(t *testing.T, tables stack.Tables) {
		s := ownOf(t, stack.Config{Partitioning: topology.DefaultPartitioning(), Tables: tables}, len(spreadRuns()))
		for i, r := range spreadRuns() {
			r.run(t, s, i)
		}
	})
}

func (r *spreadRun) run(t *testing.T, s *stack.Stack, i int) {
	w := join(t, s, domainName(i))
	testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain})))
	spread := func(n int) {
		t.Helper()
		testkit.NoError(t, testkit.Err(w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Partitions: n})))
	}
	w.eventually(func() error {
		_, err := w.client.PutTasklist(w.soon(), yard.Tasklist{Name: list, Partitions: r.partitions})
		return err
	})
	book := &spreadBook{from: map[string]time.Time{}, to: map[string]time.Time{}, runs: map[string]int{}}
	before := meters(t, s)
	handedIn := 0
	handIn := func(n int) {
		tasks := many(n, &yardv1.NewTask{Type: "x"})
		began := time.Now()
		book.submitted(began, w.submit(tasks...))
		handedIn += n
		if to, edit := r.edits[handedIn]; edit {
			spread(to)
		}
	}
	for handedIn < r.waiting {
		handIn(100)
	}
	if r.waiting > 0 {
		w.described(list, func(d yard.TasklistInfo) bool { return d.Ready >= int64(r.waiting) })
	}
	for range r.workers {
		stop := w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "x", func(ctx context.Context, _ struct{}) (struct{}, error) {
				book.ran(yard.Info(ctx).TaskID)
				return struct{}{}, nil
			})
		}, yard.WithConcurrency(1))
		defer stop()
	}
	r.giveOut(handIn)
	w.eventually(func() error { return book.complete() })
	waits := book.waited(r.waiting)
	after := meters(t, s)
	since := func(m signals.Metric) int64 { return after[m.Prometheus()] - before[m.Prometheus()] }
	direct, table := since(signals.MatchesDirect), since(signals.MatchesFromTable)
	at := func(share float64) time.Duration {
		return waits[min(len(waits)-1, int(share*float64(len(waits))))].Round(100 * time.Microsecond)
	}
	t.Logf("%-22s %4d tasks once each; waited p50 %v, p90 %v, p99 %v, at most %v; %d %% without a table; polls %d, up %d, down %d",
		r.name, handedIn, at(.5), at(.9), at(.99), waits[len(waits)-1].Round(100*time.Microsecond), 100*direct/max(1, direct+table),
		since(signals.PollsReceived), since(signals.PollsSentUp), since(signals.PollsSentDown))
}

// giveOut hands tasks in at the rates of a run.
func (r *spreadRun) giveOut(handIn func(n int)) {
	for _, rate := range r.rates {
		const tick = 20 * time.Millisecond
		every := time.NewTicker(tick)
		given := 0
		for n := 1; given < rate; n++ {
			<-every.C
			if due := min(rate, rate*n/int(time.Second/tick)); due > given {
				for range due - given {
					handIn(1)
				}
				given = due
			}
		}
		every.Stop()
	}
}

// spreadBook is when tasks were about to be handed in, and when they ran.
type spreadBook struct {
	mu       sync.Mutex
	order    []string
	from, to map[string]time.Time
	runs     map[string]int
}

func (b *spreadBook) submitted(began time.Time, ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order = append(b.order, ids...)
	for _, id := range ids {
		b.from[id] = began
	}
}

func (b *spreadBook) ran(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs[id]++
	b.to[id] = time.Now()
}

// complete tells whether each task has run, once.
func (b *spreadBook) complete() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := 0
	for _, id := range b.order {
		switch n := b.runs[id]; {
		case n > 1:
			return fmt.Errorf("%s ran %d times", id, n)
		case n == 0:
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d have not run", missing, len(b.order))
	}
	return nil
}

// waited is how long tasks waited, all but the first so many, sorted.
func (b *spreadBook) waited(from int) []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []time.Duration
	for _, id := range b.order[from:] {
		all = append(all, b.to[id].Sub(b.from[id]))
	}
	slices.Sort(all)
	return all
}
