package firing

import (
	"context"
	"errors"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
)

// Errors that a port's error wraps.
var (
	// ErrOvertaken: another owner has written the cursor.
	ErrOvertaken = errors.New("another owner fires this partition")
	// ErrOutcomeUnknown: it may have been stored or not.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrGone: the message is certainly no longer there.
	ErrGone = errors.New("the message is gone")
)

// Stored is one message of the store.
type Stored struct {
	Seq    uint64
	AtMS   int64
	Bucket int64
	// Fence: it lies where fences do, and in no bucket.
	Fence bool
	Data  []byte
}

// Store reads the waiting tasks of a partition.
type Store interface {
	// Last is the sequence of the last message ever stored.
	Last(ctx context.Context) (uint64, error)
	// ReadRange hands out the messages from..upTo that are there, in order.
	ReadRange(ctx context.Context, from, upTo uint64, handle func(Stored) error) error
	// ReadBuckets hands out the messages from..upTo of some buckets that are there, in order.
	ReadBuckets(ctx context.Context, buckets []int64, from, upTo uint64, handle func(Stored) error) error
	// Buckets are those that have messages. It is false if there are too many to name, or if one of them may be missing that has a message up to upTo.
	Buckets(ctx context.Context, upTo uint64) (all []int64, ok bool, err error)
	// ReadFirst hands out the messages up to a sequence of some buckets that are there, and the fences, in order.
	ReadFirst(ctx context.Context, buckets []int64, upTo uint64, handle func(Stored) error) error
	// Read hands out all messages from a sequence on, in order, until ctx ends.
	Read(ctx context.Context, from uint64, handle func(Stored) error) error
	// Get is the data of one message, or ErrGone. It is called concurrently.
	Get(ctx context.Context, seq uint64) ([]byte, error)
}

// Pruner changes the store.
type Pruner interface {
	// Early appends an early message to a bucket. It may be stored despite an error. It is called concurrently.
	Early(ctx context.Context, bucket int64, data []byte) error
	// Purge removes messages up to a sequence, inclusive.
	Purge(ctx context.Context, p due.Purge) error
}

// Submit is one message for the history log.
type Submit struct {
	Domain, Tasklist string
	Lane             ids.Lane
	Data             []byte
}

// Log is the partition's history log, as far as firing goes.
type Log interface {
	// Cursor is the last cursor and its sequence; zeros where there is none. It
	// fails with a *logversion.UnknownError where the cursor's is not known.
	Cursor(ctx context.Context) (due.Cursor, uint64, error)
	// Append stores the messages and the cursor behind them, all or none, and
	// only if the last cursor is the one at sequence expected. It returns the
	// new cursor's sequence. An error that is neither ErrOvertaken nor
	// ErrOutcomeUnknown says that nothing was stored.
	Append(ctx context.Context, all []Submit, c due.Cursor, expected uint64) (uint64, error)
	// Parked is how far in the store history is known to remember what it parked; 0
	// where there is no checkpoint. It fails like Cursor.
	Parked(ctx context.Context) (seq uint64, err error)
	// DropCursors removes the cursors before the one at seq.
	DropCursors(ctx context.Context, seq uint64) error
}
