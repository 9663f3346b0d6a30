package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Effects are what a step asks for, to be carried out in the order of the fields.
type Effects struct {
	// Answers go to polls.
	Answers []Answer
	// Refusals too.
	Refusals []Refusal
	// Moves are polls that are given up to their frontends. If no one takes one, it comes back as Inputs.Unmoved.
	Moves []Move
	// Batches go to the log of history partitions. Nothing tells whether they
	// arrived but their verdicts.
	Batches []Batch
	// Calls go to the tables; each comes back as an Outcome. At most one of a domain is
	// under way. Until its outcome is an input, what a call refers to stays as it is.
	Calls []table.Call
	// Opens are domains to be opened.
	Opens []string
	// Drops are limits that are no more; no one waits for it.
	Drops []LimitHint
	// Asks are questions to history.
	Asks []Ask
	// Freed, Restore and Hungry are hints to others.
	Freed, Restore []LimitHint
	Hungry         []Hungry
	// Branches go to the shards of the parents of these partitions; they may be lost.
	Branches []Branch
	// Loads go to frontends; they may be lost.
	Loads []Load
	// Acks say what became of messages of the hint stream.
	Acks []Ack
	// Traced are tasks with a trace context of which something is to be shown.
	Traced []Traced
	// Decided is how long each batch of grabs took, of which the last verdict came.
	Decided []time.Duration
	Counts  Counts

	// Prove: a round trip to the server is wanted, unless one is under way.
	Prove bool
	// Wake is when to step even if nothing comes in, on the clock of Now.Mono; 0 = never.
	Wake time.Duration
	// Open: what owners before had under way is decided and sent again, as far as could be
	// found out: frontends may end the polls that these owners had. It is said once.
	Open bool
	// Overtaken: a newer owner serves this shard. Nothing goes out any more but what is above.
	Overtaken bool
	// Drained: nothing is under way any more.
	Drained bool
}

// Answer ends a poll.
type Answer struct {
	// ID comes back as Bounced if there was no subscriber; 0 where it holds no tasks.
	ID uint64
	// Poll is the poll's ID; 0 where an owner before had it.
	Poll    uint64
	ReplyTo string
	JSON    bool
	// Tasks are encoded yardv1.PolledTask; none = the wait is over.
	Tasks [][]byte
}

// Refusal ends a poll that was not taken.
type Refusal struct {
	// Poll is the poll's ID.
	Poll    uint64
	ReplyTo string
	// Code is a fault code, Message for people, RetryAfter 0 where it says nothing.
	Code       string
	Message    string
	RetryAfter time.Duration
}

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

// The questions.
const (
	// AskBookings: the attempts of the shard that hold slots, of all domains.
	AskBookings question.Kind = iota + 1
	// AskUndelivered: grants of the shard's owners before this one that may not have
	// reached their polls. It is asked once the fence is in the log.
	AskUndelivered
	// AskRunning: all running attempts of Types of Domain, of the shard; of all types where it names none.
	AskRunning
	// AskRetrigger: have all triggers of the shard sent again, of Domain or of all domains.
	AskRetrigger
	// AskHolders: of limits, the attempts of all shards that hold slots for the longest, and how many tasks wait.
	AskHolders
)

// Ask is a question to one history partition.
type Ask struct {
	// ID names it in its outcome.
	ID        uint64
	Kind      question.Kind
	Partition int
	Domain    string
	Types     []string
	Holders   []HoldersQuery
}

// Hungry is a tasklist where polls wait for what its table does not hold.
type Hungry struct {
	Domain, Tasklist string
	// Present are types that it does hold, presentMax of them at most: copies of their triggers would pile up.
	Present []string
}

// Ack says what became of a message of the hint stream.
type Ack struct {
	Delivery uint64
	// OK: it is taken care of; else it should come again a little later.
	OK bool
}

// Traced is a grab of a traced task that was decided.
type Traced struct {
	Trace                  []byte
	Domain, Tasklist, Type string
	ID                     ids.TaskID
	Partition              int
	// Code is history's refusal, empty = granted.
	Code string
	// Matched, Sent and Decided are when, on the clock of Now.Mono.
	Matched, Sent, Decided time.Duration
}

// Counts is what one step has done, for metrics; WaitingPolls is how many wait after it.
type Counts struct {
	HintBatches, Triggers, Polls, PollsRefused, SyncMatches, Matches int64
	GrabBatches, Granted, GrabsRefused, HandedBack, Bounced, Doubles int64
	Losses, Audited, WouldWait                                       int64
	// PollsUp and PollsDown count polls that were given up to the parent of a partition, and to one below it.
	PollsUp, PollsDown int64
	// Rejected counts tasks that were, Displaced attempts that were asked to make room.
	Rejected, Displaced int64
	// Looks counts tasklists that were looked at for triggers to take.
	Looks int64
	// Malformed counts invalid input.
	Malformed    int64
	WaitingPolls int64
}
