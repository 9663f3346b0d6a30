package yardtest

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	// lookEvery is how often the engine is asked again. In fake time, which costs nothing to wait for, each look is twice as
	// far from the one before, up to lookSeldom.
	lookEvery  = 5 * time.Millisecond
	lookSeldom = time.Second
	// farOff is the delay of a task that must not become due in a test.
	farOff = 24 * time.Hour
	// priorities are 1 to this.
	priorities = 5
)

// caughtUp returns when the engine has read all tasks that were stored before the call, so that a list has them.
//
// An engine answers a submit when the task is in its log, and reads the log a moment later, in order for each priority,
// and for delayed tasks. So a task of each of these is submitted, in a domain of our own, and what came before is read
// when those are. They stay where they are: a finished task would take a place in the lists of finished ones.
func (h *host) caughtUp(ctx context.Context) error {
	for priority := range priorities + 1 {
		task := yard.Task{Type: "barrier", Tasklist: "barrier", Priority: priority}
		if priority == 0 {
			task.Delay = farOff
		}
		id, err := h.barrier.Submit(ctx, task)
		if err != nil {
			return fmt.Errorf("submit a barrier: %w", err)
		}
		for looks := 0; ; looks++ {
			found, err := h.barrier.Get(ctx, id)
			if err != nil {
				return fmt.Errorf("look for a barrier: %w", err)
			}
			if found.State != yard.StateQueued {
				break
			}
			if err := h.pause(ctx, looks, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause waits before the next look at the engine, after so many without a result, and for as long as nothing can happen.
func (h *host) pause(ctx context.Context, looks int, nothingFor time.Duration) error {
	wait := lookEvery
	if h.faked {
		wait = max(nothingFor, min(lookEvery<<min(looks, 10), lookSeldom))
	}
	backoff.Sleep(ctx, wait)
	return ctx.Err()
}
