package grab

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Effects are what a turn sends to history, and reports about it.
type Effects struct {
	// Batches go to the log of history partitions. Nothing tells whether they
	// arrived but their verdicts.
	Batches []Batch
	// Traced are tasks with a trace context of which something is to be shown.
	Traced []Traced
	// Decided is how long each batch of grabs took, of which the last verdict came.
	Decided []time.Duration
}

// Reset empties effects and keeps their memory.
func (fx *Effects) Reset() {
	clear(fx.Batches)
	*fx = Effects{Batches: fx.Batches[:0], Traced: fx.Traced[:0], Decided: fx.Decided[:0]}
}

// Counts is what a turn has done, for metrics.
type Counts struct{ GrabBatches, Granted, GrabsRefused, HandedBack int64 }

// Batch is one message of events to a history partition: the fence, or grabs, or
// hand-backs, or stops. Verdicts are by this order.
type Batch struct {
	Partition int
	// Number counts the batches of this owner and partition from 1. One that is sent
	// again has the same number and events.
	Number uint64
	// Delivered: what the batches up to this one granted has reached its polls.
	Delivered uint64
	// Fence: this is the fence, and holds nothing else.
	Fence bool
	// Grabs ask for attempts; Polls are those that they are for.
	Grabs []Grab
	Polls []PollRef
	// HandBacks give attempts back.
	HandBacks []HandBack
	// Stops end what waits for a limit, or makes room in one.
	Stops []Stop
}

// PollRef is a poll of a batch.
type PollRef struct {
	// Domain is that of its tasklist, and so of all that is grabbed for it.
	Domain          string
	Worker, ReplyTo string
	// WorkerID is that of its worker's signs of life; empty = it sends none.
	WorkerID string
	JSON     bool
	// Max is how many tasks it takes, BytesMax how many bytes of them the batch may grant to it; the first may have more.
	Max, BytesMax int
}

// Grab is one STARTED event.
type Grab struct {
	Trigger ids.Trigger
	Nonce   uint64
	// Path is what was booked; empty = nothing.
	Path []table.Ref
	// Poll is an index of the batch's Polls.
	Poll int
}

// HandBack is one RELEASED event.
type HandBack struct {
	ID       ids.TaskID
	Version  uint32
	Position ids.Position
	Nonce    uint64
	Domain   string
}

// Stop is one REJECT or DISPLACE event.
type Stop struct {
	// Trigger names the task that waits, or with Displace the attempt that runs.
	Trigger  ids.Trigger
	Displace bool
	Domain   string
	// Limit is the one that is full.
	Limit table.Ref
	// ReadyBy: a task that became ready later, Unix ms, is not rejected.
	ReadyBy int64
}

// Verdicts are history's answers to a batch, or to a part of it.
type Verdicts struct {
	Partition int
	// Batch is the batch's number, First the index of the first verdict.
	Batch uint64
	First int
	All   []Verdict
}

// Verdict is what history decided about one event.
type Verdict struct {
	// Refused: a fault code; empty = it was applied.
	Refused string
	// Fenced: a newer owner serves this shard.
	Fenced bool
	// Task is the encoded yardv1.PolledTask of a grant.
	Task []byte
	// Trace is the task's trace context, empty where it is not traced.
	Trace []byte
	// DeadlineMS is when the attempt must be over, Unix ms.
	DeadlineMS int64
	// ReadyMS is since when the task of a grant that is traced could have been granted, Unix ms.
	ReadyMS int64
}

// Undelivered is a grant of an owner before that may not have reached its poll.
type Undelivered struct {
	// Domain, ReplyTo, JSON and Max are those of its poll.
	Domain, ReplyTo string
	JSON            bool
	Max             int
	// Trigger and Nonce name the attempt.
	Trigger ids.Trigger
	Nonce   uint64
	// Task is the encoded yardv1.PolledTask.
	Task []byte
}

// Answer ends a poll.
type Answer struct {
	// ID comes back if there was no subscriber; 0 where it holds no tasks.
	ID uint64
	// Poll is the poll's ID; 0 where an owner before had it.
	Poll    uint64
	ReplyTo string
	JSON    bool
	// Tasks are encoded yardv1.PolledTask; none = the wait is over.
	Tasks [][]byte
}

// Traced is a grab of a traced task that was decided.
type Traced struct {
	Trace                  []byte
	Domain, Tasklist, Type string
	ID                     ids.TaskID
	Partition              int
	// Code is history's refusal, empty = granted.
	Code string
	// ReadyMS is since when the task could have been granted, Unix ms; 0 = it was refused.
	ReadyMS int64
	// Polled, Matched, Sent and Decided are when, on the clock of the turn: its poll came at Polled.
	Polled, Matched, Sent, Decided time.Duration
	// Delays are what held up triggers like that of the task, also before it was ready.
	Delays []limit.Delay
}
