package shard

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/settings"
)

// Config is what may be tuned about a shard.
type Config struct {
	// PollsMax is how many polls may wait at a shard; further ones are refused with
	// RESOURCE_EXHAUSTED. One domain may have three quarters of them; the last quarter is for
	// domains that have few, a sixteenth at most. Default 10000. Too few turns workers away; each
	// costs about a kilobyte, and 8 at most.
	PollsMax int `koanf:"polls_max" usage:"polls that may wait at one shard"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{PollsMax: 10_000} }

// Validate reports a value that is out of range.
func (c Config) Validate() []settings.Problem {
	if most := 1_000_000; c.PollsMax < 1 || c.PollsMax > most {
		return []settings.Problem{{Path: "polls_max", What: fmt.Sprintf("%d is not between 1 and %d", c.PollsMax, most)}}
	}
	return nil
}

const (
	// GrabEventsMax is how many grabs go to history in one batch.
	GrabEventsMax = 1000
	// GrabsInFlight is how many batches of grabs may wait for verdicts of one history partition: each is a message of the log with a
	// sync to disk of its own, so while one is under way the next one gathers (decision 15).
	GrabsInFlight = 1
	// PopMax is how many triggers one call takes of a tasklist: half a millisecond of Redis, which does nothing else meanwhile.
	PopMax = 1000
)

const (
	// proveTimeout bounds one round trip to the server, proveRetry is how soon the next follows one that failed.
	proveTimeout, proveRetry = 2 * time.Second, 50 * time.Millisecond
	// callTimeout bounds one batch of calls to a group of tables.
	callTimeout = time.Second
	// choresAtOnce is how many domains of a group are opened at the same time.
	choresAtOnce = 8
	// askPause is how long a partition is left alone after a question that failed.
	askPause = 250 * time.Millisecond
	// openRetry is how long to wait before the ownership is shown again that could not be.
	openRetry = 250 * time.Millisecond
	// drainTimeout cuts a drain short that the core, which waits 2 s, does not finish.
	drainTimeout = 4 * time.Second
)
