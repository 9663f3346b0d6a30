package yard

import (
	"cmp"
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Task is one unit of work to submit. Only Type and Tasklist are required.
type Task struct {
	// Type is the kind of work, such as "email.send". [A-Za-z0-9_.-]{1,64}.
	Type string
	// Tasklist is the tasklist it waits in. [A-Za-z0-9_-]{1,64}.
	Tasklist string
	// Payload is the input, encoded as NewPayload says; at most 256 KiB.
	Payload any
	// Priority is 1 (most urgent) to 5. Default: that of the tasklist (PutTasklist), which is 3 if it has no settings.
	Priority int
	// Delay runs the task this long after it is accepted, up to 366 days. Not together with RunAt.
	Delay time.Duration
	// RunAt is the instant to run it at, to the millisecond; at most 10 s in the
	// past and 366 days ahead. Not together with Delay.
	RunAt time.Time
	// Retry says what happens after a failure. Default: the type's.
	Retry *RetryPolicy
	// StartToClose bounds one attempt, 100 ms to 7 days. Default: the type's, then 5 min.
	StartToClose time.Duration
	// HeartbeatTimeout takes an attempt from its worker if no heartbeat comes for longer,
	// 100 ms to 7 days. Default: the type's, then none. Worker sends heartbeats by itself.
	HeartbeatTimeout time.Duration
	// StartWithin ends the task as expired if no attempt has started this long after it was due, or after acceptance if it
	// was due at once, 100 ms to 366 days. An attempt that was handed back does not count. Default: the type's, then never.
	StartWithin time.Duration
	// FinishWithin ends the task as expired if it is not completed by then, 100 ms to 366 days, counted the same way. An
	// attempt ends then at the latest. Not less than StartWithin. Default: the type's, then never.
	FinishWithin time.Duration
	// Traceparent is the W3C trace context the task continues. Default: the span
	// in the context it is submitted with.
	Traceparent string
	// Headers are texts that go with the task: its worker gets them, and List filters by them. At most 32, and 4 KiB together.
	// A name is [A-Za-z0-9._-]{1,64}, not beginning with yard-; a value is UTF-8, at most 1 KiB.
	Headers map[string]string
	// Group is the customer, partner or other party that the task is for, if parties are to get equal shares:
	// [A-Za-z0-9_.-]{1,64}. Ready tasks of one tasklist, type and priority start in turn between their groups; see PutGroup
	// for weights. Default: none.
	Group string
	// Cost is how many starts of a rate each of its attempts uses, 1..1000, such as the credits of a partner's API that it takes.
	// Limits of concurrency count each attempt as one. Default: the type's, then 1.
	Cost int
	// Unique allows at most one unfinished task for a key. Default: there may be any number of equal tasks.
	Unique *Unique
	// OrderKey, such as an account's number, keeps tasks in order: tasks of the domain with the same key run strictly one at a time, in the order in
	// which they were stored, whatever their tasklists, types and priorities. The next task starts when the one before has ended, however it ended.
	// The waits between attempts hold up this key only; a delayed task holds up no other, and takes its place when it is due. 1..256 bytes of UTF-8, compared exactly. With it, the key of Unique is unique
	// among the tasks of the order key. Default: none.
	OrderKey string
	// BlocksKey: if the task would become a dead letter, it blocks its OrderKey instead, until it is cancelled or gets one more attempt (Update,
	// RunNow). Default: it becomes a dead letter, and the next task of the key starts.
	BlocksKey bool
	// Batch is the batch that it is a member of, which must be open (NewBatch). Default: none.
	Batch string
}

// Unique allows at most one task for a key. While a task of the domain with the key has not ended, and for For afterwards, a submit creates no
// other task with it.
type Unique struct {
	// Key is, for example, an order's number, 1..256 bytes of UTF-8, compared exactly. Tasklist, type and payload do not matter.
	Key string
	// Reject: if another task has the key, Submit returns ALREADY_EXISTS. Default: the id of that task, as if it had been created.
	Reject bool
	// Replace: a task that has the key, and of which no attempt has begun, is changed into this one and keeps its id, if it is of the same
	// tasklist and type; SubmitEach returns OutcomeReplaced then. Otherwise as by default. Excludes Reject.
	Replace bool
	// For is how long the key stays taken after the end of the task, however it ended, up to 366 days. Default 0: it is free with the end.
	For time.Duration
}

// Wire is t as it travels. The error is INVALID_ARGUMENT: the payload does not encode.
func (t *Task) Wire() (*yardv1.NewTask, error) {
	w := &yardv1.NewTask{}
	return w, t.fill(w)
}

// fill writes t into a wire message.
func (t *Task) fill(w *yardv1.NewTask) error {
	payload, err := NewPayload(t.Payload)
	if err != nil {
		return err
	}
	w.Type = t.Type
	w.Tasklist = t.Tasklist
	w.Payload = payload.wire()
	w.Priority = int32Of(t.Priority)
	w.DelayMs = milliseconds(t.Delay)
	if !t.RunAt.IsZero() {
		w.RunAtMs = t.RunAt.UnixMilli()
	}
	w.Retry = t.Retry.wire()
	w.StartToCloseMs = milliseconds(t.StartToClose)
	w.HeartbeatTimeoutMs = milliseconds(t.HeartbeatTimeout)
	w.StartWithinMs = milliseconds(t.StartWithin)
	w.FinishWithinMs = milliseconds(t.FinishWithin)
	w.Traceparent = t.Traceparent
	w.Headers = t.Headers
	w.Group = t.Group
	w.Cost = int32Of(t.Cost)
	w.OrderKey, w.BatchId = t.OrderKey, t.Batch
	if t.BlocksKey {
		w.OrderPolicy = yardv1.OrderPolicy_ORDER_POLICY_BLOCK
	}
	if u := t.Unique; u != nil {
		w.UniqueKey, w.UniqueForMs = u.Key, milliseconds(u.For)
		switch {
		case u.Reject && u.Replace:
			return fault.At(fault.InvalidArgument, "/on_conflict", "Unique.Reject excludes Unique.Replace")
		case u.Reject:
			w.OnConflict = yardv1.OnConflict_ON_CONFLICT_REJECT
		case u.Replace:
			w.OnConflict = yardv1.OnConflict_ON_CONFLICT_REPLACE
		}
	}
	return nil
}

// fillFault is what fill returned for the task at a path. An error without a path of its own is about the payload.
func fillFault(path string, err error) *fault.Error {
	e := fault.From(err)
	return fault.At(e.Code, path+cmp.Or(e.Path, "/payload"), "%s", e.Message)
}

// int32Of saturates, so that a value out of range is refused by the engine
// rather than wrapped into a valid one.
func int32Of(n int) int32 {
	return int32(min(max(n, math.MinInt32), math.MaxInt32))
}
