package yard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// poll is one poll loop. It returns nil once ctx has ended, and an error only
// when the connection is closed for good.
func (s *session) poll(ctx context.Context) error {
	barren := 0 // polls in a row that failed, or came back too soon without work
	for {
		n := s.slots.reserve(ctx, s.worker.cfg.pollBatch)
		if n == 0 {
			return nil
		}
		asked := time.Now()
		tasks, err := s.engine.Poll(ctx, &yardv1.PollRequest{
			Tasklist: s.worker.tasklist,
			MaxTasks: int32Of(n),
			WaitMs:   s.worker.cfg.pollWait.Milliseconds(),
			Types:    s.types,
			Worker:   s.worker.cfg.identity,
		})
		s.begin(ctx, tasks, n)
		switch {
		case err != nil && s.engine.gone():
			return fmt.Errorf("poll: %w", closedForGood())
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.complain(barren, err)
			barren++
		case len(tasks) == 0 && time.Since(asked) < s.worker.cfg.pollWait/2:
			// An owner that is leaving answers at once; so may one that is ill.
			barren++
		default:
			if barren > complainFrom {
				s.log.Info("polls are answered again")
			}
			barren = 0
			continue
		}
		if !pause(ctx, backoff(barren-1, retryAfterOf(err))) {
			return nil
		}
	}
}

// complainFrom is the failed poll that is worth a warning; those before it are
// what a change of owners looks like.
const complainFrom = 3

func (s *session) complain(barren int, err error) {
	if barren == complainFrom || !fault.CodeOf(err).Retryable() && barren == 0 {
		s.log.Warn("polls fail; they are tried on", "error", err)
		return
	}
	s.log.Debug("a poll failed", "error", err)
}

// begin starts the tasks of a poll that had reserved n slots, and frees the
// slots it did not use. While the worker stops nothing is started any more.
func (s *session) begin(ctx context.Context, tasks []*yardv1.PolledTask, n int) {
	if ctx.Err() != nil {
		s.slots.cancel(n)
		s.returnUnstarted(tasks)
		return
	}
	if extra := len(tasks) - n; extra > 0 {
		s.log.Error("the engine sent more tasks than were asked for", "asked", n, "sent", len(tasks))
		s.returnUnstarted(tasks[n:])
		tasks = tasks[:n]
	}
	if unused := n - len(tasks); unused > 0 {
		s.slots.cancel(unused)
	}
	for _, t := range tasks {
		s.start(t)
	}
}

func closedForGood() error {
	return errors.Join(fault.New(fault.Unavailable, "the connection to NATS is closed"), nats.ErrConnectionClosed)
}
