package taskstate

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Kind is what an event wishes (yard.log.v1.EventKind).
type Kind uint8

// The kinds of events.
const (
	Started   Kind = 1
	Succeeded Kind = 2
	Failed    Kind = 3
	Heartbeat Kind = 4
	Released  Kind = 5
	Cancel    Kind = 6
	Expired   Kind = 7
	// Fence is about a matching shard and not about a task.
	Fence Kind = 9
	// Lapse: the time of a task that does not run is over.
	Lapse Kind = 10
	// Reject: a limit is full that refuses those that wait for it. Displace: one whose oldest attempts make room.
	Reject   Kind = 11
	Displace Kind = 12
	// Changed: a client changes the task.
	Changed Kind = 14
	// Redrove: an operator brings a dead letter back.
	Redrove Kind = 16
	// Skipped: an operator makes the first task of an order key a dead letter. Unblocked: he gives the one that blocks it another attempt.
	Skipped   Kind = 20
	Unblocked Kind = 21
	// Ended: an operator ends the task.
	Ended Kind = 22

	kinds = Ended + 1
)

// Known tells whether events of a kind have a meaning.
func (k Kind) Known() bool {
	return k >= Started && k <= Expired || k >= Fence && k <= Displace || k == Changed || k == Redrove || k.OfKey() || k == Ended
}

// OfAttempt tells whether a worker says events of a kind about its attempt.
func (k Kind) OfAttempt() bool { return k >= Succeeded && k <= Released }

// OfKey tells whether events of a kind are about an order key, through its first task.
func (k Kind) OfKey() bool { return k == Skipped || k == Unblocked }

// Changes tells whether events of a kind change a task for a caller who may repeat them: they have an Update.
func (k Kind) Changes() bool { return k == Changed || k.OfKey() || k == Ended }

// ByPolicy reports whether the policy of a task says what events of a kind do to it.
func (k Kind) ByPolicy() bool { return k == Started || k == Failed || k == Expired }

// Command tells whether events of a kind name a task alone: they wait for it, wherever it is.
func (k Kind) Command() bool { return k == Cancel || k == Redrove || k.Changes() }

// String names the kind.
func (k Kind) String() string {
	names := [...]string{"none", "started", "succeeded", "failed", "heartbeat", "released", "cancel", "expired", 9: "fence", "lapse", "reject", "displace", 14: "update", 16: "redrive", 20: "skip", 21: "unblock", 22: "end"}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return "unknown"
}

// Event is one wish to change a task.
type Event struct {
	Kind  Kind
	ID    ids.TaskID
	Fence ids.Token
	// Domain of the caller; "" = a service of ours.
	Domain string
	// Worker gets the attempt of a grab.
	Worker *Worker
	// Limits are those that a slot was booked in for a grab.
	Limits *Path
	// Poll is the poll that a grab is for: an index into the polls of its message, plus one; 0 = not known.
	Poll uint32
	// TooMuch: the task does not fit into the answer of the poll that a grab is for.
	TooMuch bool
	// Undelivered: the attempt that expired may never have reached its worker.
	Undelivered bool
	// NotAfter: an expiry that is stored later than this (Unix ms) is void; 0 = never. The log stood still
	// meanwhile, so the attempt's worker may not have been heard.
	NotAfter int64
	// SilentLease: the worker of the attempt that expires fell silent, so its lease, which ends at this time (Unix ms), need not be
	// over; 0 = it must be.
	SilentLease int64
	// ReadyBy: a reject is void for a task that became ready later than this (Unix ms).
	ReadyBy      int64
	Data         Blob
	Message      string
	ErrType      string
	NonRetryable bool
	DelayMS      int64
	// Snooze: the attempt that ended did not fail, and the next one comes after DelayMS.
	Snooze bool
	// Update is what a Changed event changes, how an Ended one ends the task, or names the request of a Skipped or an Unblocked one. Seq is its place in the log, At when the log took
	// it, Unix ms.
	Update *Update
	Seq    uint64
	At     int64
	// Index is its place among the events of its message.
	Index uint32
	// Redrive is which dead letter a Redrove event brings back.
	Redrive *Redrive
	// OrderKey is that of the task of a Skipped or an Unblocked event. CancelRunning: if it runs, it is cancelled in place of that.
	OrderKey      string
	CancelRunning bool
}

// Effects of a record, for the shell to carry out in this order: persist
// (Park, Finish), then publish (Trigger, Release), then answer.
type Effects struct {
	// Trigger: the task became ready; tell matching.
	Trigger bool
	// Park: it must wait longer than history keeps it; move it to the timer store.
	Park bool
	// Finish: it ended; archive it. If it is Dead, keep it as a dead letter too.
	Finish bool
	// Release: the attempt that ended, ReleaseVersion, held a slot in these limits; nil = none.
	Release        *Path
	ReleaseVersion uint32
}

// Verdict tells the asker what became of the event.
type Verdict struct {
	// Code is empty where the event was applied.
	Code    fault.Code
	Message string
	// Granted: the asker of a grab holds the attempt. Repeated: it held it before, and
	// asks again.
	Granted, Repeated bool
	// CancelRequested: the worker must stop, or has been asked to.
	CancelRequested bool
	// LeaseUntil is until when silence is fine; 0 = no lease.
	LeaseUntil int64
	// DeadlineAt is when the attempt that a heartbeat is for must end.
	DeadlineAt int64
	// Revision is that of a task that was to be changed; 0 = not known.
	Revision uint64
	// Final: what became of it is not known, nor will a repeat tell.
	Final bool
}

func refuse(code fault.Code, message string) (Verdict, Effects) {
	return Verdict{Code: code, Message: message}, Effects{}
}
