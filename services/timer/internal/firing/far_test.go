package firing_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/ahead"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// clock is the time of an owner, which a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) add(d time.Duration) { c.ahead.Add(int64(d)) }

// ownFar starts an owner with a clock of the test. Few tasks are in memory.
func (w *world) ownFar(c *clock) *running {
	w.tb.Helper()
	return w.own(func(d *firing.Deps) { d.Now, d.Config.NearMax = c.now, 100 })
}

// located waits until an owner that has read everything answers.
func (r *running) located(tb testing.TB, id ids.TaskID, domain string) bool {
	tb.Helper()
	at, err := r.Locate(tb.Context(), id, domain)
	testkit.NoError(tb, err)
	return at.Record != nil
}

// TestI10_FarTasksFireWhenTheirBucketsComeNear, once, also if another owner has them by then. Many are due at one minute.
func TestI10_FarTasksFireWhenTheirBucketsComeNear(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	all := w.park(300, time.Now().Add(time.Hour))
	all = append(all, w.park(3, time.Now().Add(time.Hour))...)
	all = append(all, w.park(2, time.Now().Add(2*time.Hour), ofBank)...)
	r := w.ownFar(&c)
	all = append(all, w.park(2, time.Now().Add(2*time.Hour))...)
	countsTo(t, "wait", r.waiting.Load, 307)
	for _, id := range []ids.TaskID{idsOf(all)[0], idsOf(all)[301], idsOf(all)[306]} {
		if !r.located(t, id, "shop") || !r.located(t, id, "") || r.located(t, id, "bank") {
			t.Errorf("%v is not found, or by another domain", id)
		}
	}
	for domain, want := range map[string]int{"shop": 305, "bank": 2} {
		if n, err := r.Waiting(t.Context(), domain, ""); err != nil || n != want {
			t.Errorf("%d of %s wait: %v", n, domain, err)
		}
	}
	c.add(time.Hour)
	w.eachOnce(all[:303])
	r.stop()
	r = w.ownFar(&c)
	countsTo(t, "wait", r.waiting.Load, 4)
	c.add(time.Hour)
	w.eachOnce(all)
	countsTo(t, "wait at the end", r.waiting.Load, 0)
}

// TestI10_AFarTaskFiresEarly, and it alone, also if the owner that stored the early message is another one.
func TestI10_AFarTaskFiresEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	all := w.park(10, time.Now().Add(time.Hour))
	r := w.ownFar(&c)
	w.append(topology.Timer(0, topology.TimerBucket(all[1].DueAtMs)), &logv1.Batch{
		Early: [][]byte{all[1].Id}, EarlyParkings: []uint32{1}, EarlySeqs: []uint64{1}, EarlyIndexes: []uint32{1},
		EarlyBytes: []uint32{uint32(all[1].SizeVT())}, EarlyDomain: "shop", EarlyTasklist: "mail",
	})
	a, err := r.FireEarly(t.Context(), wanted(idsOf(all[:1])))
	if err != nil || len(a.Coming) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	w.eachOnce(all[:2])
	countsTo(t, "wait", r.waiting.Load, 8)
	for _, whose := range []string{"the same owner", "the next owner"} {
		if r.located(t, idsOf(all)[0], "") || r.located(t, idsOf(all)[1], "") || !r.located(t, idsOf(all)[2], "") {
			t.Errorf("%s: a fired task waits, or another one does not", whose)
		}
		a, err := r.FireEarly(t.Context(), wanted(idsOf(all[:2])))
		if err != nil || len(a.Fired) != 2 {
			t.Errorf("%s, asked again: %+v, %v", whose, a, err)
		}
		r.stop()
		r = w.ownFar(&c)
	}
	c.add(time.Hour)
	w.eachOnce(all)
}

// likeEachOther are ids of two tasks that the index of far tasks cannot tell apart: their hashes agree in what a slot and its part keep.
func likeEachOther() (a, b ids.TaskID) {
	seen := map[uint64]ids.TaskID{}
	for n := uint64(1); ; n++ {
		id := ids.NewTaskID(time.UnixMilli(1), 0, n)
		hash := far.Hash(id)
		kept := hash>>54<<18 | hash&(1<<18-1)
		if other, known := seen[kept]; known {
			return other, id
		}
		seen[kept] = id
	}
}

// TestR2_AFarTaskIsNotTakenForAnother of which the index says the same: the record decides. A command is about the one that it names.
func TestR2_AFarTaskIsNotTakenForAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	first, second := likeEachOther()
	all := w.park(2, time.Now().Add(time.Hour), func(i int, r *logv1.Record) { r.Id = [][]byte{first[:], second[:]}[i] })
	r := w.ownFar(&c)
	for i, id := range []ids.TaskID{first, second} {
		at, err := r.Locate(t.Context(), id, "shop")
		testkit.NoError(t, err)
		var record logv1.Record
		testkit.NoError(t, record.UnmarshalVT(at.Record))
		testkit.Equal(t, "payload", string(record.Payload), string(all[i].Payload))
	}
	testkit.NoError(t, testkit.Err(r.FireEarly(t.Context(), wanted([]ids.TaskID{second}))))
	w.eachOnce(all[1:])
}

// meanwhileStore has something happen while a record is read for the first time.
type meanwhileStore struct {
	firing.Store
	meanwhile *atomic.Pointer[func()]
}

func (s meanwhileStore) Get(ctx context.Context, seq uint64) ([]byte, error) {
	data, err := s.Store.Get(ctx, seq)
	if do := s.meanwhile.Swap(nil); do != nil {
		(*do)()
	}
	return data, err
}

// TestATaskThatComesNearMeanwhileIsFound: the record was read of a far task, and it is in memory by then.
func TestATaskThatComesNearMeanwhileIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	var meanwhile atomic.Pointer[func()]
	all := idsOf(w.park(1, time.Now().Add(time.Hour)))
	r := w.own(func(d *firing.Deps) {
		d.Now, d.Store, d.StorageFull = c.now, meanwhileStore{d.Store, &meanwhile}, func() string { return "no command comes through" }
	})
	comesNear := func() { testkit.Check(t, testkit.Err(r.FireEarly(t.Context(), wanted(all)))) }
	meanwhile.Store(&comesNear)
	if !r.located(t, all[0], "shop") {
		t.Error("a task that waits is not found")
	}
}

// TestACommandMissesNoTaskThatLeavesMemoryMeanwhile: it is to be asked for again, as those are that come.
func TestACommandMissesNoTaskThatLeavesMemoryMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	var meanwhile atomic.Pointer[func()]
	w.park(60, time.Now().Add(2*time.Minute))
	near, far := w.park(1, time.Now().Add(4*time.Minute)), w.park(1, time.Now().Add(time.Hour))
	r := w.own(func(d *firing.Deps) {
		d.Now, d.Config.NearMax, d.Store = c.now, 100, meanwhileStore{d.Store, &meanwhile}
	})
	manyCome := func() {
		if more := w.park(60, time.Now().Add(2*time.Minute)); !r.located(t, idsOf(more)[0], "") {
			t.Error("they did not come")
		}
	}
	meanwhile.Store(&manyCome)
	a, err := r.FireEarly(t.Context(), wanted(idsOf(append(near, far...))))
	if testkit.NoError(t, err); len(a.Coming) != 2 {
		t.Errorf("%+v", a)
	}
}

// TestFarTasksAreListed by bucket, page by page, those of the domain that wait.
func TestFarTasksAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	w.park(1, time.Now().Add(3*time.Minute))
	later := w.park(5, time.Now().Add(2*time.Hour))
	sooner := w.park(5, time.Now().Add(time.Hour), func(i int, r *logv1.Record) {
		if i > 2 {
			r.Tasklist = "sms"
		}
	})
	w.park(3, time.Now().Add(time.Hour), ofBank)
	r := w.ownFar(&c)
	_, err := r.FireEarly(t.Context(), wanted(idsOf(sooner[:1])))
	testkit.NoError(t, err)
	list := func(f firing.Filter) (pages [][]string) {
		var at firing.Position
		for more := true; more; {
			var page []string
			at, more, err = r.ListFar(t.Context(), f, at, func(data []byte) (bool, error) {
				var record logv1.Record
				err := record.UnmarshalVT(data)
				page = append(page, ids.TaskID(record.Id).String())
				return len(page) == 3, err
			})
			testkit.NoError(t, err)
			pages = append(pages, page)
		}
		return pages
	}
	named := func(all ...*logv1.Record) (names []string) {
		for _, id := range idsOf(all) {
			names = append(names, id.String())
		}
		return names
	}
	shop := all("shop")
	testkit.Equal(t, "pages", fmt.Sprint(list(shop)), fmt.Sprint([][]string{named(sooner[1], sooner[2], sooner[3]), named(sooner[4], later[0], later[1]), named(later[2:]...), nil}))
	shop.Tasklist = "sms"
	testkit.Equal(t, "pages of a tasklist", fmt.Sprint(list(shop)), fmt.Sprint([][]string{named(sooner[3:]...)}))
	end := far.Place{Seq: math.MaxUint64, Index: math.MaxUint32}
	for forged, want := range map[firing.Position]int{
		{Bucket: math.MaxInt64}:                                       0,
		{Bucket: math.MinInt64, Place: end}:                           2,
		{Bucket: topology.TimerBucket(sooner[3].DueAtMs), Place: end}: 0,
	} {
		visited, at := 0, forged
		for more := true; more; { // a list pauses after a time
			at, more, err = r.ListFar(t.Context(), shop, at, func([]byte) (bool, error) { visited++; return false, nil })
			testkit.NoError(t, err)
		}
		testkit.Equal(t, fmt.Sprintf("tasks of a list that goes on at %v", forged), visited, want)
	}
	shop.Limit = 1
	testkit.Equal(t, "one record at a time", fmt.Sprint(list(shop)), fmt.Sprint([][]string{named(sooner[3]), named(sooner[4]), nil}))
}

// TestFarTasksOfManyKindsAreAllListed: a list by tasklist and type finds a task though neither is counted by name, and a count takes it for one that may be.
func TestFarTasksOfManyKindsAreAllListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	own := func(_ int, r *logv1.Record) {
		r.Tasklist, r.Type = fmt.Sprint("list-", w.made), fmt.Sprint("type-", w.made)
	}
	var parked []*logv1.Record
	for n := range 4 {
		parked = append(parked, w.park(1000, time.Now().Add(time.Duration(n%2+1)*time.Hour), own)...)
	}
	r := w.ownFar(&c)
	countsTo(t, "wait", r.waiting.Load, 4000)
	for _, n := range []int{0, 1500, 3500} {
		f := all("shop")
		f.Limit, f.Tasklist, f.Type = 10_000, parked[n].Tasklist, parked[n].Type
		found := 0
		for at, more := (firing.Position{}), true; more; {
			var err error
			at, more, err = r.ListFar(t.Context(), f, at, func([]byte) (bool, error) { found++; return false, nil })
			testkit.NoError(t, err)
		}
		testkit.Equal(t, "found", found, 1)
		sums := ahead.New(ahead.Question{Domain: "shop", Tasklist: f.Tasklist, Type: f.Type, Until: math.MaxInt64, Width: 1, Most: 10})
		waiting, err := firing.Ahead{Owner: r.Owner}.Count(t.Context(), sums)
		testkit.NoError(t, err)
		tasks := int64(0)
		for _, s := range sums.Spans() {
			tasks += s.Tasks
		}
		if tasks < 1 || int64(waiting) != tasks || tasks > 2001 {
			t.Errorf("%d may be of task %d, %d wait", tasks, n, waiting)
		}
	}
	domains, err := r.Domains(t.Context(), slices.Values([]string{"shop"}))
	testkit.NoError(t, err)
	testkit.Equal(t, "wait of the domain", domains["shop"].Tasks, 4000)
}
