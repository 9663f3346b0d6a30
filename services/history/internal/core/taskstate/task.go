// Package taskstate is the life of one task: a pure function from a state and
// a record of the log to a verdict, a new state and the effects to carry out.
//
// Owns: what may follow what (the table in transitions.go), the fence of
// attempts, when a lease is over, how long to wait between attempts.
// Never does: I/O, reading a clock, random numbers. Time is the log's own
// timestamp, jitter is a hash of the task id, so that every owner of a
// partition reaches the same decisions (I3).
// On failure: a record that does not fit the state changes nothing and gets a
// verdict that says why.
package taskstate

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// State of a task. The values are those of yard.v1.TaskState.
type State uint8

// The states.
const (
	// None: nothing known yet.
	None State = 0
	// Waiting: due in the future; leaves history for the timer store.
	Waiting State = 1
	// Ready: may run now.
	Ready State = 3
	// Running: granted to a worker.
	Running State = 4
	// Backoff: failed, the next attempt is due soon enough to wait here.
	Backoff State = 5
	// Completed, Dead, Cancelled and Lapsed are the ends. Lapsed is "expired" in the API.
	Completed State = 6
	Dead      State = 7
	Cancelled State = 8
	Lapsed    State = 9
)

// Finished tells whether s is an end.
func (s State) Finished() bool { return s >= Completed }

// Active tells whether a task in s is neither unread nor ended nor in the timer store.
func (s State) Active() bool { return s == Ready || s == Running || s == Backoff }

// String names the state as the API does.
func (s State) String() string {
	names := [...]string{
		Waiting: "waiting", Ready: "ready", Running: "running", Backoff: "backoff",
		Completed: "completed", Dead: "dead", Cancelled: "cancelled", Lapsed: "expired",
	}
	if int(s) < len(names) && names[s] != "" {
		return names[s]
	}
	return "none"
}

// Blob is bytes with the encoding their owner gave them (yard.v1.Encoding).
type Blob struct {
	Data     []byte
	Encoding int32
}

// Attempt is the current grant of a running task, or the last one of any other.
type Attempt struct {
	Nonce      uint64
	Worker     *Worker
	StartedAt  int64
	DeadlineAt int64
	// BeatBy is when the worker counts as silent; 0 = never.
	BeatBy   int64
	Progress Blob
	// Limits are those in which a slot is held; nil = none is.
	Limits *Path
	// Shard is the matching shard that it was granted to while it runs, plus one; 0 = that of the first partition of the tasklist. Its slots
	// are held there.
	Shard uint16
	// Ended is how the attempt ended, so that a repeated outcome gets the same verdict.
	Ended Kind
}

// Task is one task in memory. Times are Unix milliseconds. The order of the fields keeps it
// small: with what the replica adds it must not exceed 512 bytes, past which the garbage
// collector looks at each one by itself.
type Task struct {
	ID       ids.TaskID
	Domain   string
	Tasklist string
	Type     string
	Payload  Blob
	Policy   *Policy
	// Trace is its W3C trace context in 25 bytes; empty = not traced.
	Trace string
	// Extra is what few tasks have; nil = nothing. A pointer, for the size of a task.
	Extra *Extra

	Priority int32
	State    State
	// CancelRequested: its worker has been, or will be, asked to stop.
	CancelRequested bool
	// Lost counts grants lost to silent workers since the last failure, at most LostMax.
	Lost int16
	// Position is the submit record of this stay in history, Before that of the stay
	// before, 0 where there was none.
	Position ids.Position
	Before   ids.Position
	// Version is the fence: the next grant has Version+1. It counts grants, and what an update passes over.
	Version uint32
	// Failures counts attempts that failed.
	Failures int32
	// HandedBack counts grants that were handed back.
	HandedBack uint32
	// Parkings counts how often the task was parked. A stay in history, and the one in
	// the timer store before it, is named by (ID, Parkings).
	Parkings uint32
	// DueAt is when the task is or was due to become ready; 0 = at acceptance.
	DueAt int64
	// ReadyAt is when it last became ready, or of a task in Backoff will: its place in line.
	ReadyAt    int64
	FinishedAt int64
	Attempt    Attempt
	Result     Blob
	ErrMessage string
	ErrType    string
	// CancelReason is what the canceller said.
	CancelReason string
	// Steps is the history of the task; StepsDropped were dropped to keep it bounded.
	Steps        []Step
	StepsDropped uint32
	stepsBytes   int32
}

// CreatedAt is when the task was accepted.
func (t *Task) CreatedAt() int64 { return t.ID.Time().UnixMilli() }

// Trigger is the hint that t is ready for its next grant.
func (t *Task) Trigger() ids.Trigger {
	return ids.Trigger{ID: t.ID, Version: t.Version + 1, Position: t.Position}
}

// Token is the fence of the current attempt.
func (t *Task) Token() ids.Token {
	return ids.Token{Position: t.Position, Version: t.last(), Nonce: t.Attempt.Nonce}
}

// PolledBytes is about what t takes in the answer to a poll.
func PolledBytes(t *Task) int64 {
	const fixed, header = 200, 8 // ids, token, times and counts; the lengths of a header
	n := fixed + len(t.Type) + len(t.Tasklist) + len(t.Group()) + len(t.Payload.Data)
	for _, h := range t.HeaderList() {
		n += header + len(h.Name) + len(h.Value)
	}
	return int64(n)
}

// WakeAt is when the owner must look at t again: a lease that runs out, a
// wait that ends, or the time of a task that is ready; 0 = never.
func (t *Task) WakeAt() int64 {
	switch t.State {
	case Running:
		if b := t.Attempt.BeatBy; b > 0 && b < t.Attempt.DeadlineAt {
			return b
		}
		return t.Attempt.DeadlineAt
	case Backoff:
		if t.DueAt == 0 { // it blocks its order key
			return t.LapsesAt()
		}
		return t.DueAt
	case Ready:
		return t.LapsesAt()
	}
	return 0
}

// StepKind names an entry of a task's history (yard.v1.TaskEventKind).
type StepKind uint8

// The kinds of steps.
const (
	StepSubmitted       StepKind = 1
	StepParked          StepKind = 2
	StepFired           StepKind = 3
	StepStarted         StepKind = 4
	StepCompleted       StepKind = 5
	StepFailed          StepKind = 6
	StepTimedOut        StepKind = 7
	StepLost            StepKind = 8
	StepHandedBack      StepKind = 9
	StepCancelRequested StepKind = 10
	StepCancelled       StepKind = 11
	StepDead            StepKind = 12
	StepLapsed          StepKind = 13
	StepSnoozed         StepKind = 14
	StepUpdated         StepKind = 15
	StepRedriven        StepKind = 16
	StepBlocked         StepKind = 17
	StepUnblocked       StepKind = 20
)

// Step is one entry of a task's history.
type Step struct {
	Kind    StepKind
	At      int64
	Grant   uint32
	Worker  string
	Message string
	ErrType string
	DueAt   int64
}

const (
	// stepsMax and stepsBytesMax bound a task's history, in steps and in the bytes that
	// they take in a record; past either the oldest step after the first stepsKept is
	// dropped and counted.
	stepsMax      = 500
	stepsBytesMax = 32 << 10
	stepsKept     = 4
)

// stepBytes is about what s takes in a record.
func stepBytes(s *Step) int {
	const fixed = 32
	return fixed + len(s.Worker) + len(s.Message) + len(s.ErrType)
}

func (t *Task) step(s Step) {
	if t.Steps == nil {
		t.Steps = make([]Step, 0, stepsFew)
	}
	// Attempts often fail alike: equal messages share their memory.
	for _, last := range t.Steps[max(0, len(t.Steps)-2):] {
		if last.Message == s.Message {
			s.Message = last.Message
		}
	}
	t.Steps = append(t.Steps, s)
	t.stepsBytes += int32(stepBytes(&s))
	for len(t.Steps) > stepsKept+1 && (len(t.Steps) > stepsMax || t.stepsBytes > stepsBytesMax) {
		t.stepsBytes -= int32(stepBytes(&t.Steps[stepsKept]))
		t.Steps = append(slices.Clone(t.Steps[:stepsKept]), t.Steps[stepsKept+1:]...) // copies of a task share its steps
		t.StepsDropped++
	}
}

// SetSteps gives a task that was read back its history.
func (t *Task) SetSteps(steps []Step, dropped uint32) {
	t.Steps, t.StepsDropped, t.stepsBytes = steps, dropped, 0
	for i := range steps {
		t.stepsBytes += int32(stepBytes(&steps[i]))
	}
}

const (
	// footprintFixed is what any task takes, footprintStep what a step does.
	footprintFixed, footprintStep = 640, 88
	// stepsFew is for how many steps there is room at first.
	stepsFew = 4
	// FootprintMin is the Footprint of a task with few steps, without a payload and what else it may have.
	FootprintMin = footprintFixed + stepsFew*footprintStep
)

// Footprint is about how much memory t takes, in bytes.
func (t *Task) Footprint() int {
	const header, order, updates = 32, 160, 64
	n := 0
	if t.Policy != nil {
		n = t.Policy.Rules.Footprint() // as if it were its alone, since it may be
	}
	for _, h := range t.HeaderList() {
		n += header + len(h.Name) + len(h.Value)
	}
	if o := t.Order(); o != nil {
		n += order + len(o.Key) // with its place in the line of its key
	}
	if t.Extra != nil && t.Extra.Updates != nil {
		n += updates
	}
	n += len(t.BatchID())
	return n + footprintFixed + cap(t.Steps)*footprintStep + int(t.stepsBytes) + len(t.Payload.Data) + len(t.Result.Data) +
		len(t.Attempt.Progress.Data) + len(t.ErrMessage)
}
