package locate

import (
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/answer"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Request is an event that is to be decided.
type Request struct {
	Ev *taskstate.Event
	// Seq is its message in the log, Place its place among the events of that, At the time of it, Unix ms.
	Seq   uint64
	Place int
	At    int64
	// Terms are those of the task's type that its turn has; nil = it has none.
	Terms *taskstate.Terms
	// From is the message that it came with, if that is matching's.
	From *dispatch.Batch
	// Answer gets its verdict, at I; nil = no one waits for it.
	Answer *answer.Answer
	I      int
	// Promised: the command has its verdict and still waits for its task.
	Promised bool
	// Replayed: it was read in a takeover.
	Replayed bool

	// until, once known, is where the lanes end that may hold the task of a command.
	until *[ids.Lanes]uint64
	// coming: the timer said that it fires the task for it; looks is how often that was in vain.
	coming bool
	looks  int
	// deadLetter is the one that a redrive brings back, at deadLetterSeq, once it is read.
	deadLetter    *taskstate.Task
	deadLetterSeq uint64
	// dead is the end that decides about a command whose task does not come back: see Found.Unsure.
	dead *taskstate.Task
}

// Redrive reports whether it is a redrive.
func (r *Request) Redrive() bool { return r.Ev.Kind == taskstate.Redrove }

// DeadLetter is the one that a redrive brings back, and where it lies.
func (r *Request) DeadLetter() (t *taskstate.Task, at DeadLetter) {
	return r.deadLetter, DeadLetter{r.deadLetter.Domain, r.deadLetter.Tasklist, r.deadLetter.ID, r.deadLetterSeq}
}

// Locate tells the event where in the log it lies, and when it was made.
func (r *Request) Locate() { r.Ev.Seq, r.Ev.Index, r.Ev.At = r.Seq, uint32(r.Place), r.At }

// before reports whether r lies before o in the log.
func (r *Request) before(o *Request) bool {
	return r.Seq < o.Seq || r.Seq == o.Seq && r.Place < o.Place
}

// WeightBytes is how many bytes of an update weigh as much as a command.
const WeightBytes = 4096

// weight is as how many commands r counts while it waits.
func (r *Request) weight() int {
	bytes := r.Ev.Update.Bytes() + r.Ev.Redrive.Bytes()
	if r.deadLetter != nil {
		bytes += r.deadLetter.Footprint()
	}
	return 1 + bytes/WeightBytes
}

// waitFor has a command wait for its task until the lanes are read up to their ends. One that waits already goes on as it did, or each repeat of it
// would put it off: what came later is not about it, or is in memory.
func (r *Request) waitFor(in *Found) {
	if r.until == nil {
		ends := in.Ends // what was found must not stay in memory with it
		r.until, r.coming = &ends, in.Coming
	}
}

// OfDomain reports whether an event may be about a task: that is of its domain, or a service of ours asks.
func OfDomain(ev *taskstate.Event, t *taskstate.Task) bool {
	return ev.Domain == "" || ev.Domain == t.Domain
}

// Concerns reports whether a command concerns a stay of a task: a task of its domain that was there before it. A command from before the stay waited
// for it, if it lies behind the stay before, and behind the redrive that made it, if one did; one from before that one was decided long ago, unless an
// update has sent the task back into the timer store, and this one lies behind that update: then it waited while the task moved on.
func (r *Request) Concerns(t *taskstate.Task) bool {
	after := t.Before
	if after == 0 {
		after = t.Position
	}
	if redriven := t.Redriven(); redriven.Before(r.Seq, r.Place) {
		return false
	}
	return OfDomain(r.Ev, t) && (r.Seq > after.Seq() || t.DecidedBefore(r.Seq, r.Place))
}

// TooEarly is the verdict on a command that does not concern the stay that was found. An earlier stay knows its own changes.
func (r *Request) TooEarly(t *taskstate.Task) taskstate.Verdict {
	if redriven := t.Redriven(); OfDomain(r.Ev, t) && redriven.Before(r.Seq, r.Place) {
		r.Locate()
		if v, known := t.Again(r.Ev); known {
			return v
		}
		return taskstate.Verdict{Code: fault.FailedPrecondition, Message: "the task was a dead letter, and has been redriven since"}
	}
	return NotFound()
}

// NotFound is the verdict about a task that does not exist.
func NotFound() taskstate.Verdict {
	return taskstate.Verdict{Code: fault.NotFound, Message: "no such task, or finished long ago"}
}

// DeadLetterComes is the verdict on a redrive whose caller has looked for the dead letter before it was stored.
func DeadLetterComes() taskstate.Verdict {
	return taskstate.Verdict{Code: fault.Unknown, Message: "its dead letter was being stored: repeat the entry"}
}

// foresee is the verdict on a command when its task will be read, t, which has seen those before it. Parked: it lies in the timer store.
func (r *Request) foresee(t *taskstate.Task, parked bool) taskstate.Verdict {
	r.Locate()
	switch {
	case t.State.Finished(), t.State == taskstate.Running && !parked:
	case taskstate.ComesDirectly(t):
		taskstate.Load(t, r.At)
	case parked, taskstate.FiredEarly(t) || t.Parkings == 0 && t.DueAt > r.At:
		t.State = taskstate.Waiting
	default:
		t.State = taskstate.Ready
	}
	v, _ := taskstate.Apply(t, r.Ev, r.At)
	return v
}

// Ahead are commands that wait for a task, in log order, of which the callers may know the verdicts already.
type Ahead []*Request

// aheadMax is how many commands are applied to what is shown of a task; of more it is not shown until they are decided.
const aheadMax = 100

// Ahead are the commands that wait for a task and have their verdicts, or may have had them from the owner before: one more than aheadMax at most.
func (l *Locator) Ahead(id ids.TaskID) (ahead Ahead) {
	for _, r := range l.of(id) {
		if r.Promised || r.Replayed {
			ahead = append(ahead, r.copied())
		}
		if len(ahead) > aheadMax {
			break
		}
	}
	return ahead
}

// Foresee has t, which was found while they waited, be as they leave it: who has the verdict on a command sees what it did. Parked: it was
// not found in the log, so if it waits, it is fired for them. It reports whether that is known.
func (a Ahead) Foresee(t *taskstate.Task, parked bool) bool {
	if len(a) > aheadMax {
		return false
	}
	for _, r := range a {
		switch {
		case r.Redrive() && t.State == taskstate.Dead && OfDomain(r.Ev, t) && !t.RedrivenBy(r.Ev):
			if r.deadLetter == nil {
				return !r.Replayed
			}
			if r.deadLetter.Parkings == t.Parkings {
				r.Locate()
				taskstate.Bring(t, r.Ev, r.At)
			}
		case !r.Redrive() && !t.State.Finished() && r.Concerns(t):
			was := t.State
			if r.foresee(t, parked); !t.State.Finished() {
				t.State = was
			}
		}
	}
	return true
}
