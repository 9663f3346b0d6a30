package demo

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var errBusy = errors.New("busy")

// attempt runs one attempt of a task as a worker does; a handler that panics is
// recovered from outside of the middleware.
func attempt(l *ledger, id string, number int, handle func() error) {
	run := l.watch(func(context.Context, *yard.Attempt) (yard.Payload, error) { return yard.Payload{}, handle() })
	defer func() { _ = recover() }()
	_, _ = run(context.Background(), &yard.Attempt{TaskID: id, Number: number, Failures: number - 1, MaxAttempts: 3, CreatedAt: time.Now()})
}

func fails(err error) func() error { return func() error { return err } }

func TestLedgerCountsAttempts(t *testing.T) {
	l := newLedger(time.Now())
	l.accept(&kind{}, []string{"a", "b", "c", "d", "e"}, time.Now())
	attempt(l, "a", 1, fails(errBusy))
	attempt(l, "a", 2, fails(nil))
	attempt(l, "b", 1, fails(yard.NonRetryable(fmt.Errorf("%w: closed", errForGood))))
	attempt(l, "c", 3, fails(errBusy))
	attempt(l, "d", 1, func() error { panic("bug") })
	l.cancel(1)
	want := counts{accepted: 5, most: 1, succeeded: 1, failed: 4, retried: 2, givenUp: 2, cancelled: 1}
	if got := l.snapshot(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	testkit.Equal(t, "finished", l.snapshot().finished(), 4)
}

func TestLedgerSeesWhatMustNotHappen(t *testing.T) {
	l := newLedger(time.Now())
	l.accept(&kind{}, []string{"a", "a"}, time.Now())
	attempt(l, "a", 1, func() error {
		attempt(l, "a", 1, fails(nil)) // while the first still runs
		return nil
	})
	attempt(l, "unknown", 1, fails(nil))
	c := l.snapshot()
	if c.twice != 1 || c.overlaps != 1 || c.most != 2 || l.tasks["a"].successes != 2 {
		t.Errorf("%+v, %d successes", c, l.tasks["a"].successes)
	}
	if r := (&tenant{ledger: l}).compare(); r.Leftovers != 0 || r.Disagreed != 1 || r.Twice != 3 {
		t.Errorf("the report is %+v", r)
	}
}

func TestLedgerKnowsLeftoversByTheirAge(t *testing.T) {
	l := newLedger(time.Now().Add(time.Hour))
	attempt(l, "old", 1, fails(nil))
	if r := (&tenant{ledger: l}).compare(); r.Leftovers != 1 || r.Disagreed != 0 {
		t.Errorf("the report is %+v", r)
	}
}

func TestLedgerMeasuresFromSubmitToStart(t *testing.T) {
	l := newLedger(time.Now())
	sentAt := time.Now().Add(-time.Second)
	x := yard.TaskType{Name: "x"}
	attempt(l, "a", 1, fails(nil)) // before the answer to the submit is there
	l.accept(&kind{TaskType: x}, []string{"a", "c"}, sentAt)
	l.accept(&kind{TaskType: x, delay: time.Hour}, []string{"b"}, sentAt)
	attempt(l, "b", 1, fails(nil))
	attempt(l, "c", 1, fails(errBusy))
	attempt(l, "c", 2, fails(nil))
	if w := l.wait("x"); w.Type != "x" || w.Tasks != 2 || w.P50 < 900 || w.Max < w.P50 {
		t.Errorf("%+v, want 2 waits of about a second", w)
	}
}

func TestQuantiles(t *testing.T) {
	var sorted []time.Duration
	for i := range 10 {
		sorted = append(sorted, time.Duration(i+1)*time.Millisecond)
	}
	for q, want := range map[float64]float64{0: 1, 0.05: 1, 0.5: 5, 0.51: 6, 0.95: 10, 1: 10} {
		testkit.Equal(t, "the quantile", quantile(sorted, q), want)
	}
	testkit.Equal(t, "the median of nothing", quantile(nil, 0.5), 0)
}
