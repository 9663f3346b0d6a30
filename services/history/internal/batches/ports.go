package batches

import (
	"context"
	"errors"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
)

// Store is what the logs and their owners have of batches.
type Store interface {
	// Follow hands out what the log says of each batch whose home is the partition, and then each change, until ctx ends.
	Follow(ctx context.Context, handle func(batch.Home) error) error
	// Load reads a batch; nil = there is none any more.
	Load(ctx context.Context, name batch.Name) (*Loaded, error)
	// Close closes a batch in a partition: behind that its log takes no member.
	Close(ctx context.Context, name batch.Name, partition int) error
	// Count returns how many tasks of a batch a partition has admitted, and how they ended; complete: none that its log has is missing. Counted: a count of
	// before was complete, and the batch is closed.
	Count(ctx context.Context, name batch.Name, partition int, counted bool) (tally batch.Tally, complete bool, err error)
	// End stores that a batch is over, in place of what was loaded, together with its callback, if that is not nil. ErrMoved: something else is stored.
	End(ctx context.Context, was *Loaded, over *logv1.BatchHome, callback *logv1.Record) error
	// Forget has a partition forget how many tasks a batch has that is over, and its log, after a while, that it is
	// closed.
	Forget(ctx context.Context, name batch.Name, partition int) error
}

// Loaded is what the log says of a batch, and where.
type Loaded struct {
	Domain string
	Seq    uint64
	Home   *logv1.BatchHome
}

// ErrMoved: a batch was changed since it was loaded.
var ErrMoved = errors.New("the batch was changed meanwhile")
