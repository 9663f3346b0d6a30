package table

import (
	"errors"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Priorities: 1 is the most urgent.
const (
	PriorityFirst = 1
	PriorityLast  = 5
)

// ChunkTriggersMax is how many triggers a chunk holds at most. Larger ones make a
// column's order coarser and cost more to put back when partly used.
const ChunkTriggersMax = 128

// Tasklist names one partition of a tasklist.
type Tasklist struct {
	Domain    string
	Name      string
	Partition int
}

// Column names a column of a tasklist's table: what is ordered by age only.
type Column struct {
	Priority int
	Type     string
}

// Chunk is up to ChunkTriggersMax triggers of one column, packed (contracts/ids),
// that are stored and mostly taken together.
type Chunk struct {
	Tasklist
	Column
	// ReadyAt is when its first trigger became ready, Unix µs: its place in line,
	// which what is left of a partly used chunk keeps.
	ReadyAt  int64
	Triggers []byte
}

// Len is the number of triggers.
func (c Chunk) Len() int { return len(c.Triggers) / ids.TriggerBytes }

// Candidate is a column that may hold triggers for a want.
type Candidate struct {
	Column
	// Head is the ReadyAt of its oldest chunk as far as is known; it is trusted as
	// a lower bound, so a wrong one costs order and nothing else.
	Head int64
	// Limit is how many attempts of the type may run at once; 0 = any number.
	Limit int
}

// Want asks for triggers of one tasklist.
type Want struct {
	Tasklist
	// N is how many at most.
	N int
	// Candidates in order of priority, then head. No other column is looked at.
	Candidates []Candidate
	// Now and Until, Unix ms: bookings that expired by Now are void, and those made
	// expire at Until.
	Now, Until int64
}

// Limited tells whether w can book anything.
func (w Want) Limited() bool {
	for _, c := range w.Candidates {
		if c.Limit > 0 {
			return true
		}
	}
	return false
}

// Taken is what a want got.
type Taken struct {
	Batches []Batch
	// Heads are the columns looked at as they are now.
	Heads []Head
	// Full are the types that have no free slot left.
	Full []string
}

// Batch is triggers taken from one chunk.
type Batch struct {
	Column
	ReadyAt  int64
	Triggers []byte
	// Booked: each has a booking.
	Booked bool
}

// Head is the oldest chunk of a column.
type Head struct {
	Column
	ReadyAt int64
	// Empty: the column holds nothing, and ReadyAt says nothing.
	Empty bool
	// Gone is how many triggers this call took out of the column, doubles included.
	Gone int
}

// Known is a column as a new owner finds it.
type Known struct {
	Tasklist
	Column
	ReadyAt  int64
	Triggers int
}

// Opened is how a shard finds its tables of a domain.
type Opened struct {
	// Epoch names their present life; never empty.
	Epoch string
	// Whole: the bookings are complete.
	Whole   bool
	Columns []Known
}

// Booking is one slot in use.
type Booking struct {
	Type string
	// Member is ids.Booking of the attempt.
	Member string
	// Until is when it expires, Unix ms.
	Until int64
}

// Settlement changes bookings of one limit.
type Settlement struct {
	Domain string
	Type   string
	// Limit is the present one, 0 = none: a release frees somebody only where the
	// limit was full.
	Limit int
	// Extend moves the expiry of bookings that exist, never to an earlier time.
	Extend []Extension
	// Release holds packed bookings (ids.BookingBytes each) to remove.
	Release []byte
}

// Extension is a booking's new expiry.
type Extension struct {
	Member string
	Until  int64
}

// Settled is what became of a Settlement.
type Settled struct {
	// Missing are the indexes of extensions whose bookings do not exist: the
	// attempts have no slot.
	Missing []int
	// Freed: the limit was full and is no more.
	Freed bool
}

// ErrEpochLost: the table of a domain lost its memory, or is not whole and was
// asked for a booking. Nothing was changed.
var ErrEpochLost = errors.New("the table has lost its memory")

// LostError names the domains to which ErrEpochLost applies; for the other domains
// of the same call it was carried out.
type LostError struct{ Domains []string }

// Error implements error.
func (e *LostError) Error() string {
	return ErrEpochLost.Error() + ": " + strings.Join(e.Domains, ", ")
}

// Unwrap makes errors.Is(err, ErrEpochLost) hold.
func (e *LostError) Unwrap() error { return ErrEpochLost }
