package shard

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/settings"
)

// Config is what may be tuned about a shard.
type Config struct {
	// PollsMax is how many polls may wait at a shard; further ones are refused with
	// RESOURCE_EXHAUSTED. Default 10000. Too few turns workers away; each costs
	// about a kilobyte.
	PollsMax int `koanf:"polls_max" usage:"polls that may wait at one shard"`
	// GrabEventsMax is how many grabs go to history in one batch. Default 1000.
	GrabEventsMax int `koanf:"grab_events_max" usage:"grabs in one batch"`
	// GrabsInFlight is how many batches may wait for verdicts per history partition.
	// Default 2: one is on its way while the other is being decided. More make
	// batches smaller.
	GrabsInFlight int `koanf:"grabs_in_flight" usage:"grab batches without verdict per history partition"`
	// PopMax is how many triggers one table call takes for a tasklist. Default 1000.
	// Redis does nothing else meanwhile: about half a millisecond per thousand.
	PopMax int `koanf:"pop_max" usage:"triggers taken from a table at once"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{PollsMax: 10_000, GrabEventsMax: 1000, GrabsInFlight: 2, PopMax: 1000}
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

// Times. They hang together (a test checks it), so they are no settings: a booking
// must outlive its grab, and a grab must be in the log before a quarantine ends.
const (
	// bookingTTL is how long a booking lasts before a verdict extends it: what a
	// crash between booking and grab costs.
	bookingTTL = 8 * time.Second
	// bookingSlack is how long a booking outlasts its attempt's deadline, so that
	// history's clock and ours need not agree.
	bookingSlack = 30 * time.Second
	// bookingFresh is how old a booking may be when its grab is sent.
	bookingFresh = time.Second
	// Quarantine is how long after a loss other shards' grabs may be on their way
	// to the log with bookings that are lost.
	Quarantine = 2 * time.Second
	// resendAfter is how long a verdict may take before its grab is sent again.
	resendAfter = time.Second
	// grabTimeout is when a grab without a verdict is given up.
	grabTimeout = 10 * time.Second
	// handBackTimeout is when a hand-back without a verdict is given up; the lease
	// takes the attempt back then.
	handBackTimeout = 30 * time.Second
	// pollGrace is how long past its time a poll waits for verdicts under way.
	pollGrace = 2 * time.Second
	// retryEvery is how often unreachable tables or partitions are tried.
	retryEvery = 250 * time.Millisecond
	// callTimeout bounds one call to the tables, during which the loop stands still.
	callTimeout = time.Second
	// housekeepEvery is how often the loop looks after what nothing wakes it for.
	housekeepEvery = 250 * time.Millisecond
	// healEvery is how often types set aside are tried without having been freed.
	healEvery = time.Second
	// auditEvery is how often the bookings of a domain are compared with history
	// while one of its limits is full, and how long that may take.
	auditEvery = 30 * time.Second
	// hungryMin and hungryMax bound how often an empty table is complained about.
	hungryMin, hungryMax = time.Second, 30 * time.Second
	// unheardWithin is for how long an answer may turn out to have reached nobody.
	unheardWithin = time.Second
	// drainTimeout bounds the wait for verdicts when a shard is given up.
	drainTimeout = 2 * time.Second
	// idleAfter is when a tasklist nobody asks for is forgotten.
	idleAfter = time.Minute
)

// Limits that are no settings.
const (
	// candidatesMax is how many columns one Pop looks at: each costs Redis 6 µs.
	candidatesMax = 32
	// heldChunksMax is how many chunks wait while a domain is being opened.
	heldChunksMax = 4096
	// taskBytesGuess is what a task weighs in an answer until some were seen.
	taskBytesGuess = 512
	// wastedRounds is how often a poll whose time is over tries again after all
	// that it was given was refused.
	wastedRounds = 3
)
