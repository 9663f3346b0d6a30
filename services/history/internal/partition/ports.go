package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
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
	// lane only those that are filed at a place, or in a part of it. A blocking handler is back-pressure. It returns
	// nil at its end or when ctx has ended.
	Read(ctx context.Context, source Source, at ids.Place, from, upTo uint64, handle func(Record) error) error
	// Ends are the last sequences of the log and of each source; 0 where it is empty.
	Ends(ctx context.Context) (last uint64, of [Sources]uint64, err error)
	// Backlog is how many messages of a lane lie behind a sequence which are filed at a place, or in a part of it.
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
	// FireEarly has waiting tasks fire now, each for the domain of its caller.
	FireEarly(ctx context.Context, wanted []replica.Search) (Early, error)
	// Locate finds a task that waits, or where it was fired to.
	Locate(ctx context.Context, id ids.TaskID) (waiting *logv1.Record, fired uint64, err error)
}

// Early is what became of tasks that were to be fired early. Coming fire now, or are to be asked for again; Fired have been fired, with their
// sequence, 0 = not known. Others do not wait, or are another domain's.
type Early struct {
	Coming map[ids.TaskID]bool
	Fired  map[ids.TaskID]uint64
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
	// Store sends data to a subject of a stream, and again until the stream has it, for a minute at most. It may be stored twice.
	Store(subject string, data []byte)
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

// Archive keeps the finished tasks of a partition. Its calls come one at a time.
type Archive interface {
	// Last is the sequence of the archive's last message.
	Last(ctx context.Context) (uint64, error)
	// File stores finished tasks and what finds them, if the archive's last sequence is still last; else
	// ErrArchiveMoved: another owner, or a write of ours whose answer was lost, came first. After any error some of the
	// tasks may be stored: read the Tail after last and file what is missing. RefusedTaskError: so it is with one of
	// them.
	File(ctx context.Context, tasks []*taskstate.Task, last uint64) (newLast uint64, err error)
	// Tail hands out the stays of all tasks filed after sequence after, in order of the messages they are in.
	Tail(ctx context.Context, after uint64, handle func([]replica.Stay) error) error
	// StoreDead keeps exhausted tasks as dead letters, whole, each in place of one of an earlier stay; one that is
	// there already counts as stored. After an error some may be stored: repeat it. RefusedTaskError: so it is with one
	// of them.
	StoreDead(ctx context.Context, tasks []*taskstate.Task) error
	// DropDead deletes dead letters whose tasks came back; one that is not there counts as deleted. After an error repeat it.
	DropDead(ctx context.Context, letters []replica.Letter) error
	// EndKeys says in the log that the tasks with these unique keys have ended, so that others may have the keys. A key
	// that another task has by now, or that was released before, stays as it is. After an error repeat it.
	EndKeys(ctx context.Context, tasks []*taskstate.Task) error
}

// Reader finds finished and unread tasks. It works on a connection of its own, never the owner's, and serves any number
// of callers.
type Reader interface {
	// Archived finds finished tasks, each of the domain of its caller, in the order of wanted; nil where one is not in
	// the archive. Of a task that was redriven it is the last end. ErrReaderBusy: too many others are waiting.
	Archived(ctx context.Context, wanted []replica.Search) ([]*logv1.Record, error)
	// Letters finds the dead letters of tasks, each of the domain of its caller, in the order of wanted; nil where there is none.
	Letters(ctx context.Context, wanted []replica.Search) ([]*Letter, error)
	// Unread finds a task that lies in the log behind the read levels, of whatever domain; hint is the log sequence where it should be, 0 =
	// unknown. It tells where the task lies too. Nil where it does not. ErrSearchTooLong: without a hint, the log
	// around the task's creation holds too much.
	Unread(ctx context.Context, wanted replica.Search, hint uint64, read replica.Levels) (*logv1.Record, ids.Position, error)
	// Finished hands out finished tasks of a domain, each as it ended last, the newest id first, from before an id on, until take has
	// returned true for limit of them. End is the id before which the next call goes on, zero = these are all. It looks at a bounded
	// number of tasks, so it may stop with few. Turns.ErrBusy: too many of the domain wait.
	Finished(ctx context.Context, domain string, before ids.TaskID, limit int, take func(*logv1.Record) bool) (end ids.TaskID, err error)
}

// Letter is a dead letter, and its sequence in its stream.
type Letter struct {
	Record *logv1.Record
	Seq    uint64
}

var (
	// ErrArchiveMoved: the archive's last sequence is not what the writer expected.
	ErrArchiveMoved = errors.New("another write to the archive came first")
	// ErrReaderBusy: the reader has as many questions waiting as it takes.
	ErrReaderBusy = errors.New("too many reads of tasks that are not in memory are waiting")
	// ErrSearchTooLong: a search was given up; the task may exist.
	ErrSearchTooLong = errors.New("the log holds too much around the task's creation")
)

// RefusedTaskError: the store will never take one of the tasks, for what it is. The others can be stored without it.
type RefusedTaskError struct {
	Task ids.TaskID
	// KeepS is for how long the store would have kept it, in seconds; 0 = forever.
	KeepS  int64
	Reason error
}

// Is tells that the error wraps ErrRefused: repeating the write is pointless.
func (e *RefusedTaskError) Is(target error) bool { return target == ErrRefused }

// Unwrap is why.
func (e *RefusedTaskError) Unwrap() error { return e.Reason }

func (e *RefusedTaskError) Error() string { return fmt.Sprintf("task %v: %v", e.Task, e.Reason) }
