package filing

import "time"

// The next message of a kind rests for RestShare times as long as the last took at most, where RestCompany
// or more went together, and never longer than RestMax.
const (
	RestShare   = 3
	RestCompany = 24
	RestMax     = 20 * time.Millisecond
)

// Rest is for how long a partition's log is left to others after a message with n events that took
// so long. The log syncs each message to disk, one after the other, and submits wait behind events:
// the more there are, the better they wait for company. One alone is not followed by a rest, and none (n = 0)
// neither: it is 0 or less.
func Rest(n int, took time.Duration) time.Duration {
	return min(took*RestShare*time.Duration(min(n-1, RestCompany))/RestCompany, RestMax)
}
