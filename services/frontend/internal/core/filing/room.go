package filing

import "slices"

const (
	// RoomTasksFirst and RoomBytesFirst are the room of a partition before its owner has reported.
	RoomTasksFirst = 1000
	RoomBytesFirst = 1 << 20
)

// Room is how much a partition still takes in messages of its most urgent lane that hold tasks of any
// priority. Its owner reports it several times a second, as of what it has read; a frontend
// subtracts what it has sent since. That several frontends together may spend more is harmless, since the
// owner's window bounds what it reads.
type Room struct {
	left load
	// flying is on its way into the log; sent is stored there and not read as of the last report, in the log's order.
	flying load
	sent   []load
}

// load is what was filed in shared messages, up to a sequence of the log.
type load struct {
	tasks, bytes int64
	seq          uint64
}

// NewRoom is the room of a partition of which nothing is known.
func NewRoom() Room { return Room{left: load{tasks: RoomTasksFirst, bytes: RoomBytesFirst}} }

// Report takes in what the owner says: so much was left when it had read up to a sequence. What is
// negative counts as 0.
func (r *Room) Report(tasks, bytes int64, read uint64) {
	r.sent = slices.DeleteFunc(r.sent, func(l load) bool { return l.seq <= read })
	r.left = load{tasks: max(tasks, 0), bytes: max(bytes, 0)}
	r.left.spend(r.flying)
	for _, l := range r.sent {
		r.left.spend(l)
	}
}

// spend takes l off what is left, which may fall below 0.
func (r *load) spend(l load) {
	r.tasks -= l.tasks
	r.bytes -= l.bytes
}

// take spends room for tasks of so many bytes, or returns false if there is not enough.
func (r *Room) take(tasks, bytes int) bool {
	l := load{tasks: int64(tasks), bytes: int64(bytes)}
	if l.tasks > r.left.tasks || l.bytes > r.left.bytes {
		return false
	}
	r.left.spend(l)
	r.flying.tasks += l.tasks
	r.flying.bytes += l.bytes
	return true
}

// Landed tells that what Plan has put into shared messages is in the log, the last of them at seq; or, if
// that is 0, that it is not, or that nobody knows.
func (r *Room) Landed(seq uint64) {
	if r.flying.tasks > 0 && seq > 0 {
		r.flying.seq = seq
		r.sent = append(r.sent, r.flying)
	}
	r.flying = load{}
}
