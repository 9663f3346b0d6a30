package yard

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
)

const (
	// askEvery is how often a worker asks whether it is drained that has no room for tasks, and so no poll under way.
	askEvery = 5 * time.Second
	// drainedPause is the least time between two polls of a drained worker. The engine holds each for 2 s.
	drainedPause = time.Second
)

// StoppedError is what Run returns if an operator stopped the worker (Client.StopWorker, `yard worker stop`). Its handlers had their time to finish, as when Run's
// context ends. A program that starts another worker, or is started again by its supervisor, is a new worker, and gets tasks.
type StoppedError struct {
	// Reason is why and By who, for people; both may be empty.
	Reason, By string
}

// Error implements error.
func (e *StoppedError) Error() string {
	text := "the worker was stopped by an operator"
	if e.By != "" {
		text += ", " + e.By
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// drainState is whether the worker is drained, as far as it has heard.
type drainState struct {
	mu sync.Mutex
	// drain is nil while it is not drained; it was heard at an instant.
	drain   *yardv1.WorkerDrain
	heardAt time.Time
}

// hear takes in the answer to a question that was sent at an instant, and reports whether it changes anything. An answer to a question from before
// the last change does not.
func (t *drainState) hear(d *yardv1.WorkerDrain, asked time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.GetSinceMs() == t.drain.GetSinceMs() && d.GetStop() == t.drain.GetStop() || d == nil && asked.Before(t.heardAt) {
		return false
	}
	t.drain, t.heardAt = d, time.Now()
	return true
}

// stopped is what Run returns if the worker was asked to stop, or nil.
func (t *drainState) stopped() *StoppedError {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.drain.GetStop() {
		return nil
	}
	return &StoppedError{Reason: t.drain.Reason, By: t.drain.By}
}

// hear does what an operator asks for, by the answer to a question that was sent at an instant.
func (s *session) hear(d *yardv1.WorkerDrain, asked time.Time) {
	if !s.drained.hear(d, asked) {
		return
	}
	reason := d.GetReason()
	if by := d.GetBy(); by != "" {
		reason = strings.TrimPrefix(reason+", by "+by, ", ")
	}
	log := s.log.With("reason", reason)
	switch {
	case d == nil:
		s.log.Info("the worker is resumed by an operator")
	case d.Stop:
		log.Info("the worker is stopped by an operator")
		s.stopPolls()
	default:
		log.Info("the worker is drained by an operator: it gets no tasks until it is resumed")
	}
}

// askWhetherDrained asks, while the worker has no room for tasks, whether it is to stop, until ctx ends.
func (s *session) askWhetherDrained(ctx context.Context) {
	for pause(ctx, pace.Of(askEvery)) {
		id := s.signs.ID()
		running, unreported := s.slots.left()
		if id == "" || running < s.worker.cfg.concurrency && unreported < unreportedMax {
			continue
		}
		req := &yardv1.PollRequest{Tasklist: s.worker.tasklists[0], NoTasks: true, Worker: s.worker.cfg.identity, WorkerId: id}
		asked := time.Now()
		if resp, err := s.engine.poll(ctx, req); err == nil {
			s.hear(resp.GetDrain(), asked)
		}
	}
}
