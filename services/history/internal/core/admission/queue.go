package admission

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// congestedMS is how long a lane, or a domain's queue, must have had no room before a place is taken out of it.
const congestedMS = 250

// queuesMax bounds the queues of a partition. Past it no further place is split off its lane, and one that fills the lane holds the
// others up. listsMax bounds the tasklists of a domain that are split off a lane; past it they hold each other up.
const (
	queuesMax = 1000
	listsMax  = 4
)

// Queue names the messages of a lane that are filed at a place.
type Queue struct {
	Lane  ids.Lane
	Place ids.Place
}

func (q Queue) compare(o Queue) int {
	return cmp.Or(cmp.Compare(q.Lane, o.Lane), cmp.Compare(q.Place, o.Place))
}

func (q Queue) domain() domainAt { return domainAt{q.Lane, q.Place.Domain()} }

// queue is a place that is split off a lane, a domain or a tasklist of one: its messages have a reader and a window of their own, and the lane's
// reader passes over them, as the domain's does over those of a tasklist. So the lane waits for none of its tasks.
//
// It is read by itself until all its messages up to the lane's read level are read, and the lane has room for it again.
type queue struct {
	Queue
	// read is how far it is read.
	read uint64
	// first and last are what the reader of the lane, or of the domain's queue, has passed over since the queue was last read to its end.
	first, last uint64
	// room is what its tasks take.
	room      room
	domain    *domain
	congested congestion
	// readAt orders the queues of a domain by when they were last read.
	readAt uint64
}

// parent is the queue of its domain, if q is that of a tasklist and there is one.
func (q *queue) parent() *queue {
	for _, o := range q.domain.queues {
		if o.Place == q.Place.Parent() {
			return o
		}
	}
	return nil
}

// unread tells whether a message of the queue up to the lane's read level has not been read: it was passed over; or the domain's queue, which the
// tasklist was split off, has not come to it.
func (q *queue) unread(seq uint64) bool {
	if seq <= q.read {
		return false
	}
	parent := q.parent()
	return q.first <= seq && seq <= q.last || parent != nil && parent.unread(seq)
}

// readToEnd tells whether all its messages up to the lane's read level are read.
func (q *queue) readToEnd() bool {
	parent := q.parent()
	return q.last <= q.read && (parent == nil || parent.readToEnd())
}

// level is up to where the messages of the queue are read, if the lane is read up to one.
func (q *queue) level(lane uint64) uint64 {
	parent := q.parent()
	switch {
	case q.last > q.read:
		return q.read
	case parent != nil && !parent.readToEnd():
		return max(q.read, parent.read)
	}
	return lane
}

// passed notes that a message of the queue was passed over.
func (q *queue) passed(seq uint64) {
	switch {
	case seq <= q.read:
	case q.last <= q.read:
		q.first, q.last = seq, seq
	default: // the domain's queue passes over what lies before that which the lane has passed over
		q.first, q.last = min(q.first, seq), max(q.last, seq)
	}
}

// domainAt names a domain in a lane.
type domainAt struct {
	Lane ids.Lane
	Name string
}

// domain is what the tasks of one domain take of a lane.
type domain struct {
	domainAt
	accounts map[string]*account // by tasklist
	// queues are those that it has, in the order in which they were split off, and apart is what they take.
	queues []*queue
	apart  room
	// shared counts the tasks that lie in messages that domains share.
	shared int
}

// lists is how many of its tasklists are split off.
func (d *domain) lists() (n int) {
	for _, q := range d.queues {
		if q.Place.Tasklist() != "" {
			n++
		}
	}
	return n
}

// account is what the tasks of one tasklist take.
type account struct {
	room
	tasklist string
	domain   *domain
	// queue is the one that they belong to; nil = the lane.
	queue *queue
}

// room is what tasks take of a window.
type room struct {
	tasks int
	bytes int64
}

func (r *room) add(tasks int, bytes int64) { r.tasks, r.bytes = r.tasks+tasks, r.bytes+bytes }

// claim is what a place takes.
type claim struct {
	Queue
	room
}

// congestion is what is known of a lane without room, or of a domain's queue.
type congestion struct {
	// since is when it was first seen to have none, Unix ms; 0 = it has room.
	since int64
	// asked: a count is under way. askAt is when another may be asked for, Unix ms.
	asked bool
	askAt int64
	// unsure counts the last counts in a row that were.
	unsure int
	// alone is the domain that fills the lane, if only messages of its own wait: next they are counted by tasklist.
	alone string
}

// due tells whether it is time to look what waits.
func (c *congestion) due(room bool, nowMS int64) bool {
	switch {
	case room:
		c.since, c.alone = 0, ""
	case c.since == 0:
		c.since = nowMS
	}
	return !room && !c.asked && nowMS-c.since >= congestedMS && nowMS >= c.askAt
}
