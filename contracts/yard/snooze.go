package yard

import "time"

// snoozed is what a handler returns that has nothing to do yet.
type snoozed struct {
	delay time.Duration
	why   string
}

func (e snoozed) Error() string { return e.why }

// Snooze is the error of a handler that has nothing to do yet, such as while what it asks after is not ready: the next attempt comes after d,
// 1 ms to 30 days, and no failure is counted. It counts as a delivery (RetryPolicy.MaxDeliveries). Why is for people, and in the task's
// history. Wrapped in NonRetryable or RetryAfter it is a failure as any other error.
func Snooze(d time.Duration, why string) error { return snoozed{d, why} }

// delayMS is a wait in ms, as the engine takes it.
func delayMS(d time.Duration) int64 { return milliseconds(min(max(d, time.Millisecond), delayMax)) }
