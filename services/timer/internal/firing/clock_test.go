package firing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R23: a cursor of the future, as an owner of old wrote it, stops no one and is
// not forgotten: what it fired early is not fired again.
func TestR23_ACursorOfTheFutureStopsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	early := w.park(2, time.Now().Add(30*time.Minute))
	d := w.deps()
	future := due.Cursor{Epoch: 1, Line: due.Line{Base: due.Mark{DueMS: time.Now().Add(time.Hour).UnixMilli(), Seq: 1}}}
	testkit.NoError(t, testkit.Err(d.Log.Append(t.Context(), nil, future, 0)))
	far := w.park(1, time.Now().Add(20*time.Minute))
	r := w.own()
	want := w.park(3, time.Now().Add(100*time.Millisecond))
	w.eachOnce(want)
	r.stop()
	r = w.own() // from a cursor with parts
	want = append(want, w.park(3, time.Now())...)
	w.eachOnce(want)
	waitsIn(t, w, far)
	a, err := r.FireEarly(t.Context(), wanted(idsOf(append(early, far...))))
	if err != nil || len(a.Coming) != 1 || len(a.Fired) != 2 {
		t.Errorf("of two fired by the clock ahead and one that waits: %+v, %v", a, err)
	}
	w.eachOnce(append(want, far...))
}

// waitsIn has a new owner look for what still waits, by its own load.
func waitsIn(t *testing.T, w *world, want []*logv1.Record) {
	t.Helper()
	r := w.own()
	testkit.Eventually(t, soon, func() error {
		if r.waiting.Load() != int64(len(want)) {
			return errors.New("not loaded")
		}
		return nil
	})
	for _, id := range idsOf(want) {
		if at, err := r.Locate(t.Context(), id, ""); err != nil || at.Record == nil {
			t.Errorf("%v does not wait: %v", id, err)
		}
	}
	r.stop()
}
