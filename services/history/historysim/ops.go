package historysim

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// The core's types, for who may not import them.
type (
	Config       = replica.Config
	FullWeight   = replica.FullWeight
	Checkpoint   = replica.Checkpoint
	Levels       = replica.Levels
	Queue        = replica.Queue
	SnapshotRef  = replica.SnapshotRef
	Now          = replica.Now
	Search       = replica.Search
	Stay         = replica.Stay
	Letter       = replica.Letter
	Answer       = replica.Answer
	Verdict      = replica.Verdict
	TriggerBatch = dispatch.TriggerBatch
	ReleaseGroup = dispatch.ReleaseGroup
	Poll         = dispatch.Poll
	WorkerKey    = dispatch.WorkerKey
	Worker       = taskstate.Worker
	Undelivered  = replica.Undelivered
	Path         = taskstate.Path
	// BookingsQuery asks for a BookingsPage.
	BookingsQuery = dispatch.BookingsQuery
	BookingsPage  = dispatch.BookingsPage
	Task          = taskstate.Task
	Extra         = taskstate.Extra
	Batch         = taskstate.Batch
	Unique        = taskstate.Unique
	Order         = taskstate.Order
	Expiry        = taskstate.Expiry
	Event         = taskstate.Event
	Update        = taskstate.Update
	Redrive       = taskstate.Redrive
	Blob          = taskstate.Blob
	Policy        = taskstate.Policy
	Terms         = taskstate.Terms
	TypeName      = taskstate.TypeName
	Fields        = taskstate.Fields
	Kind          = taskstate.Kind
	State         = taskstate.State
)

// StartsDirectly has the first attempt of a task begin with its submit.
func StartsDirectly(t *Task, nonce uint64, worker *Worker) {
	taskstate.StartsDirectly(t, nonce, worker)
}

// PlaceBefore tells whether a lies before b in the line of their order key.
func PlaceBefore(a, b *Task) bool {
	return cmp.Or(cmp.Compare(a.Position.Seq(), b.Position.Seq()), cmp.Compare(a.Order().Index, b.Order().Index)) < 0
}

// LeaseFor is how long a saved checkpoint lets its owner go on.
const LeaseFor = replica.LeaseFor

// The kinds of events and the ends of a task.
const (
	Started   = taskstate.Started
	Succeeded = taskstate.Succeeded
	Failed    = taskstate.Failed
	Heartbeat = taskstate.Heartbeat
	Released  = taskstate.Released
	Cancel    = taskstate.Cancel
	Expired   = taskstate.Expired
	Fence     = taskstate.Fence
	Changed   = taskstate.Changed
	Displace  = taskstate.Displace
	Redrove   = taskstate.Redrove
	Skipped   = taskstate.Skipped
	Unblocked = taskstate.Unblocked
	Ended     = taskstate.Ended

	Running   = taskstate.Running
	Completed = taskstate.Completed
	Dead      = taskstate.Dead
	Cancelled = taskstate.Cancelled
	Lapsed    = taskstate.Lapsed
)

// OpKind says what an operation does.
type OpKind uint8

// The operations. All but Hints and Reply are answered.
const (
	LoadCheckpoint OpKind = iota
	SaveCheckpoint
	// SaveSnapshot stores Chunks under Snapshot, LoadSnapshot finds them, and ForgetSnapshots deletes those before it.
	SaveSnapshot
	LoadSnapshot
	ForgetSnapshots
	AppendFence
	ReadTimer
	ReadArchive
	ReadEnds
	ReadLog
	Count
	FetchLane
	AppendArchive
	// StoreLetters stores Tasks as dead letters, each in place of one of an earlier stay, unless one is there. DropLetters deletes Letters, and what was
	// stored of their tasks before them. AskLetter finds the letter of a task.
	StoreLetters
	DropLetters
	AskLetter
	Park
	// ReadFence finds the epoch of the last fence of the timer store, as Seq.
	ReadFence
	// AppendTurn appends Turn to the events behind Expected; ReadLastTurn finds the last one, as LastTurn, and its messages.
	AppendTurn
	ReadLastTurn
	AskTimer
	AskArchive
	AskUnread
	Purge
	Hints
	Reply
)

var opNames = [...]string{
	"load checkpoint", "save checkpoint", "save snapshot", "load snapshot", "forget snapshots", "append fence", "read timer", "read archive", "read ends", "read log", "count",
	"fetch lane", "append archive", "store letters", "drop letters", "ask letter", "park", "read fence", "append turn", "read last turn", "ask timer", "ask archive", "ask unread",
	"purge", "hints", "reply",
}

func (k OpKind) String() string { return opNames[k] }

// Stored is a checkpoint as it is stored.
type Stored struct {
	Checkpoint
	Epoch uint64
	// Owner and Count tell who saved it, and which of its saves it was.
	Owner string
	Count int
}

// Message is one message of the log: of a lane, or of events.
type Message struct {
	Seq   uint64
	Event bool
	Lane  ids.Lane
	// Place is where it is filed.
	Place ids.Place
	// At is when it was stored, Unix ms.
	At      int64
	Tasks   []Task
	Events  []Event
	ReplyTo string
	Request uint64
	// Shard is the matching shard that wrote it, plus one; 0 = not matching. Then Request counts
	// its batches of Epoch and of this partition, and Polls are what the events' Poll names.
	Shard            uint32
	Epoch, Delivered uint64
	Polls            []Poll
	// From is who sent a batch of events, for the host.
	From any
	// Turn is the one that it is of, Last the last message of that; Admitted are the steps before that, of its first message.
	Turn     TurnName
	Last     uint64
	Admitted []replica.Admission
	// Terms are those of its turn, of its first message.
	Terms []*Terms
	// Purged: it is out of the stream.
	Purged bool
}

// TurnName names a turn: the epoch of its owner, and its number there, from 1.
type TurnName struct{ Epoch, Number uint64 }

// Op is one operation that an owner asks for.
type Op struct {
	Kind OpKind
	// Checkpoint and Revision of a save: what to save, and instead of which.
	Checkpoint Stored
	Revision   uint64
	// Epoch is the owner's.
	Epoch uint64
	// Snapshot and Chunks are those of a snapshot.
	Snapshot SnapshotRef
	Chunks   [][]byte
	// Lane, Place, From, To: what to read; or to count behind From, all in a place and those of another. Starts: the lanes' levels, of ReadLog.
	Lane      ids.Lane
	Place, In ids.Place
	From, To  uint64
	Starts    [ids.Lanes]uint64
	// Expected is the last sequence of the archive, or of the events, that an append builds upon.
	Expected uint64
	// Turn are the batches of the turn of this name, each of which becomes a message.
	Turn    []*Message
	Name    TurnName
	Tasks   []Task
	Letters []Letter
	// Data is what goes to the timer store, encoded, of Park and AppendFence; Bucket is where
	// Park puts it. Tasks are in it.
	Data   []byte
	Bucket int64
	// Levels are those of Purge and AskUnread.
	Levels   Levels
	Search   Search
	Triggers []TriggerBatch
	Releases []ReleaseGroup
	Answer   *Answer

	// Done is called once with the outcome.
	Done func(Outcome)
}

// Result says how an operation ended.
type Result uint8

// OK: done. Refused: certainly not done. Unknown: done or not, now or later. Conflict: not
// done, the store is not as expected.
const (
	OK Result = iota
	Refused
	Unknown
	Conflict
)

var resultNames = [...]string{"ok", "refused", "unknown", "conflict"}

func (r Result) String() string { return resultNames[r] }

// Outcome is how an operation ended and what it found.
type Outcome struct {
	Result   Result
	Seq      uint64
	Stored   Stored
	Revision uint64
	Messages []*Message
	Chunks   [][]byte
	// Ends are the last sequences of the lanes, Events that of the events; Seq the last of the log.
	Ends   [ids.Lanes]uint64
	Events uint64
	// Batches and Stays are the tails of the timer store and the archive.
	Batches [][]byte
	Stays   []Stay
	// LastTurn is the turn that Messages are, up to Seq.
	LastTurn TurnName
	// Task was found; Position is where it lies, if it is unread; Seq, if it is a dead letter.
	Task     *Task
	Position ids.Position
	// All messages of the lane lie behind, and Own of the domain, of Count.
	All, Own uint64
	// Fired: the timer has fired the task recently. Coming: it fires it now.
	Fired, Coming bool
}

// Host is what an owner runs on.
type Host interface {
	// Send carries out an operation; its Done is called later, if the owner is still there.
	Send(op *Op)
	// After calls do, later.
	After(d time.Duration, do func())
	Now() Now
	// Pick is any number below n.
	Pick(n int) int
	// Terms are those of a type, as far as this process knows; nil = it has no settings.
	Terms(of TypeName) *Terms
	// Applied says that the owner has stepped through a message.
	Applied(m *Message)
	// Ended says that the owner is no more, and why.
	Ended(why string)
	// Fault reports a broken invariant.
	Fault(format string, args ...any)
}

// CopyTask is t as it is after it was stored and read back.
func CopyTask(t *Task) Task {
	c := *t
	c.Steps = slices.Clone(t.Steps)
	c.Before = 0
	if t.Extra != nil {
		extra := *t.Extra
		c.Extra = &extra
	}
	return c
}

// The parts of policies.
type (
	Rules     = taskstate.Rules
	ErrorRule = taskstate.ErrorRule
	Jitter    = taskstate.Jitter
	OnLost    = taskstate.OnLost
	OnTimeout = taskstate.OnTimeout
	Step      = taskstate.Step
)

// The choices of a policy.
const (
	JitterFull  = taskstate.JitterFull
	JitterEqual = taskstate.JitterEqual
	JitterNone  = taskstate.JitterNone
	LostFails   = taskstate.LostFails
	LostDies    = taskstate.LostDies
	TimeoutDies = taskstate.TimeoutDies
)

// Fields of a policy.
const (
	FieldMaxAttempts     = taskstate.FieldMaxAttempts
	FieldInitialInterval = taskstate.FieldInitialInterval
	FieldMaxInterval     = taskstate.FieldMaxInterval
	FieldJitter          = taskstate.FieldJitter
)

// LostMax is how many grants in a row may be lost.
const LostMax = taskstate.LostMax

// The steps of a grant that was handed back, and of one that was put off; of a task that blocks its order key, of one that was changed, and of
// one that was a dead letter and came back; and of one that waited for its time.
const (
	StepHandedBack = taskstate.StepHandedBack
	StepSnoozed    = taskstate.StepSnoozed
	StepBlocked    = taskstate.StepBlocked
	StepUpdated    = taskstate.StepUpdated
	StepRedriven   = taskstate.StepRedriven
	StepUnblocked  = taskstate.StepUnblocked
	StepParked     = taskstate.StepParked
	StepFired      = taskstate.StepFired
)
