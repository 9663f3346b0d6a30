package replica

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// queuesMax bounds the domains that lag. Past it no further domain is taken out of its lane, and one that fills
// the lane holds the others up.
const queuesMax = 1000

// Queue names the messages of a lane that are filed under one domain.
type Queue struct {
	Lane   ids.Lane
	Domain string
}

func (q Queue) compare(o Queue) int {
	return cmp.Or(cmp.Compare(q.Lane, o.Lane), cmp.Compare(q.Domain, o.Domain))
}

// QueueCursor is how far a queue is read.
type QueueCursor struct {
	Queue
	Read uint64
	// First and Last are the first and the last message of it that the lane's reader has passed over since it was last read to its end.
	First, Last uint64
}

// QueueLevel is a place in a queue.
type QueueLevel struct {
	Queue
	Seq uint64
}

// queue is a domain that lags behind a lane: its messages have a reader and an account of their own, and
// the lane's reader passes over them. So the lane waits for none of its tasks.
//
// It lags until all its messages up to the lane's read level are read, and the lane has room for it again.
type queue struct {
	Queue
	// read is how far it is read.
	read uint64
	// first and last are what the lane's reader has passed over since the queue was last read to its end.
	first, last uint64
	account     *account
}

// unread tells whether a message of the queue up to the lane's read level has not been read.
func (q *queue) unread(seq uint64) bool {
	return max(q.first, q.read+1) <= seq && seq <= q.last
}

// level is up to where the messages of the queue are read, if the lane is read up to one.
func (q *queue) level(lane uint64) uint64 {
	if q.unread(q.last) {
		return q.read
	}
	return lane
}

// startQueues begins with the queues of a snapshot.
func (r *Replica) startQueues(all []QueueCursor) {
	for _, c := range all {
		r.startQueue(&queue{Queue: c.Queue, read: c.Read, first: c.First, last: c.Last})
	}
}

func (r *Replica) startQueue(q *queue) {
	r.queues[q.Queue] = q
	q.account = r.accountOf(q.Queue)
	q.account.queue = q
}

// sortedQueues are all queues, in an order that does not depend on a map.
func (r *Replica) sortedQueues() []*queue {
	if len(r.queues) == 0 {
		return nil
	}
	all := make([]*queue, 0, len(r.queues))
	for _, q := range r.queues {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b *queue) int { return a.compare(b.Queue) })
	return all
}

// lag takes a domain out of a lane: what is read of it goes to accounts of its own.
func (r *Replica) lag(at Queue) {
	q := &queue{Queue: at, read: r.lanes[at.Lane]}
	r.startQueue(q)
	q.account.move(&r.rooms[at.Lane], &r.pools[at.Lane])
	r.admissions.note(Admission{at, Split, q.read})
}

// endLags lets the domains go back into their lanes that have caught up.
func (r *Replica) endLags() {
	if !r.MayAdmit() {
		return
	}
	for _, q := range r.sortedQueues() {
		if !q.unread(q.last) && r.fitsIn(q) {
			r.endLag(q)
		}
	}
}

func (r *Replica) endLag(q *queue) {
	q.account.queue = nil
	q.account.move(&r.pools[q.Lane], &r.rooms[q.Lane])
	r.dropAccount(q.account)
	delete(r.queues, q.Queue)
	r.admissions.note(Admission{q.Queue, Merge, r.lanes[q.Lane]})
}

// fitsIn tells whether what a domain still holds leaves half of its lane's window free. Else it would soon lag again.
func (r *Replica) fitsIn(q *queue) bool {
	w := &r.rooms[q.Lane]
	return 2*(w.tasks+q.account.tasks) <= r.cfg.WindowTasks && 2*(w.bytes+q.account.bytes) <= r.cfg.WindowBytes ||
		q.account.tasks == 0
}

// reader finds the cursor that a message moves, nil = none: it is passed over, or was read.
func (r *Replica) reader(in *Submits, fx *Effects) *uint64 {
	q := r.queues[Queue{in.Lane, in.Domain}]
	switch {
	case in.Queue && q != nil && in.Seq > q.read:
		return &q.read
	case in.Queue:
		return nil // its reader has not heard that it lags no more
	case in.Seq <= r.lanes[in.Lane]:
		panic(fmt.Sprintf("message %d of lane %s is read after %d", in.Seq, in.Lane, r.lanes[in.Lane]))
	case q == nil:
		return &r.lanes[in.Lane]
	}
	r.lanes[in.Lane] = in.Seq
	r.admissions.note(Admission{Queue{Lane: in.Lane}, Read, in.Seq})
	fx.Counts.PassedOver++
	if !q.unread(q.last) {
		q.first = in.Seq
	}
	q.last = max(q.last, in.Seq)
	return nil
}

// unread tells whether the submit at pos, of a task of a domain, has not been read.
func (r *Replica) unread(pos ids.Position, domain string) bool {
	switch {
	case pos.Lane() >= ids.Lanes:
		return false
	case pos.Seq() > r.lanes[pos.Lane()]:
		return true
	}
	return r.passedOver(pos, domain)
}

// passedOver tells whether the submit at pos is one that the lane's reader has passed over and the domain's
// reader has not read.
func (r *Replica) passedOver(pos ids.Position, domain string) bool {
	q := r.queueOf(pos, domain)
	return q != nil && q.unread(pos.Seq())
}

// queueOf is the queue that pos, of a task of a domain, may lie in; nil = there is none.
func (r *Replica) queueOf(pos ids.Position, domain string) *queue {
	if len(r.queues) == 0 || pos.Shared() {
		return nil
	}
	return r.queues[Queue{pos.Lane(), domain}]
}

// passed tells whether all that a lane has up to seq of a domain is read; "" = of all domains.
func (r *Replica) passed(lane ids.Lane, seq uint64, domain string) bool {
	read := r.lanes[lane]
	if read < seq {
		return false
	}
	for at, q := range r.queues {
		if at.Lane == lane && (domain == "" || at.Domain == domain) && q.level(read) < seq && q.read < min(seq, q.last) {
			return false
		}
	}
	return true
}

// Lags tells whether the lane's reader passes over the messages of a domain. They need not be decoded.
func (r *Replica) Lags(at Queue) bool {
	return r.queues[at] != nil
}

// LaggingLanes counts the lanes that a domain lags behind.
func (r *Replica) LaggingLanes(domain string) (n int) {
	for at := range r.queues {
		if at.Domain == domain {
			n++
		}
	}
	return n
}

// Lagging counts the domains that lag behind a lane, once for each lane.
func (r *Replica) Lagging() int { return len(r.queues) }

// Reading is the reader of a domain that lags.
type Reading struct {
	Queue
	// From is the first sequence that is not read.
	From uint64
	// Room: it may read more.
	Room bool
}

// Readings are the readers of all domains that lag, in order.
func (r *Replica) Readings() []Reading {
	var all []Reading
	for _, q := range r.sortedQueues() {
		all = append(all, Reading{Queue: q.Queue, From: q.read + 1, Room: r.queueRoom(q)})
	}
	return all
}

// QueueRoom tells whether the next message of a domain that lags, at seq, may be read. Its reader is never
// ahead of the lane's, so that what the lane has not read is unread whatever its domain.
func (r *Replica) QueueRoom(at Queue, seq uint64) bool {
	q := r.queues[at]
	return q != nil && r.MayAdmit() && seq <= r.lanes[at.Lane] && r.queueRoom(q)
}

// UnreadLevels are how far the lanes are read, and the queues of a domain; "" = of all.
func (r *Replica) UnreadLevels(domain string) Levels {
	levels := Levels{Lanes: r.ReadLevels(), Events: r.eventAt}
	for _, q := range r.sortedQueues() {
		if domain == "" || q.Domain == domain {
			levels.Queues = append(levels.Queues, QueueLevel{q.Queue, q.level(levels.Lanes[q.Lane])})
		}
	}
	return levels
}

// queueCursors are the queues, in order.
func (r *Replica) queueCursors() []QueueCursor {
	var all []QueueCursor
	for _, q := range r.sortedQueues() {
		all = append(all, QueueCursor{Queue: q.Queue, Read: q.read, First: q.first, Last: q.last})
	}
	return all
}
