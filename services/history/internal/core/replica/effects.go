package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/answer"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Effects are what steps ask for. The caller carries them out in the order of the
// fields: writes are begun, hints go out, then answers.
type Effects struct {
	// Archive, Park and Append are jobs: to be stored, repeated until that is so, and then
	// reported with Stored. One of a kind is under way at a time. The entries do not
	// change any more. An Append without proposals is a batch without events, which shows whether
	// the log moves.
	Archive, Park []*Entry
	Append        []Proposal
	// ParkLetters are the dead letters of tasks in Park: deleted once those are stored, before that is reported. Letters are those whose tasks came
	// back before: they are deleted, and not reported.
	ParkLetters, Letters []Letter
	// Save is a checkpoint to be saved, to be reported with Saved.
	Save *Checkpoint
	// Snapshot is a job, too: to be stored and reported with Stored. Forget is the snapshot before which all others are to be deleted.
	Snapshot *Snapshot
	Forget   *SnapshotRef
	// Purge is what the log may forget, to be reported with Purged.
	Purge *Levels
	// Searches are looked up in the other stores, to be reported with Found, each.
	Searches []Search
	// Looks are counted in the log, to be reported with Looked, each.
	Looks []Look

	// Effects go to matching.
	dispatch.Effects

	// Answers go to the caller.
	Answers []*Answer
	// Ended are tasks that have just ended, for callers that wait for them, batches, metrics, and clients that listen.
	Ended []*Entry
	// Slow are tasks that are late or stuck, for clients that listen.
	Slow []dispatch.Slow

	// OverRate are tasks that came in over the rates of their domains.
	OverRate []OverRate
	// Traced are tasks of which something is to be shown in their traces: those with a trace context, and those with an attempt that failed.
	Traced []Traced
	Counts Counts
	// Halt is why this replica must not go on: the log holds what it cannot read.
	Halt error
	// TakenOver: a newer owner is at work, and this replica must not go on.
	TakenOver bool
}

// Reset empties fx for the next turn and keeps its memory.
func (fx *Effects) Reset() {
	clear(fx.Answers)
	clear(fx.Ended)
	clear(fx.Slow)
	clear(fx.Traced)
	clear(fx.Letters)
	fx.Effects.Reset()
	*fx = Effects{
		Effects: fx.Effects, Searches: fx.Searches[:0], Looks: fx.Looks[:0], Letters: fx.Letters[:0], OverRate: fx.OverRate[:0],
		Answers: fx.Answers[:0], Ended: fx.Ended[:0], Slow: fx.Slow[:0], Traced: fx.Traced[:0],
	}
}

// JobKind tells the jobs apart.
type JobKind uint8

// The kinds of jobs.
const (
	JobArchive JobKind = iota
	JobPark
	JobAppend
	JobSnapshot
)

// Proposal is an event that the owner wishes to append to the log.
type Proposal struct {
	Kind  taskstate.Kind
	ID    ids.TaskID
	Fence ids.Token
	// Domain is the task's.
	Domain  string
	Message string
	// Undelivered: the attempt that expires may never have reached its worker.
	Undelivered bool
	// NotAfter: the log is to refuse an expiry that it takes later than this, Unix ms; 0 = never.
	NotAfter int64
	// SilentLease: its worker fell silent, and its lease ends at this time, Unix ms; 0 = the lease is over.
	SilentLease int64
}

// Checkpoint is what an owner saves again and again: it renews the lease.
type Checkpoint struct {
	// Snapshot is the one that a takeover begins with.
	Snapshot SnapshotRef
}

// OverRate is so many tasks of a domain.
type OverRate struct {
	Domain string
	Tasks  int
}

// The kinds of a Traced.
const (
	TraceApplied = iota
	TraceGranted
	// TraceExpired is an attempt of which its worker did not say the end.
	TraceExpired
	// TraceFailed is an attempt of which its worker said that it failed.
	TraceFailed
)

// Traced is something to be shown in a task's trace.
type Traced struct {
	What int
	Task *taskstate.Task
	// Since is when it began, Unix ms.
	Since int64
	// Waited is the wait before the attempt that was granted; the zero one = none.
	Waited taskstate.Wait
}

// Counts is what steps have done, for metrics.
type Counts struct {
	SubmitBatches, Loaded, EventBatches, Events, Refused int64
	// Direct counts attempts that began with their submit.
	Direct                                                   int64
	Granted, Bounced, Archived, Parked, PassedOver, Redriven int64
	// Attempts that ended without their worker's word: its heartbeats stopped, the deadline passed, or the grant may never
	// have reached it. A takeover counts none: the owner before has.
	Silent, Overdue, Undelivered int64
}

// expired counts an attempt of t that has just ended without its worker's word.
func (c *Counts) expired(t *taskstate.Task) {
	switch t.HowExpired() {
	case taskstate.StepTimedOut:
		c.Overdue++
	case taskstate.StepLost:
		c.Silent++
	default:
		c.Undelivered++
	}
}

// The verdicts on events, for packages that know the replica only.
type (
	Verdict = answer.Verdict
	Grant   = answer.Grant
	Answer  = answer.Answer
)

// BeginTurn returns the steps that go into the turn that is appended now.
func (r *Replica) BeginTurn() []Admission {
	r.answers.Began()
	return r.Gate.BeginTurn()
}
