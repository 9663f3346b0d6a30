package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/deadline"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Entry is one stay of a task, with what the replica keeps about it.
type Entry struct {
	taskstate.Task
	wakeup deadline.Entry
	column *column
	// grant: its running attempt may not have reached its worker.
	grant *grant
	// before and after are its neighbours among the tasks of its tasklist that wait for a grant, if
	// waits, or among those that run, if counted says so: those whose attempt holds a slot, if booked, or the others.
	before, after *Entry
	// index is its place in the message it was submitted with.
	index int32
	// charged is what it takes of its lane's room, in bytes; 0 = nothing.
	charged int32
	// counted is the state under which list counts it: its own, but ready in Backoff once it is due by our clock.
	counted taskstate.State
	// shared: domains share its message.
	shared bool
	// proposed are the kinds of events that are on their way to the log for it.
	proposed uint16
	// left: it is out of memory but for repeated questions.
	left          bool
	waits, booked bool
	// exempt: a snapshot found it running, so it takes no room while it runs.
	exempt bool
	// arrivedAt is the time of its submit record, or of the command that it was taken out of the timer store for, Unix ms.
	arrivedAt int64
	// triggeredAt is when its trigger was last sent, Unix ms.
	triggeredAt int64
	// seat is its place among the tasks of its order key; nil = it has none, or has not come to its line.
	seat *line.Seat
}

// held is an event as it is decided, or a command that waits for its task.
type held struct {
	ev *taskstate.Event
	// seq is its message in the log, place its place among the events of that.
	seq   uint64
	place int
	at    int64
	// from is the message that it came with, if that is matching's.
	from *shardBatch
	// ans gets its verdict, at i.
	ans *Answer
	i   int
	// promised: the command has its verdict and still waits for its task. until, once
	// known, is where the lanes end that may hold it.
	promised bool
	// ended: the archive has its task. done: it is carried out.
	ended, done bool
	until       *[ids.Lanes]uint64
	// letter is the dead letter that a redrive brings back, at letterSeq, once it is read. replayed: it was read in a takeover.
	letter    *Entry
	letterSeq uint64
	replayed  bool
	// dead is the end that decides about a command whose task does not come back: see Found.Unsure.
	dead *Entry
}

func (h *held) command() bool {
	return h.ev.Kind.Command()
}

// commandWeightBytes is how many bytes of an update weigh as much as a command.
const commandWeightBytes = 4096

// weight is as how many commands h counts while it waits.
func (h *held) weight() int {
	bytes := h.ev.Update.Bytes() + h.ev.Redrive.Bytes()
	for _, e := range [...]*Entry{h.letter, h.dead} {
		if e != nil {
			bytes += e.Footprint()
		}
	}
	return 1 + bytes/commandWeightBytes
}

// before tells whether h lies before o in the log.
func (h *held) before(o *held) bool { return h.seq < o.seq || h.seq == o.seq && h.place < o.place }

// locate tells the event where in the log it lies, and when it was made.
func (h *held) locate() { h.ev.Seq, h.ev.Index, h.ev.At = h.seq, uint32(h.place), h.at }

// first tells whether it is an event that may be the first one of a stay. Only services of ours write such events.
func (h *held) first() bool {
	return h.ev.Kind == taskstate.Started || h.ev.Kind == taskstate.Lapse || h.ev.Kind == taskstate.Reject
}

const (
	// goneMax and goneBytesMax bound the tasks that are kept after they have left, so
	// that questions soon after an end need not go to the other stores.
	goneMax      = 32768
	goneBytesMax = 4 << 20
	// goneForMS is how long they are kept at least, if there is room; twice as long at
	// most. Left over from a load they would keep far more memory than they take, since
	// they lie scattered over it.
	goneForMS = 5000
)

// gone is the tasks that have left, oldest first. They answer as the other
// stores would.
type gone struct {
	queue []goneEntry
	bytes int
	// fresh are those that came since the last sweep, the next of which is due at sweepAt,
	// Unix ms.
	fresh   int
	sweepAt int64
	// max and bytesMax are goneMax and goneBytesMax, less in tests.
	max, bytesMax int
}

type goneEntry struct {
	e    *Entry
	size int
}

func (r *Replica) keepGone(e *Entry) {
	g := &r.gone
	size := e.Footprint()
	g.queue = append(g.queue, goneEntry{e, size})
	g.bytes += size
	g.fresh++
	for len(g.queue) > g.max || g.bytes > g.bytesMax {
		r.dropGone()
	}
	g.fresh = min(g.fresh, len(g.queue))
}

// sweepGone drops the tasks that left before the last sweep.
func (r *Replica) sweepGone(now Now) {
	g := &r.gone
	if now.MS < g.sweepAt {
		return
	}
	for len(g.queue) > g.fresh {
		r.past.add(g.queue[0].e)
		r.dropGone()
	}
	g.fresh, g.sweepAt = 0, now.MS+goneForMS
}

// dropGone drops the oldest.
func (r *Replica) dropGone() {
	g := &r.gone
	old := g.queue[0]
	g.queue[0] = goneEntry{}
	if g.queue = g.queue[1:]; len(g.queue) == 0 {
		g.queue = nil
	}
	g.bytes -= old.size
	if r.tasks[old.e.ID] == old.e {
		delete(r.tasks, old.e.ID)
	}
}

// leave takes e out of memory.
func (r *Replica) leave(e *Entry) {
	if e.left {
		return
	}
	e.left = true
	r.live--
	r.snapshots.bytes++ // what left is in the last snapshot, and so in the log, until the next one
	r.charge(e)
	r.wake.Remove(e)
	r.uncount(e)
	e.received()
	r.lines.Leave(e.seat)
	r.stepOut(e)
	if r.pinned[e.ID] == e {
		delete(r.pinned, e.ID)
	}
	if r.tasks[e.ID] != e {
		return
	}
	r.keepGone(e)
	if q := r.asking[Search{ID: e.ID, Domain: e.Domain}]; q != nil {
		q.again = true
	}
	if e.State == taskstate.Waiting || e.State == taskstate.Dead { // of a dead one only redrives wait, and what lies behind them
		r.searchWaiting(e.ID)
	}
}
