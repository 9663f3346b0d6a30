package firing_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

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

// fireEarly has tasks fire that wait.
func fireEarly(t *testing.T, r *running, all []*logv1.Record) {
	t.Helper()
	a, err := r.FireEarly(t.Context(), wanted(idsOf(all)))
	testkit.NoError(t, err)
	testkit.Equal(t, "coming", a.Coming, idsOf(all))
}

func waits(t *testing.T, r *running, n int64) {
	t.Helper()
	countsTo(t, "wait", r.waiting.Load, n)
}

func TestATaskFiresBeforeItIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var early atomic.Int64
	r := w.own(func(d *firing.Deps) { d.Gauges.Early = func(n int) { early.Add(int64(n)) } })
	past := w.park(1, time.Now())
	w.eachOnce(past)
	all := w.park(3, time.Now().Add(time.Hour), func(i int, r *logv1.Record) { r.Order = &logv1.Order{Key: "k"} })
	far := w.park(2, time.Now().Add(24*time.Hour))
	waits(t, r, 5)

	want := []*logv1.Record{all[1], far[0]}
	ask := wanted(append(idsOf(want), ids.NewTaskID(time.Now(), 0, 99), ids.TaskID(past[0].Id), ids.TaskID(far[0].Id)))
	a, err := r.FireEarly(t.Context(), ask)
	if err != nil || !slices.Equal(a.Coming, idsOf(want)) || len(a.Fired) != 1 || a.Fired[0].ID != ids.TaskID(past[0].Id) {
		t.Fatalf("%+v, %v", a, err)
	}
	got := w.eachOnce(append(want, past...))
	for _, r := range want {
		f := got[key(r)][0]
		testkit.Equal(t, "filed under", f.subject, topology.Submit(0, ids.LaneLater, r.Domain, r.Tasklist))
		if !proto.Equal(f.record, r) {
			t.Errorf("%s was changed: %v", key(r), f.record)
		}
	}
	waits(t, r, 3)
	testkit.Equal(t, "fired early", early.Load(), 2)
	if a, err = r.FireEarly(t.Context(), ask); err != nil || len(a.Coming) != 0 || len(a.Fired) != 3 || a.Fired[0].LogSeq == 0 {
		t.Errorf("asked again: %+v, %v", a, err)
	}
	r.stop()
	r = w.own()
	waits(t, r, 3)
	fireEarly(t, r, all[:1])
	w.eachOnce(append(want, past[0], all[0]))
}

// countedEarly notes what early messages name.
type countedEarly struct {
	firing.Pruner
	store func(names int)
}

func (c countedEarly) Early(ctx context.Context, bucket int64, data []byte) error {
	var b logv1.Batch
	if err := b.UnmarshalVT(data); err != nil {
		return err
	}
	c.store(len(b.Early))
	return c.Pruner.Early(ctx, bucket, data)
}

// TestI14_FewFireEarlyAtATime: the tasks of other domains that are due wait for those, and not for all that a domain asks for.
func TestI14_FewFireEarlyAtATime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ payload, message, most int }{{100, 300, 256}, {100, 1, 64}, {300 << 10, 1, 3}} {
		w := newWorld(t)
		named := 0
		r := w.own(func(d *firing.Deps) {
			d.Pruner = countedEarly{d.Pruner, func(names int) {
				if fired := len(w.fired()); names > c.most || fired != named {
					t.Errorf("%+v: %d fire early, when %d of %d before them have", c, names, fired, named)
				}
				named += names
			}}
		})
		var all []*logv1.Record
		for len(all) < 2*c.most+1 {
			all = append(all, w.park(c.message, time.Now().Add(48*time.Hour).Truncate(time.Hour), func(_ int, r *logv1.Record) { r.Payload = make([]byte, c.payload) })...)
		}
		for len(all) > named {
			if a, err := r.FireEarly(t.Context(), wanted(idsOf(all))); err != nil || len(a.Coming)+len(a.Fired) != len(all) {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		w.eachOnce(all)
	}
}

// TestNothingFiresEarlyWithoutRoom in the log; it does once there is room.
func TestNothingFiresEarlyWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var room atomic.Bool
	r := w.own(func(d *firing.Deps) {
		d.StorageFull = func() string { return map[bool]string{false: "it is full"}[room.Load()] }
	})
	all := w.park(2, time.Now().Add(time.Hour))
	waits(t, r, 2)
	for range 2 {
		a, err := r.FireEarly(t.Context(), wanted(append(idsOf(all), ids.NewTaskID(time.Now(), 0, 99))))
		if err != nil || !slices.Equal(a.Coming, idsOf(all)) || len(a.Fired) > 0 || len(w.fired()) > 0 && !room.Load() {
			t.Errorf("%+v, %v", a, err)
		}
		room.Store(true)
	}
	w.eachOnce(all)
}

// lateStore hands out nothing that is written after the load until it is let.
type lateStore struct {
	firing.Store
	let chan struct{}
}

func (s lateStore) Read(ctx context.Context, from uint64, handle func(firing.Stored) error) error {
	select {
	case <-s.let:
		return s.Store.Read(ctx, from, handle)
	case <-ctx.Done():
		return nil
	}
}

// TestATaskFiresEarlyThatWasJustParked: the owner has not read it. Without it history would say that there is no such task.
func TestATaskFiresEarlyThatWasJustParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	let := make(chan struct{})
	r := w.own(func(d *firing.Deps) { d.Store = lateStore{d.Store, let} })
	all := w.park(2, time.Now().Add(time.Hour))
	time.AfterFunc(200*time.Millisecond, func() { close(let) })
	a, err := r.FireEarly(t.Context(), wanted(idsOf(all)))
	testkit.NoError(t, err)
	testkit.MustEqual(t, "tasks that come", len(a.Coming), len(all))
	w.eachOnce(all)
}

// Every task is asked for while it becomes due.
func TestI10_DueOrEarlyEachFiresOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.own(smallChunks)
	var all []*logv1.Record
	for range 10 {
		all = append(all, w.park(100, time.Now().Add(150*time.Millisecond))...)
	}
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for part := range slices.Chunk(all[i*len(all)/4:(i+1)*len(all)/4], 7) {
				if a, err := r.FireEarly(t.Context(), wanted(idsOf(part))); err != nil || len(a.Coming)+len(a.Fired) != len(part) {
					t.Errorf("of %d: %+v, %v", len(part), a, err)
				}
			}
		})
	}
	callers.Wait()
	w.eachOnce(all)
	waits(t, r, 0)
}

// TestI10_AnOwnerThatHasNotReadTheEarlyMessage fires nothing twice.
func TestI10_AnOwnerThatHasNotReadTheEarlyMessage(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for tasks to be due, or for answers that do not come")
	w := newWorld(t)
	all := w.park(10, time.Now().Add(notSoon))
	deaf := w.own(func(d *firing.Deps) { d.Store = deafStore{d.Store} })
	r := w.own()
	fireEarly(t, r, all[:5])
	w.eachOnce(all[:5])
	if err := <-deaf.ended; !errors.Is(err, firing.ErrOvertaken) {
		t.Errorf("the deaf owner ended with %v", err)
	}
	deaf.ended <- nil
	w.eachOnce(all)
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

// TestI10_WhoLoadsACursorKnowsTheEarlyMessagesBeforeIt, though it had read the store before those were written.
func TestI10_WhoLoadsACursorKnowsTheEarlyMessagesBeforeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := w.park(2, time.Now().Add(time.Hour))
	r := w.own()
	next := w.own(func(d *firing.Deps) {
		d.Log = interruptedLog{d.Log, func() {
			fireEarly(t, r, all[:1])
			w.eachOnce(all[:1])
		}}
	})
	countsTo(t, "wait after the load", next.waiting.Load, 1)
	w.eachOnce(all[:1])
}
