package yard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// latePolls delivers its tasks only when the poll is given up, as an answer that
// crosses the withdrawal does.
type latePolls struct {
	*fakeEngine
	late []*yardv1.PolledTask
}

func (p *latePolls) poll(ctx context.Context, _ *yardv1.PollRequest) (*yardv1.PollResponse, error) {
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	tasks := p.late
	p.late = nil
	return &yardv1.PollResponse{Tasks: tasks}, nil
}

func TestDrainHandsBackWhatCameTooLate(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.worker.HandleFunc("x", func(context.Context, *Attempt) (Payload, error) {
			t.Error("a task was begun while the worker stopped")
			return Payload{}, nil
		})
		polls := &latePolls{fakeEngine: b.engine, late: granted("x", 3)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- newSession(b.worker, polls).run(ctx) }()
		synctest.Wait()
		stop()
		checktest.Check(t, <-done)
		if len(b.engine.failed) != 3 {
			t.Fatalf("%d of 3 handed back", len(b.engine.failed))
		}
		for _, f := range b.engine.failed {
			if !f.NotStarted {
				t.Errorf("an attempt was burnt: %v", f)
			}
		}
	})
}

func TestDrainLetsHandlersFinish(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithDrainTimeout(time.Minute))
		b.worker.HandleFunc("x", func(ctx context.Context, _ *Attempt) (Payload, error) {
			time.Sleep(40 * time.Second)
			return Payload{}, ctx.Err()
		})
		b.start(granted("x", 4)...)
		synctest.Wait()
		b.finish(t)
		if len(b.engine.completed) != 4 || len(b.engine.failed) != 0 {
			t.Errorf("completed %d, failed %v", len(b.engine.completed), b.engine.failed)
		}
	})
}

func TestDrainEndsSlowHandlersAndHandsThemBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithDrainTimeout(time.Second))
		var cause error
		b.worker.HandleFunc("x", func(ctx context.Context, _ *Attempt) (Payload, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return Payload{}, ctx.Err()
		})
		b.start(granted("x", 1)...)
		synctest.Wait()
		b.finish(t)
		checktest.Equal(t, "the handler's context ended with", cause, ErrStopping)
		if len(b.engine.failed) != 1 || !b.engine.failed[0].NotStarted {
			t.Errorf("got %v", b.engine.failed)
		}
	})
}

func TestDrainTellsWhatIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithDrainTimeout(time.Second))
		release := make(chan struct{})
		b.worker.HandleFunc("stubborn", waitingFor(release))
		b.worker.HandleFunc("quick", failing(errors.New("x")))
		b.engine.script = func(verb string, _ int, ids []string) ([]*yardv1.Verdict, error) {
			if verb == "fail" {
				return nil, fault.New(fault.Unavailable, "nobody")
			}
			return nil, nil
		}
		b.start(append(granted("stubborn", 2), granted("quick", 3)...)...)
		synctest.Wait()
		b.stop()
		var left *DrainError
		if err := <-b.done; !errors.As(err, &left) || left.Running != 2 || left.Unreported != 3 {
			t.Errorf("got %v", err)
		}
		close(release) // the bubble requires that everything ends
	})
}
