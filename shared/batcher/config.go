package batcher

import (
	"cmp"
	"errors"
	"fmt"
)

// MaxQueuedBytesDefault is the default of Config.MaxQueuedBytes.
const MaxQueuedBytesDefault = 64 << 20

// Config is the limits of a batcher. A zero field means its default.
type Config struct {
	// InFlight is how many flushes run at once, default 2: one is on its way while
	// the other is being built. More make batches smaller; 1 keeps the order of
	// batches.
	InFlight int `koanf:"in_flight" usage:"flushes that run at once"`
	// MaxItems is how many items a batch holds at most, default 1000. A batch is
	// lost, repeated and applied as one, so larger ones cost latency.
	MaxItems int `koanf:"max_items" usage:"items in a batch at most"`
	// MaxBytes is the weight of a batch at most, default 400 KiB; an item that
	// weighs more goes alone. It has to stay below the message limit of NATS (1 MiB
	// by default), headers included.
	MaxBytes int `koanf:"max_bytes" unit:"bytes" usage:"size of a batch at most"`
	// MaxQueuedItems is how many items may wait, default 100000. Beyond it Add
	// refuses. It bounds how stale a queued item can get: about MaxQueuedItems
	// divided by the throughput.
	MaxQueuedItems int `koanf:"max_queued_items" usage:"items that may wait for a flush"`
	// MaxQueuedBytes is the weight that may wait, default 64 MiB: the memory an
	// overload can take, besides InFlight batches.
	MaxQueuedBytes int `koanf:"max_queued_bytes" unit:"bytes" usage:"size of what may wait for a flush"`
}

// limit is one of the limits of a Config.
type limit struct {
	name     string
	value    *int
	fallback int
}

func (c *Config) limits() []limit {
	return []limit{
		{"in_flight", &c.InFlight, 2},
		{"max_items", &c.MaxItems, 1000},
		{"max_bytes", &c.MaxBytes, 400 << 10},
		{"max_queued_items", &c.MaxQueuedItems, 100_000},
		{"max_queued_bytes", &c.MaxQueuedBytes, MaxQueuedBytesDefault},
	}
}

func (c Config) withDefaults() Config {
	for _, l := range c.limits() {
		*l.value = cmp.Or(*l.value, l.fallback)
	}
	return c
}

// Validate refuses negative limits, and a queue that could not hold one full
// batch.
func (c Config) Validate() error {
	var problems []error
	for _, l := range c.limits() {
		if *l.value < 0 {
			problems = append(problems, fmt.Errorf("%s must not be negative", l.name))
		}
	}
	c = c.withDefaults()
	if c.MaxQueuedItems < c.MaxItems {
		problems = append(problems, errors.New("max_queued_items must be at least max_items"))
	}
	if c.MaxQueuedBytes < c.MaxBytes {
		problems = append(problems, errors.New("max_queued_bytes must be at least max_bytes"))
	}
	return errors.Join(problems...)
}
