package firing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// unreadStore hands out the whole store only when it may.
type unreadStore struct {
	firing.Store
	may chan struct{}
}

func (s unreadStore) ReadRange(ctx context.Context, from, upTo uint64, handle func(firing.Stored) error) error {
	if from == 1 {
		select {
		case <-s.may:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.Store.ReadRange(ctx, from, upTo, handle)
}

// ownSlowly has an owner take over that cannot read the whole store until may is closed.
func (w *world) ownSlowly(c *clock) (r *running, may chan struct{}) {
	w.tb.Helper()
	may = make(chan struct{})
	r = w.own(func(d *firing.Deps) { d.Now, d.Store = c.now, unreadStore{d.Store, may} })
	return r, may
}

// early stores an early message about a task, as an owner does.
func (w *world) early(r *logv1.Record, seq uint64, index int) {
	w.tb.Helper()
	w.append(topology.Timer(0, topology.TimerBucket(r.DueAtMs)), &logv1.Batch{
		Early: [][]byte{r.Id}, EarlyParkings: []uint32{1}, EarlySeqs: []uint64{seq}, EarlyIndexes: []uint32{uint32(index)},
		EarlyBytes: []uint32{uint32(r.SizeVT())}, EarlyDomain: "shop", EarlyTasklist: "mail",
	})
}

// TestI10_ATakeoverFiresBeforeItHasReadAll: what is due, and what an early message names that the last owner did not know. Callers wait until all is read,
// and so does an early message that comes meanwhile.
func TestI10_ATakeoverFiresBeforeItHasReadAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	far := append(w.park(3, time.Now().Add(time.Hour)), w.park(3, time.Now().Add(2*time.Hour))...)
	all := w.park(2, time.Now())
	r := w.ownFar(&c)
	w.eachOnce(all)
	r.stop()
	all = append(all, w.park(2, time.Now())...)
	w.early(far[1], 1, 1)
	r, may := w.ownSlowly(&c)
	all = append(all, far[1])
	w.eachOnce(all)
	w.early(far[4], 2, 1)
	far = append(far, w.park(1, time.Now().Add(time.Hour))...)
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	if _, err := r.Locate(short, idsOf(far)[0], ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller is answered before all is read: %v", err)
	}
	stop()
	w.eachOnce(all)
	close(may)
	w.eachOnce(append(all, far[4]))
	for i, waits := range []bool{true, false, true, true, false, true, true} {
		testkit.Equal(t, "waits", r.located(t, idsOf(far)[i], "shop"), waits)
	}
	countsTo(t, "wait", r.waiting.Load, 5)
	c.add(2 * time.Hour)
	w.eachOnce(append(all, append(far[:1:1], far[2:]...)...))
}

// TestI10_ATakeoverIsStoppedBeforeItHasReadAll, and the next one fires what is left.
func TestI10_ATakeoverIsStoppedBeforeItHasReadAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	far := w.park(3, time.Now().Add(time.Hour))
	all := w.park(2, time.Now())
	r := w.ownFar(&c)
	w.eachOnce(all)
	r.stop()
	for range 2 {
		all = append(all, w.park(2, time.Now())...)
		r, _ = w.ownSlowly(&c)
		w.eachOnce(all)
		r.stop()
	}
	w.ownFar(&c)
	c.add(time.Hour)
	w.eachOnce(append(all, far...))
}

// TestACursorIsWrittenThoughNothingFires, so that a takeover need not read all that came meanwhile before it fires.
func TestACursorIsWrittenThoughNothingFires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c clock
	r := w.ownFar(&c)
	for range 300 {
		w.park(1, time.Now().Add(time.Hour))
	}
	log := w.deps().Log
	testkit.Eventually(t, soon, func() error {
		if cursor, _, err := log.Cursor(t.Context()); err != nil || cursor.EarlyFrom < 256 {
			return errors.Join(err, errors.New("no cursor"))
		}
		return nil
	})
	r.stop()
	r, may := w.ownSlowly(&c)
	w.eachOnce(w.park(1, time.Now()))
	close(may)
	countsTo(t, "wait", r.waiting.Load, 300)
}
