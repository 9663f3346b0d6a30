package partition

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Record is one stored message.
type Record struct {
	Seq  uint64
	Time time.Time
	Data []byte
	// Pending is how many messages of the same reader were still to come.
	Pending uint64
}

// Log is the partition's log. Reads go on from a sequence; a blocking handler
// is back-pressure; a read without end returns when ctx ends.
type Log interface {
	// ReadLane and ReadEvents follow the log from sequence from on, for ever.
	ReadLane(ctx context.Context, lane ids.Lane, from uint64, handle func(Record) error) error
	ReadEvents(ctx context.Context, from uint64, handle func(Record) error) error
	// ReplayLane and ReplayEvents read from..upTo and return.
	ReplayLane(ctx context.Context, lane ids.Lane, from, upTo uint64, handle func(Record) error) error
	ReplayEvents(ctx context.Context, from, upTo uint64, handle func(Record) error) error
	// Last is the log's last sequence, LastEvent that of its last event.
	Last(ctx context.Context) (uint64, error)
	LastEvent(ctx context.Context) (uint64, error)
}

// Store takes what leaves the state machine. Each call returns when the
// message is stored.
type Store interface {
	// AppendEvents appends an encoded EventBatch to the log.
	AppendEvents(ctx context.Context, batch []byte) error
	// Park appends an encoded Batch to a bucket of the timer store and returns its sequence there.
	Park(ctx context.Context, bucket int64, batch []byte) (uint64, error)
	// Archive files an encoded Batch of finished tasks of a domain created in one minute.
	Archive(ctx context.Context, domain string, minute int64, batch []byte) error
	// Bury keeps an encoded Batch of one exhausted task as a dead letter.
	Bury(ctx context.Context, domain, tasklist string, id ids.TaskID, batch []byte) error
	// Forget purges the log up to the levels.
	Forget(ctx context.Context, lanes [ids.Lanes]uint64, events uint64) error
}

// Timer is the timer store beside this partition.
type Timer interface {
	// Tail reads the store's messages after sequence after, to its end.
	Tail(ctx context.Context, after uint64, handle func(batch []byte) error) error
	// Cancel takes waiting tasks out; fired are those that are on their way back into the log.
	Cancel(ctx context.Context, id []ids.TaskID) (found []*logv1.Record, fired []ids.TaskID, err error)
}

// Checkpoints keeps the partition's checkpoint.
type Checkpoints interface {
	// Load returns the checkpoint and its revision; nil and 0 where there is none.
	Load(ctx context.Context) (*logv1.Checkpoint, uint64, error)
	// Save writes it if the revision is still the current one, else ErrTakenOver.
	Save(ctx context.Context, cp *logv1.Checkpoint, revision uint64) (uint64, error)
}

// Wire sends messages that may be lost: hints and answers.
type Wire interface {
	// Publish sends data; a failure is the same as a loss on the way.
	Publish(subject string, data []byte)
	// Answer is Publish of verdicts that grant attempts: bounced is called, from any
	// goroutine, if nobody listens on subject any more.
	Answer(subject string, data []byte, bounced func())
}

// Finder looks for tasks that are not in memory.
type Finder interface {
	// Archived finds a finished task; nil where it is not in the archive.
	Archived(ctx context.Context, id ids.TaskID) (*logv1.Record, error)
	// Unread finds a task whose submit lies behind the read levels; nil where it does not.
	Unread(ctx context.Context, id ids.TaskID, read [ids.Lanes]uint64) (*logv1.Record, error)
	// Recent returns lately finished tasks of a domain, newest first.
	Recent(ctx context.Context, domain string, limit int) ([]*logv1.Record, error)
	// Backlog is how many messages of a lane lie behind its read level.
	Backlog(ctx context.Context, lane ids.Lane, read uint64) (uint64, error)
}
