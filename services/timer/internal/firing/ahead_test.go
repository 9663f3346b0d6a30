package firing_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/ahead"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// listedDue are the tasks of shop that a list by due time has in pages of a limit, by minute, and the minutes in their order.
func (r *running) listedDue(tb testing.TB, limit int, until int64) (payloads []string, minutes []int64) {
	tb.Helper()
	from := firing.DueRange{Until: until}
	f := firing.Filter{Domain: "shop", First: true, Retry: true, Limit: limit}
	repeats := 2
	for range 1000 {
		type found struct {
			next    firing.Position
			minute  int64
			payload string
		}
		var page []found
		end, more, err := firing.Ahead{Owner: r.Owner}.List(tb.Context(), f, from, func(next firing.Position, record []byte) (bool, error) {
			var one logv1.Record
			err := one.UnmarshalVT(record)
			page = append(page, found{next, topology.TimerBucket(one.DueAtMs), string(one.Payload)})
			return false, err
		})
		if err != nil && repeats > 0 { // a minute has begun
			repeats--
			continue
		}
		testkit.NoError(tb, err)
		slices.SortFunc(page, func(a, b found) int { return a.next.Compare(b.next) })
		for _, one := range page {
			if !more || one.next.Compare(end) <= 0 {
				minutes, payloads = append(minutes, one.minute), append(payloads, one.payload)
			}
		}
		if !more {
			return payloads, minutes
		}
		from.From = end
	}
	tb.Fatal("the list does not end")
	return nil, nil
}

// TestTasksAreListedByDueTime: in pages of any size, whatever of them is in memory, each once, and none of another domain.
func TestTasksAreListedByDueTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	now := time.Now().Truncate(time.Minute)
	number := 0
	want := map[string]bool{}
	numbered := func(_ int, r *logv1.Record) {
		number++
		r.Payload = fmt.Append(nil, number)
		want[string(r.Payload)] = true
	}
	for _, in := range []time.Duration{3 * time.Hour, 2 * time.Minute, time.Hour, 4 * time.Minute, 26 * time.Hour, time.Hour} {
		w.park(7, now.Add(in), numbered)
		w.park(3, now.Add(in), ofBank)
	}
	r := w.ownFar(&c)
	countsTo(t, "wait", r.waiting.Load, 60)
	for _, limit := range []int{1, 2, 5, 7, 100} {
		got, minutes := r.listedDue(t, limit, math.MaxInt64)
		seen := map[string]bool{}
		for _, payload := range got {
			seen[payload] = true
		}
		if len(got) != 42 || len(seen) != 42 || !slices.IsSorted(minutes) {
			t.Errorf("pages of %d: %d of 42 tasks, %d different ones, at %v", limit, len(got), len(seen), minutes)
		}
	}
	_, minutes := r.listedDue(t, 3, topology.TimerBucket(now.Add(time.Hour).UnixMilli()))
	testkit.Equal(t, "within an hour", len(minutes), 14)
	_, minutes = r.listedDue(t, 3, topology.TimerBucket(now.Add(3*time.Minute).UnixMilli()))
	testkit.Equal(t, "within minutes", len(minutes), 7)
}

// TestTasksAreCountedByDueTime, with how many wait in all.
func TestTasksAreCountedByDueTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	now := time.Now().Truncate(time.Minute)
	minute := func(in time.Duration) int64 { return topology.TimerBucket(now.Add(in).UnixMilli()) }
	w.park(2, now.Add(2*time.Minute))
	w.park(3, now.Add(time.Hour))
	w.park(4, now.Add(time.Hour), ofBank)
	w.park(5, now.Add(48*time.Hour))
	r := w.ownFar(&c)
	sums := ahead.New(ahead.Question{Domain: "shop", Until: minute(3 * time.Hour), Width: 1, Most: 10})
	waiting, err := firing.Ahead{Owner: r.Owner}.Count(t.Context(), sums)
	testkit.NoError(t, err)
	testkit.Equal(t, "wait", waiting, 10)
	testkit.Equal(t, "counted", sums.Spans(), []ahead.Span{{Bucket: minute(2 * time.Minute), Tasks: 2}, {Bucket: minute(time.Hour), Tasks: 3}})
	first := ahead.New(ahead.Question{Domain: "shop", Until: minute(72 * time.Hour), Width: 1, Most: 2})
	waiting, err = firing.Ahead{Owner: r.Owner}.Count(t.Context(), first)
	testkit.NoError(t, err)
	testkit.Equal(t, "the first spans", first.Spans(), sums.Spans())
	testkit.Equal(t, "wait still", waiting, 10)
	of := ahead.New(ahead.Question{Domain: "shop", Tasklist: "other", Until: minute(3 * time.Hour), Width: 1, Most: 10})
	waiting, err = firing.Ahead{Owner: r.Owner}.Count(t.Context(), of)
	testkit.NoError(t, err)
	testkit.Equal(t, "wait in a tasklist without tasks", waiting, 0)
}

// gatedStore hands out buckets that come near when the gate is open. Each one that waits for it is reported.
type gatedStore struct {
	firing.Store
	gate, waits chan struct{}
}

func (s gatedStore) ReadBuckets(ctx context.Context, buckets []int64, from, upTo uint64, handle func(firing.Stored) error) error {
	select {
	case s.waits <- struct{}{}:
	default:
	}
	<-s.gate
	return s.Store.ReadBuckets(ctx, buckets, from, upTo, handle)
}

// TestNothingIsAnsweredWhileTasksComeNear: some of them are in memory by then, and others are not. When all are, the answers have them.
func TestNothingIsAnsweredWhileTasksComeNear(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	gated := gatedStore{gate: make(chan struct{}), waits: make(chan struct{}, 1)}
	w.park(3, time.Now().Add(time.Hour))
	r := w.own(func(d *firing.Deps) {
		gated.Store = d.Store
		d.Now, d.Store = c.now, gated
	})
	open := sync.OnceFunc(func() { close(gated.gate) })
	t.Cleanup(open)
	count := func() (int, error) {
		return firing.Ahead{Owner: r.Owner}.Count(t.Context(), ahead.New(ahead.Question{Domain: "shop", Until: math.MaxInt64, Width: 1, Most: 10}))
	}
	waiting, err := count()
	testkit.NoError(t, err)
	testkit.Equal(t, "wait", waiting, 3)
	c.ahead.Store(int64(57 * time.Minute))
	w.park(1, time.Now().Add(time.Minute)) // the owner sees the time
	<-gated.waits
	if n, err := count(); err == nil {
		t.Errorf("%d are counted while tasks come near", n)
	}
	open()
	testkit.Eventually(t, soon, func() error {
		got, err := count()
		if err == nil && got != 3 {
			err = fmt.Errorf("%d wait", got)
		}
		return err
	})
}

// TestAListThatCouldMissATaskIsRefused: a task leaves memory while the others are read. The next list has all of them.
func TestAListThatCouldMissATaskIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	var meanwhile atomic.Pointer[func()]
	w.park(60, time.Now().Add(2*time.Minute))
	w.park(1, time.Now().Add(4*time.Minute))
	r := w.own(func(d *firing.Deps) {
		d.Now, d.Config.NearMax, d.Store = c.now, 100, meanwhileStore{d.Store, &meanwhile}
	})
	manyCome := func() {
		if more := w.park(60, time.Now().Add(2*time.Minute)); !r.located(t, idsOf(more)[0], "") {
			t.Error("they did not come")
		}
	}
	meanwhile.Store(&manyCome)
	f := firing.Filter{Domain: "shop", First: true, Retry: true, Limit: 1000}
	seen := func(firing.Position, []byte) (bool, error) { return false, nil }
	if _, _, err := (firing.Ahead{Owner: r.Owner}).List(t.Context(), f, firing.DueRange{Until: math.MaxInt64}, seen); err == nil {
		t.Error("a list is answered that could miss a task")
	}
	got, _ := r.listedDue(t, 1000, math.MaxInt64)
	testkit.Equal(t, "listed", len(got), 121)
}

// TestATaskThatComesNearAloneIsListedOnce: its minute is not in memory, and the command that has it fire does not come through.
func TestATaskThatComesNearAloneIsListedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	all := idsOf(w.park(6, time.Now().Add(time.Hour)))
	r := w.own(func(d *firing.Deps) {
		d.Now, d.StorageFull = c.now, func() string { return "no command comes through" }
	})
	testkit.Check(t, testkit.Err(r.FireEarly(t.Context(), wanted([]ids.TaskID{all[1], all[4]}))))
	for _, limit := range []int{1, 2, 3, 6, 100} {
		got, _ := r.listedDue(t, limit, math.MaxInt64)
		slices.Sort(got)
		testkit.Equal(t, fmt.Sprint("pages of ", limit), fmt.Sprint(got), "[0 1 2 3 4 5]")
	}
}

// TestAListByDueTimeEndsBehindWhatIsGone: what is no longer stored is left out, and the next page goes on behind it.
func TestAListByDueTimeEndsBehindWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own(func(d *firing.Deps) { d.Store = onlyFirst{d.Store} })
	w.park(3, time.Now().Add(2*time.Minute))
	w.park(3, time.Now().Add(3*time.Minute))
	waits(t, r, 6)
	for _, limit := range []int{1, 2, 3, 100} {
		got, _ := r.listedDue(t, limit, math.MaxInt64)
		testkit.Equal(t, fmt.Sprint("pages of ", limit), got, []string{"0", "1", "2"})
	}
}

// TestAListByDueTimeThatTakesLongGoesOnFromItsEnd: one page reads for a short time only, however slow the store is.
func TestAListByDueTimeThatTakesLongGoesOnFromItsEnd(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for a slow store")
	w := newWorld(t)
	r := w.own(func(d *firing.Deps) { d.Store = slowStore{d.Store} })
	const tasks = 2500
	for range tasks / 500 {
		w.park(500, time.Now().Add(2*time.Minute))
	}
	waits(t, r, tasks)
	within, found, pages := firing.DueRange{Until: math.MaxInt64}, 0, 0
	for more := true; more; pages++ {
		var err error
		within.From, more, err = firing.Ahead{Owner: r.Owner}.List(t.Context(), all("shop"), within, func(firing.Position, []byte) (bool, error) {
			found++
			return false, nil
		})
		testkit.NoError(t, err)
	}
	if found != tasks || pages < 2 {
		t.Errorf("%d of %d in %d pages", found, tasks, pages)
	}
}
