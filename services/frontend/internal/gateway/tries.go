package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// endTries waits until each try of a part that the log has not taken is void, and looks for the tasks once more.
func (pt *part) endTries(ctx context.Context, g *Gateway) error {
	backoff.Sleep(ctx, lastAlive+clocksApart+time.Millisecond-pt.age())
	if err := g.decideStored(ctx, []*part{pt}); err != nil || pt.tasks() == 0 {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	pt.fenced, pt.certain = true, true
	return pt.tooOld(pt.age())
}

// replaces tells whether a try may have changed the task that has a key.
func (pt *part) replaces() bool {
	return slices.ContainsFunc(pt.open, func(one openTask) bool { return pt.of.conflicts[one.where] == yardv1.OnConflict_ON_CONFLICT_REPLACE })
}

// late says why a part must not be sent any more, or nothing. It dates what is sent.
func (pt *part) late() string {
	age := pt.age()
	switch {
	case pt.hasID && pt.tries == 1:
		if age > sendUntil {
			return "the first try of a request is not sent for longer"
		}
		pt.within = aliveFor
	default:
		if age > appendUntil {
			return "the request is too old"
		}
		pt.within = min(age+tryAliveFor, lastAlive)
	}
	if pt.batch() != "" { // the word on its batch fences its tries
		pt.within = 0
	}
	pt.date()
	return ""
}
