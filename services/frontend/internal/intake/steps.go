package intake

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/intake"
)

// askedAtOnce bounds the partitions that are asked at once.
const askedAtOnce = 16

// How soon a step is tried again; more seldom as it goes on.
const againFirst, againLast = 100 * time.Millisecond, time.Second

// waitOf is for how long a step waits. Those that a cluster has refused since another one was on its way come again at different times.
func waitOf(step core.Step) time.Duration {
	if step.For == core.InTransit {
		return core.InTransit/5 + time.Duration(rand.Int64N(int64(2*core.InTransit)))
	}
	return step.For
}

// stepper is a share that has a goroutine of its own.
type stepper interface {
	now() time.Time
	Next(now time.Time) core.Step
	Expired() core.Step
	// do carries out a step that is neither a wait nor the end.
	do(ctx context.Context, in *Intake, step core.Step)
}

// run carries out the steps of a share until it ends.
func (in *Intake) run(ctx context.Context, s stepper) core.End {
	for delay := backoff.New(againFirst, againLast); ; {
		step := s.Next(s.now())
		if ctx.Err() != nil {
			step = s.Expired()
		}
		switch step.Do {
		case core.Finish:
			return step.End
		case core.Wait:
			d := waitOf(step)
			if step.Grows {
				d = max(d, delay.Next())
			}
			backoff.Sleep(ctx, d)
		default:
			s.do(ctx, in, step)
		}
	}
}

// outcomeOf is what an append says.
func outcomeOf(err error, duplicate bool) core.Outcome {
	switch {
	case err == nil && duplicate:
		return core.Duplicate
	case err == nil:
		return core.Acknowledged
	case errors.As(err, new(*fault.Error)):
		return core.Broken
	case errors.Is(err, natslog.ErrWrongLast):
		return core.Superseded
	case errors.Is(err, natslog.ErrFull):
		return core.NoRoom
	case errors.Is(err, natslog.ErrNotStored):
		return core.NotSent
	}
	return core.NoAnswer
}
