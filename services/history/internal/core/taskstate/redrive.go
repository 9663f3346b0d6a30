package taskstate

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// Redrive brings a dead letter back: the task that ended in a stay comes again as its next one.
type Redrive struct {
	// Letter is the place of the dead letter in its stream, Tasklist what it is filed under; 0 = the caller found none.
	Letter   uint64
	Tasklist string
	// Parkings names the stay that ended.
	Parkings uint32
	// To is the tasklist that the task moves to; "" = it stays in its own.
	To string
	// Policy has the fields that replace those of the task's; nil = none.
	Policy *Policy
	// Request names the request that it came with.
	Request uint64
}

// Bytes is about how much memory d takes while it waits.
func (d *Redrive) Bytes() int {
	if d == nil || d.Policy == nil {
		return 0
	}
	return d.Policy.Rules.Footprint()
}

// redrivesKept is how many redrives are recognised when they come again.
const redrivesKept = 4

// Redriven is what a task remembers of its redrives. It is not changed any more: copies of a task share it.
type Redriven struct {
	Count uint32
	// Seq and Index are the place in the log of the last one, the message and the event in it: a command that lies before it is about an earlier stay.
	Seq   uint64
	Index uint32
	// Requests are those of the last ones, the latest first; 0 = none.
	Requests [redrivesKept]uint64
}

// Redriven is what t remembers of its redrives; the zero one = there was none.
func (t *Task) Redriven() Redriven {
	if was := t.Extra.orNothing().Redriven; was != nil {
		return *was
	}
	return Redriven{}
}

// Before tells whether an event lies before the last redrive, or is that.
func (d *Redriven) Before(seq uint64, index int) bool {
	return seq < d.Seq || seq == d.Seq && uint32(index) <= d.Index
}

// RedrivenBy tells whether a redrive was carried out on t: it is one of the last, which comes again.
func (t *Task) RedrivenBy(e *Event) bool {
	was := t.Redriven()
	return e.Redrive.Request != 0 && slices.Contains(was.Requests[:], e.Redrive.Request)
}

// Bring brings t back, the task of a dead letter, for a redrive that the log stored at now. It goes through the timer store: only what lies in the log can
// be granted. It keeps its history; what is counted, and its time, begin again. Its unique key may be another task's by now,
// and the line of its order key has gone on.
func Bring(t *Task, e *Event, now int64) Effects {
	x := t.extra()
	was := t.Redriven()
	after := Redriven{Count: was.Count + 1, Seq: e.Seq, Index: e.Index, Requests: was.Requests}
	copy(after.Requests[1:], was.Requests[:])
	after.Requests[0] = e.Redrive.Request
	x.Redriven, x.Unique, x.Order = &after, nil, nil
	x.Expiry.StartBy, x.Expiry.FinishBy = 0, 0
	t.Failures, t.Lost, t.HandedBack = 0, 0, t.Grants()
	t.CancelRequested, t.CancelReason, t.FinishedAt = false, "", 0
	if e.Redrive.Policy != nil {
		t.changePolicy(e.Redrive.Policy)
	}
	if e.Redrive.To != "" {
		t.Tasklist = e.Redrive.To
	}
	t.DueAt = now
	t.limitTime(now)
	u := t.updates()
	u.At = max(u.At, now) // an update that was refused since the task was dead may have a copy in the log
	t.setUpdates(u)
	t.step(Step{Kind: StepRedriven, At: now, Message: e.Message})
	return t.park(now)
}

// notDead refuses to redrive t, which is in the way.
func (t *Task) notDead() (Verdict, Effects) {
	if t.State == Dead {
		return refuse(fault.FailedPrecondition, "the task has become another dead letter since")
	}
	return refuse(fault.FailedPrecondition, "the task is "+t.State.String()+" and no dead letter")
}

// RefuseRedrive is the verdict on a redrive of a letter that t is not, or is not any more: it was carried out before, or something else
// has become of the task.
func RefuseRedrive(t *Task, e *Event) Verdict {
	if t.RedrivenBy(e) {
		return Verdict{}
	}
	v, _ := t.notDead()
	return v
}
