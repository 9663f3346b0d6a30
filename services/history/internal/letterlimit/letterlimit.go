// Package letterlimit deletes the dead letters that are beyond the limits of their domains (decision 0042).
//
// Owns: when the limits of which domains are applied. Never does: count letters beyond a call, or know of redrives: a letter that is deleted while one
// works on it is purged, as by an operator. On failure: the next turn tries again. Two deleters of a domain, one of them of an owner that is replaced, do no harm.
package letterlimit

import (
	"context"
	"hash/fnv"
	"log/slog"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// callsMax is how many times a turn asks the store about a domain. The rest is for the next turn.
const callsMax = 20

// Store is the dead letters of all domains. Each call deletes some of the oldest of a domain, and reports whether more are left that it has to delete.
type Store interface {
	// DeleteBefore deletes letters that were stored before a time.
	DeleteBefore(ctx context.Context, domain string, at time.Time) (deleted int64, more bool, err error)
	// DeleteBeyond deletes all letters but the last ones.
	DeleteBeyond(ctx context.Context, domain string, keep int64) (deleted int64, more bool, err error)
}

// Deleter applies the limits of the domains whose home is its partition: each domain has one, wherever its tasks are.
type Deleter struct {
	Partition, Partitions int
	// Every is how often it does so.
	Every   time.Duration
	Domains func() []*yardv1.Domain
	Store   Store
	// Now is the server's time.
	Now             func() time.Time
	Log             *slog.Logger
	TooMany, TooOld *telemetry.Counter
}

// Run deletes until ctx ends, for the first time at once.
func (d *Deleter) Run(ctx context.Context) error {
	for {
		for _, domain := range d.Domains() {
			if home(domain.Name, d.Partitions) == d.Partition {
				d.apply(ctx, domain)
			}
		}
		if !backoff.Sleep(ctx, d.Every) {
			return nil
		}
	}
}

// home is the partition whose owner applies the limits of a domain.
func home(domain string, partitions int) int {
	h := fnv.New64a()
	h.Write([]byte(domain))
	return int(h.Sum64() % uint64(partitions))
}

// apply applies the limits of a domain.
func (d *Deleter) apply(ctx context.Context, of *yardv1.Domain) {
	if age := of.DeadLettersMaxAgeMs; age > 0 {
		d.repeat(ctx, of.Name, "age", d.TooOld, func() (int64, bool, error) {
			return d.Store.DeleteBefore(ctx, of.Name, d.Now().Add(-time.Duration(age)*time.Millisecond))
		})
	}
	if keep := of.DeadLettersMax; keep > 0 {
		d.repeat(ctx, of.Name, "number", d.TooMany, func() (int64, bool, error) { return d.Store.DeleteBeyond(ctx, of.Name, keep) })
	}
}

// repeat deletes until nothing is left to delete, or for this turn.
func (d *Deleter) repeat(ctx context.Context, domain, reason string, count *telemetry.Counter, do func() (deleted int64, more bool, err error)) {
	sum := int64(0)
	for more, calls := true, 0; more && calls < callsMax && ctx.Err() == nil; calls++ {
		var deleted int64
		var err error
		deleted, more, err = do()
		count.Add(deleted)
		sum += deleted
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("dead letters beyond the limits of a domain were not deleted", "domain", domain, "error", err)
			break
		}
	}
	if sum > 0 {
		d.Log.Info("dead letters beyond the limits of a domain were deleted", "domain", domain, "reason", reason, "tasks", sum)
	}
}
