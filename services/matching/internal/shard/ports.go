package shard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Tables is one shard's triggering tables and the bookings of its domains. Each
// call carries all that a turn of the loop has and costs one round trip. An error
// that is not table.LostError leaves it open whether the call was carried out.
// Implementations are safe for concurrent use and do not keep what they are given.
type Tables interface {
	// Open tells how the tables of a domain stand and begins an epoch where there
	// is none.
	Open(ctx context.Context, domain string) (table.Opened, error)
	// Restore adds bookings and declares the tables whole, or fails with
	// ErrEpochLost where epoch is not the present one. Repeating it is harmless.
	Restore(ctx context.Context, domain, epoch string, bookings []table.Booking) error
	// Put stores chunks, except those of the domains in a LostError. Repeating it
	// is harmless.
	Put(ctx context.Context, chunks []table.Chunk) error
	// Pop takes triggers and books slots. It returns what was taken even with an
	// error.
	Pop(ctx context.Context, wants []table.Want) ([]table.Taken, error)
	// Settle extends and releases bookings. Repeating it is harmless.
	Settle(ctx context.Context, settlements []table.Settlement) ([]table.Settled, error)
	// Bookings lists the bookings of these types that last beyond an instant.
	Bookings(ctx context.Context, domain string, types []string, beyond time.Time) ([]table.Booking, error)
	// Slots counts the bookings of each type that have not expired by now.
	Slots(ctx context.Context, domain string, types []string, now time.Time) ([]int, error)
}

// Outbox sends without waiting. What it is given may be reused after the call.
type Outbox interface {
	// Events appends an encoded logv1.EventBatch to a history partition. Nothing
	// tells whether it arrived but the verdicts.
	Events(partition int, batch []byte) error
	// Answer sends encoded yardv1.PolledTask messages to a poller. Shard.Unheard is
	// told the id if nobody is there. An error means that it was not sent.
	Answer(to string, json bool, tasks [][]byte, id uint64) error
	// Refuse tells a poller that its poll was not taken.
	Refuse(to string, why *fault.Error)
	// Freed tells all shards that slots of these types were freed.
	Freed(domain string, types []string)
	// Hungry tells history that polls wait on an empty table.
	Hungry(domain, tasklist string)
}

// History answers questions about a whole domain. Each call asks the owner of one
// partition and fails where there is none just now.
type History interface {
	// Bookings are the attempts of a domain that hold a slot.
	Bookings(ctx context.Context, partition int, domain string) ([]table.Booking, error)
	// Retrigger has the triggers of everything ready sent again to this shard.
	Retrigger(ctx context.Context, partition int, domain string) error
}

// Limits tells what operators have set. It is safe for concurrent use.
type Limits interface {
	// Limit is how many attempts of a type may run at once; 0 = any number.
	Limit(domain, typ string) int
	// Limited are the types that have a limit.
	Limited(domain string) []string
}
