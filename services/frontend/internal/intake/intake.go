// Package intake is the verb that brings tasks into the log: submit.
//
// Owns: a submit from its checks until it is answered: the group commit of submits, the choice of a partition and the next one if an append
// failed, the repetition of appends of unknown outcome, and the caps of tasklists, groups and order keys.
//
// Never does: keep state of a task: a frontend may die at any time, and what it has answered is in the log.
//
// On failure: each request is answered exactly once, by its deadline, with a *fault.Error that says what is known: UNAVAILABLE where nothing was
// stored, UNKNOWN if that is not known.
//
// Submit returns as soon as the request is queued, without a goroutine of its own, unless it has unique keys or may be a repeat. Domains whose
// submits go to one partition take turns.
package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/caps"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/groupcommit"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/placement"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/poll"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/quotas"
)

const (
	// queuedSubmitsBytes bounds the submits of a partition that wait for their turn, in bytes.
	queuedSubmitsBytes = 64 << 20
	// flushBytesMax bounds the submits of a flush, and flushShare those of one domain in it: what comes meanwhile waits for it, also
	// what comes of others.
	flushBytesMax = 2 * groupcommit.MessageBytesMax
	flushShare    = 256 << 10
)

// HistoryLog is the history log of all partitions.
type HistoryLog interface {
	// Append stores one message; its errors wrap natslog.ErrNotStored or
	// natslog.ErrOutcomeUnknown. Duplicate tells that a message with this id was
	// stored before, at seq.
	Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error)
	// AppendEach stores messages one after the other, each for itself. It tells the outcome of each as of
	// Append, in any order, once, before it returns.
	AppendEach(ctx context.Context, msgs []natslog.Msg, outcome func(i int, a natslog.Appended))
	// AppendAtomic stores all messages, one behind the other, or none; its errors are as those of Append, or wrap natslog.ErrWrongLast where a
	// message is not what its header expects.
	AppendAtomic(ctx context.Context, msgs []natslog.Msg) (lastSeq uint64, err error)
	// LastFor returns the last message of a subject in partition p; nil where there is none.
	LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error)
	// Message returns message seq of partition p; nil where the log has forgotten it.
	Message(ctx context.Context, p int, seq uint64) (*natslog.Record, error)
	// MessageBytesMax is the longest body it takes.
	MessageBytesMax() int
}

// Homes are the batches as the log has them.
type Homes interface {
	// Home reads a batch; nil = there is none. Seq is where it lies.
	Home(ctx context.Context, domain, id string) (home *logv1.BatchHome, seq uint64, err error)
	// CloseMembers closes a batch, whose home is marked, in all partitions.
	CloseMembers(ctx context.Context, domain string, home *logv1.BatchHome) error
}

// Deps is what an Intake needs.
type Deps struct {
	owners.Env
	Log HistoryLog
	// AppendTimeout is how long one append to the log may take until its outcome counts as unknown.
	AppendTimeout time.Duration
	Homes         Homes
	Placement     *placement.Placement
	Polls         *poll.Polls
	Quotas        *quotas.Quotas
	// DecideOne is the verdict on the replacement of a task.
	DecideOne func(ctx context.Context, c call.Call, entry validate.Outcome) (*yardv1.Verdict, error)
}

// Intake carries out submits. It is safe for concurrent use.
type Intake struct {
	Deps
	metrics     metrics
	appender    *appender
	openBatches openBatches
	reads       reader
	// queues are those of tasklists with a cap.
	queues *queueCaps
}

// New makes an Intake.
func New(d Deps) *Intake {
	in := &Intake{Deps: d, reads: reader{log: d.Log, tasks: d.Tasks, partitions: d.Partitioning.History}, metrics: newMetrics(d.Metrics), queues: &queueCaps{book: caps.NewBook()}}
	in.appender = newAppender(in)
	return in
}

// TakeLoad takes in what the owner of a partition reports (topology.HintLoad).
func (in *Intake) TakeLoad(load *rpcv1.HistoryLoad) {
	if p := int(load.Partition); p >= 0 && p < in.Partitioning.History {
		in.queues.report(load)
	}
	in.appender.report(load)
}

// HasRoom tells whether the log of a partition has some for tasks.
func (in *Intake) HasRoom(p int) bool { return in.Placement.HasRoom(p, time.Now()) }

// Warn is a warning if partitions accept no tasks for lack of space, or if appends to some are slow.
func (in *Intake) Warn() error {
	if n := in.Placement.Full(time.Now()); n > 0 {
		return fmt.Errorf("the log's storage is full in %d of %d partitions: submits are refused there", n, in.Partitioning.History)
	}
	return in.Placement.Slow()
}

// Tick places again what waits for partitions that get less.
func (in *Intake) Tick(now time.Time) { in.appender.tick(now) }

// QueuedTasks is how many tasks of a tasklist with a cap are queued.
func (in *Intake) QueuedTasks(domain, tasklist string) int64 {
	return in.queues.queued(domain, tasklist)
}
