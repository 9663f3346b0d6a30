package yard

import (
	"context"
	"math/rand/v2"
	"time"
)

// Waits between tries: they double from the first to the longest, each spread
// over its upper half so that many clients do not come back at one instant.
const (
	backoffFirst = 50 * time.Millisecond
	backoffMax   = 2 * time.Second
)

// backoff is the wait after the try-th failure in a row (0 is the first). A
// server that said when to come back is obeyed, with up to half of it on top.
func backoff(try int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return retryAfter + rand.N(retryAfter/2+1)
	}
	d := backoffMax
	if try < 6 {
		d = min(backoffFirst<<try, backoffMax)
	}
	return d/2 + rand.N(d/2+1)
}

// pause waits for d. It returns false, at once, where ctx ends before d is over:
// there would be no time for another try.
func pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// restOf is how long the next step of many waits: two begin at least so far apart as the tasks of the first take at the rate, in tasks a second.
func restOf(began time.Time, tasks int64, rate int) time.Duration {
	return max(time.Duration(tasks)*time.Second/time.Duration(rate)-time.Since(began), 0)
}
