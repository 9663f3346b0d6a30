package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// waitFor asks until it is done, or for so long, and then returns an error with what was seen.
func waitFor(ctx context.Context, within, every time.Duration, ask func() (done bool, seen string, err error)) error {
	for deadline := time.Now().Add(within); ; {
		done, seen, err := ask()
		switch {
		case err != nil || done:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("%s after %v", seen, within)
		case !sleepUntil(ctx, time.Now().Add(every)):
			return context.Cause(ctx)
		}
	}
}

// sleepUntil returns false if ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	if wait := time.Until(at); wait > 0 {
		return backoff.Sleep(ctx, wait)
	}
	return ctx.Err() == nil
}
