package firing_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func idsOf(all []*logv1.Record) []ids.TaskID {
	got := make([]ids.TaskID, len(all))
	for i, r := range all {
		got[i] = ids.TaskID(r.Id)
	}
	return got
}

// wanted asks for tasks in the name of a service of ours.
func wanted(all []ids.TaskID) []due.Wanted {
	got := make([]due.Wanted, len(all))
	for i, id := range all {
		got[i].ID = id
	}
	return got
}

// cancelled calls Cancel and returns the ids of the records it answered with.
func cancelled(t *testing.T, r *running, all ...ids.TaskID) (got []ids.TaskID, fired []ids.TaskID) {
	t.Helper()
	answer, err := r.Cancel(t.Context(), wanted(all))
	testkit.NoError(t, err)
	for _, data := range answer.Records {
		var record logv1.Record
		testkit.NoError(t, record.UnmarshalVT(data))
		got = append(got, ids.TaskID(record.Id))
	}
	for _, f := range answer.Fired {
		fired = append(fired, f.ID)
	}
	return got, fired
}

func waits(t *testing.T, r *running, n int64) {
	t.Helper()
	testkit.Eventually(t, soon, func() error {
		if r.waiting.Load() != n {
			return errors.New("not read yet")
		}
		return nil
	})
}

func TestACancelledTaskNeverFiresAndIsFoundAgain(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	r := w.own()
	past := w.park(1, time.Now())
	w.eachOnce(past)
	dueAt := time.Now().Add(notSoon)
	all := idsOf(w.park(3, dueAt))
	far := idsOf(w.park(2, dueAt.Add(time.Hour)))
	waits(t, r, 5)
	unknown := ids.NewTaskID(time.Now(), 0, 99)

	ask := []ids.TaskID{all[0], far[1], unknown, idsOf(past)[0], all[0]}
	want := []ids.TaskID{all[0], far[1]}
	check := func(r *running, again bool) {
		t.Helper()
		got, fired := cancelled(t, r, ask...)
		slices.SortFunc(got, func(a, b ids.TaskID) int { return bytes.Compare(a[:], b[:]) })
		if again { // what came of those when they were taken out may have been fired
			if len(fired) != 1+len(want) {
				t.Errorf("fired, when they are asked for again: %v", fired)
			}
			fired = slices.DeleteFunc(fired, func(id ids.TaskID) bool { return slices.Contains(want, id) })
		}
		testkit.Equal(t, "cancelled", got, want)
		if !slices.Equal(fired, idsOf(past)) {
			t.Errorf("fired %v", fired)
		}
	}
	check(r, false)
	check(r, true)
	r.stop()
	r = w.own()
	check(r, true)
	waits(t, r, 1) // one of all fires, two were three
	got := w.fired()
	for k, f := range got {
		if id := ids.TaskID(f[0].record.Id); slices.Contains(want, id) {
			t.Errorf("%s was cancelled and fired", k)
		}
	}
	testkit.Equal(t, "fired", len(got), 3)
}

// countedLog counts the looks at history's checkpoint.
type countedLog struct {
	firing.Log
	looks *atomic.Int64
}

func (l countedLog) Parked(ctx context.Context) (uint64, int64, error) {
	l.looks.Add(1)
	return l.Log.Parked(ctx)
}

// While history is down no one archives what was cancelled, so its record stays.
func TestACancelledTaskStaysUntilHistorySavesACheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var looks atomic.Int64
	r := w.own(func(d *firing.Deps) {
		d.Config.PurgeEvery, d.Config.CancelKeep = 10*time.Millisecond, 0
		d.Log = countedLog{d.Log, &looks}
	})
	all := idsOf(w.park(1, time.Now().Add(time.Hour)))
	w.checkpointAt(100, time.Now().Add(-time.Minute))
	if got, _ := cancelled(t, r, all...); len(got) != 1 {
		t.Fatalf("%d cancelled", len(got))
	}
	w.park(1, time.Now().Add(2*time.Hour)) // the newest message always stays
	waits(t, r, 1)
	from := looks.Load()
	testkit.Eventually(t, soon, func() error {
		if looks.Load() < from+3 {
			return errors.New("no purge yet")
		}
		return nil
	})
	testkit.Equal(t, "messages left", w.stored(), 3)
	if got, _ := cancelled(t, r, all...); len(got) != 1 {
		t.Error("asked again, its record is gone")
	}
	w.checkpointAt(100, time.Now().Add(time.Minute))
	w.left(1)
}

// Every task is cancelled while it becomes due: it is either answered as
// cancelled and never fires, or as fired and fires once.
func TestI10_CancelOrFireButNotBoth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own(smallChunks)
	var mu sync.Mutex
	out := map[ids.TaskID]bool{}
	var all []ids.TaskID
	for range 10 {
		all = append(all, idsOf(w.park(100, time.Now().Add(150*time.Millisecond)))...)
	}
	testkit.Eventually(t, soon, func() error {
		if r.waiting.Load() == 0 && r.fired.Load() == 0 {
			return errors.New("not read yet")
		}
		return nil
	})
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for part := range slices.Chunk(all[i*len(all)/4:(i+1)*len(all)/4], 7) {
				answer, err := r.Cancel(t.Context(), wanted(part))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, data := range answer.Records {
					var record logv1.Record
					testkit.Check(t, record.UnmarshalVT(data))
					out[ids.TaskID(record.Id)] = true
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	waits(t, r, 0)
	got := w.fired()
	if len(got)+len(out) != len(all) {
		t.Errorf("%d fired and %d cancelled of %d", len(got), len(out), len(all))
	}
	for k, f := range got {
		if len(f) != 1 || out[ids.TaskID(f[0].record.Id)] {
			t.Errorf("%s fired %d times, cancelled: %v", k, len(f), out[ids.TaskID(f[0].record.Id)])
		}
	}
}

// An owner that was overtaken must not fire what its rival has cancelled.
func TestI10_ATombstoneOfAnotherOwnerHolds(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	dueAt := time.Now().Add(notSoon)
	all := idsOf(w.park(10, dueAt))
	deaf := w.own(func(d *firing.Deps) { d.Store = deafStore{d.Store} })
	r := w.own()
	got, _ := cancelled(t, r, all[:5]...)
	testkit.MustEqual(t, "cancelled", len(got), 5)
	if err := <-deaf.ended; !errors.Is(err, firing.ErrOvertaken) {
		t.Errorf("the deaf owner ended with %v", err)
	}
	deaf.ended <- nil
	waits(t, r, 0)
	fired := w.fired()
	testkit.Equal(t, "fired", len(fired), 5)
	for _, f := range fired {
		if len(f) != 1 || slices.Contains(got, ids.TaskID(f[0].record.Id)) {
			t.Error("a cancelled task fired, or one twice")
		}
	}
}

// An owner that was overtaken, by one of which the clock is not behind, reads the tombstone of a third. It
// must not say that the task was taken out: it has been fired.
func TestI6_AnOvertakenOwnerDoesNotAnswerFromAnothersTombstone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	behind := w.own(func(d *firing.Deps) { d.Now = func() time.Time { return time.Now().Add(-time.Hour) } })
	dueAt := time.Now().Add(200 * time.Millisecond)
	all := w.park(2, dueAt)
	if got, _ := cancelled(t, behind, ids.TaskID(all[0].Id)); len(got) != 1 { // it stores a cursor
		t.Fatalf("%d cancelled", len(got))
	}
	w.own()
	w.eachOnce(all[1:])
	w.append(topology.Timer(0, topology.TimerBucket(dueAt.UnixMilli())), &logv1.Batch{Tombstones: [][]byte{all[1].Id}, TombstoneParkings: []uint32{all[1].Parkings}})
	if got, err := behind.Cancel(t.Context(), wanted(idsOf(all[1:]))); !errors.Is(err, firing.ErrNotServing) {
		t.Fatalf("it answers %+v, %v", got, err)
	}
	if err := <-behind.ended; !errors.Is(err, firing.ErrOvertaken) {
		t.Errorf("it ended with %v", err)
	}
	behind.ended <- nil
}

// interruptedLog has something happen before it tells the cursor.
type interruptedLog struct {
	firing.Log
	before func()
}

func (l interruptedLog) Cursor(ctx context.Context) (due.Cursor, uint64, error) {
	l.before()
	return l.Log.Cursor(ctx)
}

// A caller that builds upon the cursor behind a tombstone knows the tombstone, though it had read the store
// before that was written.
func TestI6_WhoLoadsACursorKnowsTheTombstonesBeforeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := idsOf(w.park(2, time.Now().Add(time.Hour)))
	r := w.own()
	next := w.owner(func(d *firing.Deps) {
		d.Log = interruptedLog{d.Log, func() {
			if got, _ := cancelled(t, r, all[0]); len(got) != 1 {
				t.Errorf("%d cancelled", len(got))
			}
		}}
	})
	testkit.NoError(t, next.Load(t.Context()))
	testkit.Equal(t, "wait after the load", next.waiting.Load(), 1)
}
