package filing

import "slices"

const (
	// RoomTasksFirst and RoomBytesFirst are the room of a partition before its owner has reported.
	RoomTasksFirst = 1000
	RoomBytesFirst = 1 << 20
)

// Room is how much a partition still takes in messages of its most urgent lane that hold tasks of any
// priority. Its owner reports it several times a second, as of what it has read; a frontend
// subtracts what it has sent to that lane since, urgent tasks too: behind a flood of these, others would wait on
// disk. Several frontends together may spend more between two reports; this costs those others their place only:
// the owner's window bounds what it reads.
type Room struct {
	left load
	// flying is on its way into the log; sent is stored there and not read as of the last report, in the log's order.
	flying load
	sent   []load
}

// sentMax bounds the loads that are kept apart. Further ones count as one, which is read when its last is.
const sentMax = 64

// load is what was filed on the most urgent lane, up to a sequence of the log.
type load struct {
	tasks, bytes int64
	seq          uint64
}

// NewRoom is the room of a partition of which nothing is known.
func NewRoom() Room { return Room{left: load{tasks: RoomTasksFirst, bytes: RoomBytesFirst}} }

// Report takes in what the owner says: so much was left when it had read up to a sequence. A
// negative number counts as 0.
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

// has tells whether there is room for tasks of so many bytes.
func (r *Room) has(tasks, bytes int) bool {
	return int64(tasks) <= r.left.tasks && int64(bytes) <= r.left.bytes
}

// charge spends room for tasks that go to the most urgent lane, whether or not there is any.
func (r *Room) charge(tasks, bytes int) {
	l := load{tasks: int64(tasks), bytes: int64(bytes)}
	r.left.spend(l)
	r.flying.tasks += l.tasks
	r.flying.bytes += l.bytes
}

// Landed tells that what Plan has put on the most urgent lane is in the log, the last of it at seq; or, if
// that is 0, that it is not, or that no one knows.
func (r *Room) Landed(seq uint64) {
	switch n := len(r.sent); {
	case r.flying.tasks == 0 || seq == 0:
	case n < sentMax:
		r.sent = append(r.sent, load{tasks: r.flying.tasks, bytes: r.flying.bytes, seq: seq})
	default:
		last := &r.sent[n-1]
		last.tasks += r.flying.tasks
		last.bytes += r.flying.bytes
		last.seq = max(last.seq, seq)
	}
	r.flying = load{}
}
