package yard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// TestADeadlineIsMoved: the handler's context ends when a heartbeat last said, later or sooner, and contexts made from it end alike.
func TestADeadlineIsMoved(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, time.Minute: time.Minute, 0: 5 * time.Minute} {
		onBench(t, func(t *testing.T, b *bench) {
			began := time.Now()
			b.engine.script = func(verb string, _ int, ids []string) (all []*yardv1.Verdict, err error) {
				for range ids {
					v := &yardv1.Verdict{Code: codeOK}
					if verb == "heartbeat" && left > 0 {
						v.TimeoutMs = max(1, time.Until(began.Add(left)).Milliseconds())
					}
					all = append(all, v)
				}
				return all, nil
			}
			ended := make(chan error, 1)
			b.worker.HandleFunc("x", func(ctx context.Context, _ *Attempt) (Payload, error) {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				<-child.Done()
				ended <- errors.Join(ctx.Err(), child.Err())
				if context.Cause(ctx) != context.DeadlineExceeded || child.Err() != context.DeadlineExceeded {
					t.Errorf("it ends with %v, and its child with %v", context.Cause(ctx), child.Err())
				}
				return Payload{}, ctx.Err()
			})
			b.start()
			task := granted("x", 1)
			task[0].TimeoutMs = (5 * time.Minute).Milliseconds()
			b.engine.push(task...)
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with %v left: %v", left, err)
			}
			if after := time.Since(began); (after - want).Abs() > 2*time.Second {
				t.Errorf("with %v left it ends after %v", left, after)
			}
			b.finish(t)
		})
	}
}

// TestAnUntilEndsWithItsParent: with its cause, and what is registered at the end runs, too.
func TestAnUntilEndsWithItsParent(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	u := newUntil(parent, time.Now().Add(time.Hour))
	calls := make(chan string, 3)
	kept := u.AfterFunc(func() { calls <- "kept" })
	if stop := u.AfterFunc(func() { calls <- "stopped" }); !stop() || stop() {
		t.Error("what waits is stopped once")
	}
	if u.Err() != nil {
		t.Error(u.Err())
	}
	cancel(ErrCancelled)
	if got := <-calls; got != "kept" || kept() {
		t.Errorf("%s ran", got)
	}
	<-u.Done()
	u.AfterFunc(func() { calls <- "late" })
	if got := <-calls; got != "late" || u.Err() != context.Canceled || context.Cause(u) != ErrCancelled {
		t.Errorf("%s ran, %v, %v", got, u.Err(), context.Cause(u))
	}
	u.move(time.Now())
	u.stop()
}
