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
	// GrabEventsMax is how many grabs go to history in one batch. Default 1000.
	GrabEventsMax int `koanf:"grab_events_max" usage:"grabs in one batch"`
	// GrabsInFlight is how many batches may wait for verdicts per history partition.
	// Default 1: each is a message of the log with a sync to disk of its own, so while one is
	// under way the next one gathers. More make batches smaller; 1 has a partition wait
	// for a second where a verdict is lost.
	GrabsInFlight int `koanf:"grabs_in_flight" usage:"grab batches without verdict per history partition"`
	// PopMax is how many triggers one table call takes for a tasklist. Default 1000.
	// Redis does nothing else meanwhile: about half a millisecond per thousand.
	PopMax int `koanf:"pop_max" usage:"triggers taken from a table at once"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{PollsMax: 10_000, GrabEventsMax: 1000, GrabsInFlight: 1, PopMax: 1000}
}

// Validate tells what is out of range.
func (c Config) Validate() []settings.Problem {
	var problems []settings.Problem
	for _, f := range []struct {
		path            string
		value, min, max int
	}{
		{"polls_max", c.PollsMax, 1, 1_000_000},
		{"grab_events_max", c.GrabEventsMax, 1, 10_000},
		{"grabs_in_flight", c.GrabsInFlight, 1, 64},
		{"pop_max", c.PopMax, 1, 10_000},
	} {
		if f.value < f.min || f.value > f.max {
			problems = append(problems, settings.Problem{
				Path: f.path, What: fmt.Sprintf("%d is not between %d and %d", f.value, f.min, f.max),
			})
		}
	}
	return problems
}

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
