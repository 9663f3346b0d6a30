package yard

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// State is the state of a task.
type State string

// The states. Later versions of the engine may have more.
const (
	// StateWaiting: due in the future, in the timer store.
	StateWaiting State = "waiting"
	// StateQueued: stored, and not yet read by the engine.
	StateQueued State = "queued"
	// StateReady: it may run now.
	StateReady State = "ready"
	// StateRunning: a worker has it.
	StateRunning State = "running"
	// StateBackoff: an attempt failed, and the next one is due later.
	StateBackoff State = "backoff"
	// StateCompleted: a worker completed it.
	StateCompleted State = "completed"
	// StateDead: out of attempts, or failed for good. It is in the dead letters.
	StateDead State = "dead"
	// StateCancelled: somebody cancelled it.
	StateCancelled State = "cancelled"
	// StateExpired: it did not start or was not completed in its time.
	StateExpired State = "expired"
)

// Finished reports whether s is a last state.
func (s State) Finished() bool {
	switch s {
	case StateCompleted, StateDead, StateCancelled, StateExpired:
		return true
	}
	return false
}

// TaskInfo describes a task. A time that is not known is the zero one.
type TaskInfo struct {
	ID       string
	Domain   string
	Tasklist string
	Type     string
	// Priority is 1 (most urgent) to 5.
	Priority int
	State    State
	// Payload is the input, Result the output of a completed task, Progress the last one of the running attempt. Lists have none.
	Payload, Result, Progress Payload
	// Failures counts attempts that failed, Grants those that were given to a worker, however they ended.
	Failures, Grants int
	// CreatedAt is when it was accepted, DueAt when it is or was due, FinishedAt when it ended.
	CreatedAt, DueAt, FinishedAt time.Time
	// StartBy and FinishBy are when it expires, unless it has started or is completed by then.
	StartBy, FinishBy time.Time
	// ErrorMessage, for people, and ErrorType, for programs, are those of the last failure.
	ErrorMessage, ErrorType string
	// Worker is who runs it.
	Worker string
	// CancelRequested: it was cancelled while it ran, and its worker has not stopped yet.
	CancelRequested bool
	// Events is its history, oldest first. Lists have none.
	Events []Event
	// Traceparent is its W3C trace context.
	Traceparent string
	// Headers and Group are as they were submitted, or changed.
	Headers map[string]string
	Group   string
	// Cost is how many starts of a rate each of its attempts uses; 0 = 1.
	Cost int
	// UniqueKey is its unique key, which it keeps for UniqueFor after its end; "" = none.
	UniqueKey string
	UniqueFor time.Duration
	// Redrives is how often it came back from the dead letters. Its failures count from then on.
	Redrives int
	// OrderKey is its order key; "" = none. AwaitsTurn: it waits for an earlier task with it to end. Blocked: it would be dead, and holds it up instead, as BlocksKey says.
	OrderKey   string
	AwaitsTurn bool
	Blocked    bool
	BlocksKey  bool
	// Batch is the batch that it is a member of; "" = none.
	Batch string
	// Revision is 1 for a task as it was submitted, and one more with each update; 0 if it is not known.
	Revision int64
}

// Event is one step in a task's life.
type Event struct {
	// Kind is what happened, such as "started": the names of TaskEventKind in the API, in lower case. Later versions of the
	// engine may have more.
	Kind string
	// At is when the log had it.
	At time.Time
	// Grant is the number of the attempt that it belongs to; 0 = none.
	Grant int
	// Worker is who ran it.
	Worker string
	// Message is an error or a reason, for people; ErrorType is for programs.
	Message, ErrorType string
	// DueAt is when a task that was parked or failed is due again.
	DueAt time.Time
}

// TasklistInfo is what a tasklist holds.
type TasklistInfo struct {
	Tasklist string
	// Ready tasks may run now, Running ones have a worker, Backoff ones wait for their next attempt in memory, Waiting
	// ones are in the timer store.
	Ready, Running, Backoff, Waiting int64
	// UnreadBatches counts messages of the log (1 to 1000 tasks each) that are not yet read.
	UnreadBatches int64
	// OldestReady is for how long the oldest ready task has been so.
	OldestReady time.Duration
	// WaitingPolls counts the polls that wait right now.
	WaitingPolls int64
	// Completed, Dead and Expired count tasks, Failed attempts, since the owners of the partitions took over.
	Completed, Failed, Dead, Expired int64
	// Slots says how full each limit with slots in use is: of the domain, of this tasklist, of each type of the domain, and
	// those that types share.
	Slots []SlotUse
	// LaggingLanes is how many priorities, over all partitions, go on without this domain, since it has more ready tasks there
	// than are held of one. They are read when workers have taken some of those.
	LaggingLanes int
	// Pause is there while the tasklist is paused, or its whole domain.
	Pause *Pause
	// PausedTypes are the types of the domain that are paused, by name, at most 100.
	PausedTypes []string
	// MaxQueued is the cap of its queue, 0 = none, and Queued how full that is as a submit sees it, up to a second old.
	MaxQueued int
	Queued    int64
	// Pollers is how many workers polled it in the last 5 minutes: those of TasklistPollers.
	Pollers int64
	// Drain is there while the tasklist is drained.
	Drain *Pause
	// DrainedTypes are the types of the domain that are drained, by name, at most 100.
	DrainedTypes []string
	// PausedGroups and DrainedGroups are the groups of the domain that are paused, and drained, by name, at most 100 each.
	PausedGroups, DrainedGroups []string
	// Partitions is over how many partitions it is spread now, if there are several, 2..64. PartitionsLeast and PartitionsMax are the least
	// and the most of them, if the engine sets their number (Tasklist.PartitionsMax).
	Partitions, PartitionsLeast, PartitionsMax int
}

// SlotUse says how full a concurrency limit is.
type SlotUse struct {
	// Ref is which limit: "domain", "tasklist/NAME", "type/NAME", or "shared/NAME" of PutLimit.
	Ref string
	// Type is the task type, if it is the limit of one.
	Type         string
	InUse, Limit int
}

// infoOf is nil if there is no task.
func infoOf(w *yardv1.Task) *TaskInfo {
	if w == nil {
		return nil
	}
	t := &TaskInfo{
		ID: w.GetTaskId(), Domain: w.GetDomain(), Tasklist: w.GetTasklist(), Type: w.GetType(), Priority: int(w.GetPriority()),
		State: State(w.GetState().Name()), Payload: payloadOf(w.GetPayload()), Result: payloadOf(w.GetResult()), Progress: payloadOf(w.GetProgress()),
		Failures: int(w.GetFailures()), Grants: int(w.GetGrants()),
		CreatedAt: instant(w.GetCreatedAtMs()), DueAt: instant(w.GetDueAtMs()), FinishedAt: instant(w.GetFinishedAtMs()),
		StartBy: instant(w.GetStartByMs()), FinishBy: instant(w.GetFinishByMs()),
		ErrorMessage: w.GetErrorMessage(), ErrorType: w.GetErrorType(), Worker: w.GetWorker(), CancelRequested: w.GetCancelRequested(),
		Traceparent: w.GetTraceparent(), Headers: w.GetHeaders(), Group: w.GetGroup(), Cost: int(w.GetCost()), Redrives: int(w.GetRedrives()), Revision: w.GetRevision(),
		UniqueKey: w.GetUniqueKey(), UniqueFor: time.Duration(w.GetUniqueForMs()) * time.Millisecond,
		OrderKey: w.GetOrderKey(), Batch: w.GetBatchId(), AwaitsTurn: w.GetAwaitsTurn(), Blocked: w.GetBlocked(),
		BlocksKey: w.GetOrderPolicy() == yardv1.OrderPolicy_ORDER_POLICY_BLOCK,
	}
	for _, e := range w.GetEvents() {
		t.Events = append(t.Events, Event{
			Kind: e.Kind.Name(), At: instant(e.AtMs), Grant: int(e.Grant), Worker: e.Worker, Message: e.Message, ErrorType: e.ErrorType,
			DueAt: instant(e.DueAtMs),
		})
	}
	return t
}

// instant is a time of the API; 0 stands for none.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func tasklistInfoOf(w *yardv1.DescribeTasklistResponse) TasklistInfo {
	t := TasklistInfo{
		Tasklist: w.GetTasklist(), Ready: w.GetReady(), Running: w.GetRunning(), Backoff: w.GetBackoff(), Waiting: w.GetWaiting(),
		UnreadBatches: w.GetUnreadBatches(), OldestReady: time.Duration(w.GetOldestReadyMs()) * time.Millisecond, WaitingPolls: w.GetWaitingPolls(),
		Completed: w.GetCompleted(), Failed: w.GetFailed(), Dead: w.GetDead(), Expired: w.GetExpired(), LaggingLanes: int(w.GetLaggingLanes()),
		Pause: maybePaused(w.GetPause()), PausedTypes: w.GetPausedTypes(), MaxQueued: int(w.GetMaxQueued()), Queued: w.GetQueued(),
		Pollers: w.GetPollers(), Drain: maybePaused(w.GetDrain()), DrainedTypes: w.GetDrainedTypes(), PausedGroups: w.GetPausedGroups(), DrainedGroups: w.GetDrainedGroups(), Partitions: int(w.GetPartitions()), PartitionsLeast: int(w.GetPartitionsLeast()), PartitionsMax: int(w.GetPartitionsMax()),
	}
	for _, s := range w.GetSlots() {
		t.Slots = append(t.Slots, SlotUse{Ref: s.Ref, Type: s.Type, InUse: int(s.InUse), Limit: int(s.Limit)})
	}
	return t
}

// Filter says which tasks a list has. The zero one means all.
type Filter struct {
	// Tasklist, Type and Group: only those of them. Default: all.
	Tasklist, Type, Group string
	// States: only those in one of them. Default: all.
	States []State
	// Headers: only tasks that have each of these with exactly this value; at most 4. There is no index of headers: pages may
	// hold few tasks and more may follow all the same.
	Headers map[string]string
	// OrderKey: only tasks with this order key. Blocked: only tasks that block theirs.
	OrderKey string
	Blocked  bool
	// Batch: only members of this batch.
	Batch string
	// DueWithin: only tasks that wait for their time and are due within this duration, by the minute in which they are due; see package timers.
	DueWithin time.Duration
	// Limit is the number of tasks of a List, or of one request of Tasks, 1..1000. Default 100.
	Limit int
}

// wire is the first page that f asks for. A state that this version does not know is refused by the engine.
func (f Filter) wire() *yardv1.ListRequest {
	w := &yardv1.ListRequest{Tasklist: f.Tasklist, Type: f.Type, Group: f.Group, Headers: f.Headers, Limit: int32Of(f.Limit), OrderKey: f.OrderKey, Blocked: f.Blocked, BatchId: f.Batch, DueWithinMs: milliseconds(f.DueWithin)}
	w.States = each(f.States, numberOf[yardv1.TaskState])
	return w
}
