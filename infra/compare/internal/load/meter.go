package load

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/child"
)

// reading is what was used and handled so far.
type reading struct {
	at      time.Time
	cpu     time.Duration
	handled int
}

// read reads the CPU time of the servers and of this process.
func (r *run) read() reading {
	_, handled := r.ledger.count()
	return reading{at: time.Now(), cpu: r.queue.CPU() + child.Own(), handled: handled}
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// sleep waits, or returns the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
