package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

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
	// Unread finds a task that lies in the log behind the read levels; hint is the log sequence where it should be, 0 =
	// unknown. It tells where the task lies too. Nil where it does not. ErrSearchTooLong: without a hint, the log
	// around the task's creation holds too much.
	Unread(ctx context.Context, id ids.TaskID, hint uint64, read replica.Levels) (*logv1.Record, ids.Position, error)
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
