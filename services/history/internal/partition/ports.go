package partition

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/turn"
)

// Errors that a port's error wraps.
var (
	// ErrTakenOver: another owner has written the checkpoint, or claimed the log.
	ErrTakenOver = turn.ErrTakenOver
	// ErrRefused: the store will never take this, however often it is repeated.
	ErrRefused = turn.ErrRefused
	// ErrNoSnapshot: the snapshot is not stored, or not all of it.
	ErrNoSnapshot = errors.New("the snapshot is not in its store")
	// ErrMore: only a part of it was done, the rest is for the next time.
	ErrMore = errors.New("there is more to do")
)

// Record is one stored message.
type Record = turn.Record

// Source is what one reader of the log reads: a lane, or the events.
type Source int

// SourceEvents is the events; below it are the lanes. Sources is how many there are.
const (
	SourceEvents Source = ids.Lanes
	Sources             = ids.Lanes + 1
)

// Log is the partition's log.
type Log interface {
	turn.Log
	// Read hands out the messages of a source from a sequence on, in order: up to upTo, or forever if that is 0; of a
	// lane only those that are filed under a domain, if one is named. A blocking handler is back-pressure. It returns
	// nil at its end or when ctx has ended.
	Read(ctx context.Context, source Source, domain string, from, upTo uint64, handle func(Record) error) error
	// Ends are the last sequences of the log and of each source; 0 where it is empty.
	Ends(ctx context.Context) (last uint64, of [Sources]uint64, err error)
	// Backlog is how many messages of a lane lie behind a sequence; only those that are filed under a domain, if one is
	// named.
	Backlog(ctx context.Context, of replica.Queue, read uint64) (uint64, error)
	batches.Members
	// Forget purges the log up to the levels; ErrMore: it has more to purge than it does at a time.
	Forget(ctx context.Context, levels replica.Levels) error
}

// TimerStore is the stream of waiting tasks.
type TimerStore interface {
	// Park appends an encoded Batch to a bucket and returns its sequence.
	Park(ctx context.Context, bucket int64, batch []byte) (uint64, error)
	// Fence appends an encoded fence Batch.
	Fence(ctx context.Context, batch []byte) error
	// Fenced is the epoch of the last fence; 0 where there is none.
	Fenced(ctx context.Context) (uint64, error)
	// Last is the store's last sequence.
	Last(ctx context.Context) (uint64, error)
	// Tail reads the messages after a sequence, to the end.
	Tail(ctx context.Context, after uint64, handle func(batch []byte) error) error
}

// Timer is the service that fires what waits.
type Timer interface {
	// Cancel takes waiting tasks out that the store holds up to a sequence, each for the domain of its caller, for the
	// owner of an epoch; fired are those that are on their way back, with their sequence in the log, 0 = not known.
	Cancel(ctx context.Context, wanted []replica.Search, upTo, epoch uint64) (taken []*logv1.Record, fired map[ids.TaskID]uint64, err error)
	// Look tells what of some waiting tasks there is to take out, each for the domain of its caller, and takes nothing out.
	Look(ctx context.Context, wanted []replica.Search) (waiting []*logv1.Record, fired map[ids.TaskID]uint64, err error)
	// Locate finds a task that waits, or where it was fired to.
	Locate(ctx context.Context, id ids.TaskID) (waiting *logv1.Record, fired uint64, err error)
}

// Checkpoints keeps the partition's checkpoint.
type Checkpoints interface {
	// Load returns the checkpoint and its revision; nil and 0 if there is none.
	Load(ctx context.Context) (*logv1.Checkpoint, uint64, error)
	// Save writes it if the revision is still the current one, else ErrTakenOver.
	Save(ctx context.Context, cp *logv1.Checkpoint, revision uint64) (uint64, error)
}

// SnapshotName names a snapshot: the epoch of its owner and the turn up to which it tells.
type SnapshotName struct{ Epoch, Seq uint64 }

func (n SnapshotName) before(other SnapshotName) bool {
	return cmp.Or(cmp.Compare(n.Epoch, other.Epoch), cmp.Compare(n.Seq, other.Seq)) < 0
}

// Superseded reports whether Forget deletes n.
func (n SnapshotName) Superseded(keep []SnapshotName) bool {
	return !slices.Contains(keep, n) && slices.ContainsFunc(keep, n.before)
}

// Snapshots keeps copies of the partition's state.
type Snapshots interface {
	// Save stores the chunks of a snapshot, in order; it may be repeated with the same chunks.
	Save(ctx context.Context, name SnapshotName, chunks [][]byte) error
	// Load returns all chunks of a snapshot, so many; an error that wraps ErrNoSnapshot if one is missing, or there are more.
	Load(ctx context.Context, name SnapshotName, count int) ([][]byte, error)
	// Forget deletes all snapshots but the named ones and those that are newer than the newest of them: these are of an
	// owner that came later, and may be the ones that the checkpoint names.
	Forget(ctx context.Context, keep ...SnapshotName) error
}

// Wire sends messages that may be lost: hints and answers.
type Wire interface {
	// Publish sends data to a subject of topology; a failure is the same as a loss on the way.
	Publish(subject string, data []byte)
	// Answer sends verdicts to a reply subject of the log: bounced, if it is not nil, is called, from any goroutine, if
	// no subscriber listens there any more, or no one may.
	Answer(subject string, data []byte, bounced func())
}

// Quarantined is what could not be read, or written.
type Quarantined struct {
	// Unreadable: a message of the log, else a message that its store does not take.
	Unreadable bool
	Reason     string
	// Subject and Seq are where it was read; or only Subject, where it was to go.
	Subject string
	Seq     uint64
	Data    []byte
	// KeepS is for how long its store would have kept it, in seconds; 0 = forever.
	KeepS int64
}

// Quarantine keeps an item, whole, until a person redrives or drops it.
type Quarantine func(ctx context.Context, item Quarantined) error
