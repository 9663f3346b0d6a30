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
	l.accept(make([]yard.Task, 5), []string{"a", "b", "c", "d", "e"}, time.Now())
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
	l.accept(make([]yard.Task, 2), []string{"a", "a"}, time.Now())
	attempt(l, "a", 1, func() error {
		attempt(l, "a", 1, fails(nil)) // while the first still runs
		return nil
	})
	attempt(l, "unknown", 1, fails(nil))
	c := l.snapshot()
	if c.twice != 1 || c.overlaps != 1 || c.most != 2 || l.successes("a") != 2 {
		t.Errorf("%+v, %d successes", c, l.successes("a"))
	}
	if leftovers, unexplained := l.unaccepted(); leftovers != 0 || unexplained != 1 {
		t.Errorf("%d leftovers and %d unexplained, want 0 and 1", leftovers, unexplained)
	}
}

func TestLedgerKnowsLeftoversByTheirAge(t *testing.T) {
	l := newLedger(time.Now().Add(time.Hour))
	attempt(l, "old", 1, fails(nil))
	if leftovers, unexplained := l.unaccepted(); leftovers != 1 || unexplained != 0 {
		t.Errorf("%d leftovers and %d unexplained, want 1 and 0", leftovers, unexplained)
	}
}

func TestLedgerMeasuresFromSubmitToStart(t *testing.T) {
	l := newLedger(time.Now())
	sentAt := time.Now().Add(-time.Second)
	tasks := []yard.Task{{Type: "x"}, {Type: "x", Delay: time.Hour}, {Type: "x"}}
	attempt(l, "a", 1, fails(nil)) // before the answer to the submit is there
	l.accept(tasks, []string{"a", "b", "c"}, sentAt)
	attempt(l, "b", 1, fails(nil))
	attempt(l, "c", 1, fails(errBusy))
	attempt(l, "c", 2, fails(nil))
	if waits := l.wait("x"); len(waits) != 2 || waits[0] < 900*time.Millisecond || waits[1] < waits[0] {
		t.Errorf("they waited for %v, want 2 waits of about a second, in order", waits)
	}
}

func TestQuantiles(t *testing.T) {
	sorted := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for q, want := range map[float64]time.Duration{0: 1, 0.05: 1, 0.5: 5, 0.51: 6, 0.95: 10, 1: 10} {
		testkit.Equal(t, "the quantile", quantile(sorted, q), want)
	}
	testkit.Equal(t, "the median of nothing", quantile(nil, 0.5), 0)
}
