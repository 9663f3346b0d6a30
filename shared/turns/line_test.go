package turns

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestARestFollowsEachTurn: the next one begins when as much time is over as the one before took, whatever that ended with.
func TestARestFollowsEachTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := NewLine(1), time.Now()
		failed := errors.New("failed")
		var at []time.Duration
		run := func() error {
			return l.Run(t.Context(), "a", func() error {
				at = append(at, time.Since(began))
				time.Sleep(3 * time.Second)
				return failed
			})
		}
		for range 3 {
			if err := run(); err != failed {
				t.Error(err)
			}
		}
		testkit.Equal(t, "they began at", at, []time.Duration{0, 6 * time.Second, 12 * time.Second})
	})
}

// TestWhoGivesUpIsNotRun: one whose context ends while it waits, or before its turn comes at once, does not run, and the next one has its turn. One too many is
// refused.
func TestWhoGivesUpIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(2)
		var ran []string
		run := func(ctx context.Context, who string) chan error {
			ended := make(chan error, 1)
			go func() {
				ended <- l.Run(ctx, "a", func() error {
					ran = append(ran, who)
					time.Sleep(time.Second)
					return nil
				})
			}()
			synctest.Wait()
			return ended
		}
		gone, leave := context.WithCancel(t.Context())
		first, second, last := run(t.Context(), "first"), run(gone, "gone"), run(t.Context(), "last")
		if err := <-run(t.Context(), "one too many"); err != ErrBusy {
			t.Error(err)
		}
		leave()
		for who, c := range map[string]struct {
			ended chan error
			want  error
		}{"first": {first, nil}, "gone": {second, context.Canceled}, "last": {last, nil}} {
			if err := <-c.ended; !errors.Is(err, c.want) {
				t.Errorf("%s ended with %v", who, err)
			}
		}
		if !slices.Equal(ran, []string{"first", "last"}) {
			t.Errorf("%v ran", ran)
		}
		time.Sleep(time.Second) // its rest
		synctest.Wait()
		if err := <-run(gone, "late"); err != context.Canceled || len(ran) != 2 {
			t.Errorf("it ended with %v, %v ran", err, ran)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if l.order.taken || len(l.order.waiting) > 0 {
			t.Errorf("the turn is not over: %+v", l.order)
		}
	})
}
