package partition

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// recentMax is how many tasks that ended, or left for the timer store, an owner
// remembers, so that a repeated outcome gets the same verdict and a repeated submit
// is recognised after the task has left memory.
const recentMax = 32768

// ending is what is remembered of a task that has left memory.
type ending struct {
	fence    ids.Token
	last     taskstate.Kind
	state    taskstate.State
	parkings uint32
	domain   string
	// task is the finished task itself, while it is among the latest.
	task *taskstate.Task
}

// keptBytesMax bounds the finished tasks that are kept whole: most questions after a task
// come right after its end, and the archive has to be read for the others.
const keptBytesMax = 4 << 20

// recent is how the latest tasks left, a ring.
type recent struct {
	byID map[ids.TaskID]ending
	ring []ids.TaskID
	next int
	// kept are the tasks kept whole, oldest first, of so many bytes.
	kept      []*taskstate.Task
	keptBytes int
}

func newRecent() *recent { return &recent{byID: make(map[ids.TaskID]ending)} }

func (r *recent) add(t *taskstate.Task) {
	if _, known := r.byID[t.ID]; !known {
		if len(r.ring) < recentMax {
			r.ring = append(r.ring, t.ID)
		} else {
			delete(r.byID, r.ring[r.next])
			r.ring[r.next] = t.ID
			r.next = (r.next + 1) % recentMax
		}
	}
	r.byID[t.ID] = ending{
		fence: t.Token(), last: t.Attempt.Ended, state: t.State, parkings: t.Parkings, domain: t.Domain,
	}
	if t.State.Finished() {
		r.keep(t)
	}
}

// keep holds on to a finished task, and lets the oldest go for it.
func (r *recent) keep(t *taskstate.Task) {
	end := r.byID[t.ID]
	end.task = t
	r.byID[t.ID] = end
	r.kept = append(r.kept, t)
	r.keptBytes += footprint(t)
	n := 0
	for ; r.keptBytes > keptBytesMax; n++ {
		old := r.kept[n]
		r.keptBytes -= footprint(old)
		if end, ok := r.byID[old.ID]; ok && end.task == old {
			end.task = nil
			r.byID[old.ID] = end
		}
	}
	clear(r.kept[:n])
	r.kept = r.kept[n:]
}

// footprint is about how much memory a finished task takes, in bytes.
func footprint(t *taskstate.Task) int {
	const task, step = 600, 80
	return task + cap(t.Steps)*step + len(t.Payload.Data) + len(t.Result.Data) + len(t.ErrMessage)
}

func (r *recent) get(id ids.TaskID) (ending, bool) {
	e, ok := r.byID[id]
	return e, ok
}

// verdict on an event for a task that ended so.
func (e ending) verdict(ev *taskstate.Event) taskstate.Verdict {
	if ev.Domain != "" && ev.Domain != e.domain {
		return notFound()
	}
	return taskstate.RefuseEnded(e.state, e.last, e.fence == ev.Fence, ev)
}
