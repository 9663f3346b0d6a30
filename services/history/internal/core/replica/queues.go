package replica

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/window"
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

// QueueCursor is how far a queue is read and done.
type QueueCursor struct {
	Queue
	Ack, Read uint64
	// Last is the last message of it that the lane's reader has passed over.
	Last uint64
	// End is not 0 if the domain lags no more: messages behind it are read with the lane's others.
	End uint64
}

// QueueLevel is a place in a queue.
type QueueLevel struct {
	Queue
	Seq uint64
}

// queue is a domain that lags behind a lane: its messages have a reader and an account of their own, and
// the lane's reader passes over them. So the lane waits for none of its tasks.
//
// It lags until all its messages up to the lane's read level are done, and stays for as long as a takeover may read such
// messages in the lane: those up to end are no concern of the lane's.
type queue struct {
	Queue
	window *window.Lane
	// first and last are what the lane's reader has passed over since the queue was last read to its end.
	first, last, end uint64
	// ended: it lags no more.
	ended bool
	// demand: up to here it is read whatever the pool holds.
	demand  uint64
	account *account
}

func (q *queue) lags() bool { return !q.ended }

// unread tells whether a message of the queue up to the lane's read level has not been read.
func (q *queue) unread(seq uint64) bool {
	return q.lags() && max(q.first, q.window.ReadLevel()+1) <= seq && seq <= q.last
}

// level is up to where the messages of the queue are read, if the lane is read up to one.
func (q *queue) level(lane uint64) uint64 {
	if q.unread(q.last) {
		return q.window.ReadLevel()
	}
	return lane
}

// startQueues takes over the queues of a checkpoint.
func (r *Replica) startQueues(all []QueueCursor) {
	for _, c := range all {
		q := &queue{Queue: c.Queue, window: window.NewLane(c.Ack), last: c.Last, end: c.End, ended: c.End > 0}
		r.queues[c.Queue] = q
		if q.lags() {
			q.account = r.accountOf(c.Queue)
			q.account.queue = q
		}
	}
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
	q := r.queues[at]
	if q == nil {
		q = &queue{Queue: at}
		r.queues[at] = q
	}
	q.window, q.first, q.last, q.end, q.ended, q.demand = r.lanes[at.Lane].Split(at.Domain), 0, 0, 0, false, 0
	q.account = r.accountOf(at)
	q.account.queue = q
	q.account.move(&r.rooms[at.Lane], &r.pools[at.Lane])
	r.demandWaiting(q)
}

// endLags lets the domains go back into their lanes that have caught up and of which nothing is left, and
// forgets the queues that no takeover needs.
func (r *Replica) endLags() {
	for at, q := range r.queues {
		lane := r.lanes[at.Lane]
		if q.lags() && !q.unread(q.last) && q.window.AckLevel() == q.window.ReadLevel() && r.fitsIn(q) {
			q.end, q.ended = lane.ReadLevel(), true
			q.window = window.NewLane(q.end)
			q.account.queue = nil
			q.account.move(&r.pools[at.Lane], &r.rooms[at.Lane])
			r.dropAccount(q.account)
			q.account = nil
		}
		if !q.lags() && lane.AckLevel() >= q.end {
			delete(r.queues, at)
		}
	}
}

// fitsIn tells whether what a domain still holds, of messages that domains share or carried, leaves half of its
// lane's window free. Else it would soon lag again.
func (r *Replica) fitsIn(q *queue) bool {
	w := &r.rooms[q.Lane]
	return 2*(w.tasks+q.account.tasks) <= r.cfg.WindowTasks && 2*(w.bytes+q.account.bytes) <= r.cfg.WindowBytes ||
		q.account.tasks == 0
}

// windowOf is the account in which the message of e is open.
func (r *Replica) windowOf(e *Entry) *window.Lane {
	if len(r.queues) > 0 && !e.shared {
		if q := r.queues[Queue{e.Position.Lane(), e.Domain}]; q != nil && q.lags() {
			return q.window
		}
	}
	return r.lanes[e.Position.Lane()]
}

// reader finds the account that reads a message, nil = none does: it is passed over, or was read.
func (r *Replica) reader(in *Submits, fx *Effects) *window.Lane {
	lane := r.lanes[in.Lane]
	q := r.queues[Queue{in.Lane, in.Domain}]
	switch {
	case in.Queue && q != nil && q.lags() && in.Seq > q.window.ReadLevel():
		return q.window
	case in.Queue:
		return nil // its reader has not heard that it lags no more
	case q == nil || in.Domain == "" || !q.lags() && in.Seq > q.end:
		return lane
	}
	lane.Skip(in.Seq)
	fx.Counts.PassedOver++
	if q.lags() {
		if !q.unread(q.last) {
			q.first = in.Seq
		}
		q.last = max(q.last, in.Seq)
	}
	return nil
}

// unread tells whether the submit at pos, of a task of a domain, has not been read.
func (r *Replica) unread(pos ids.Position, domain string) bool {
	switch {
	case pos.Lane() >= ids.Lanes:
		return false
	case pos.Seq() > r.lanes[pos.Lane()].ReadLevel():
		return !r.readAhead(pos, domain)
	}
	return r.passedOver(pos, domain)
}

// readAhead tells whether the submit at pos was read as one of its domain's queue, though its lane is not read so far.
// That is so in a takeover only: what the queue has done may be purged, so the lane need not come by it.
func (r *Replica) readAhead(pos ids.Position, domain string) bool {
	if r.replay == nil {
		return false
	}
	q := r.queueOf(pos, domain)
	return q != nil && (q.lags() && pos.Seq() <= q.window.ReadLevel() || !q.lags() && pos.Seq() <= q.end)
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

// demand makes sure that a lane that an event names is read whatever is held; and if it may be of effect, so
// is the queue in which the submit may lie.
func (r *Replica) demand(pos ids.Position, domain string, queued bool) {
	if w := &r.rooms[pos.Lane()]; pos.Seq() > r.lanes[pos.Lane()].ReadLevel() {
		w.demand = max(w.demand, pos.Seq())
	}
	if q := r.queueOf(pos, domain); q != nil && queued {
		q.want(pos)
	}
}

// want makes sure that the queue is read up to pos whatever is held.
func (q *queue) want(pos ids.Position) {
	if q.lags() && pos.Seq() > q.window.ReadLevel() {
		q.demand = max(q.demand, pos.Seq())
	}
}

// demandWaiting makes sure that a domain which begins to lag is read as far as something waits for it.
func (r *Replica) demandWaiting(q *queue) {
	note := func(pos ids.Position, domain string) {
		if pos.Lane() == q.Lane && !pos.Shared() && domain == q.Domain {
			q.want(pos)
		}
	}
	for _, w := range r.early.byID {
		for _, h := range w.waiting {
			if h.first() {
				note(h.ev.Fence.Position, h.ev.Domain)
			}
		}
	}
	for _, waiting := range r.held {
		for _, e := range waiting {
			note(e.Before, e.Domain)
		}
	}
}

// demanded tells whether what waits for pos is read whatever is held.
func (r *Replica) demanded(pos ids.Position, domain string, queued bool) bool {
	lane := pos.Seq() <= r.lanes[pos.Lane()].ReadLevel() || r.rooms[pos.Lane()].demand >= pos.Seq()
	q := r.queueOf(pos, domain)
	return lane && (q == nil || !queued || !q.unread(pos.Seq()) || q.demand >= pos.Seq())
}

// passed tells whether all that a lane has up to seq of a domain is read; "" = of all domains.
func (r *Replica) passed(lane ids.Lane, seq uint64, domain string) bool {
	read := r.lanes[lane].ReadLevel()
	if read < seq {
		return false
	}
	for at, q := range r.queues {
		if at.Lane == lane && (domain == "" || at.Domain == domain) && q.level(read) < seq && q.window.ReadLevel() < min(seq, q.last) {
			return false
		}
	}
	return true
}

// passedForGrabs tells whether all that a lane has up to seq is read, but for what lags and no grab waits for.
func (r *Replica) passedForGrabs(lane ids.Lane, seq uint64) bool {
	if r.lanes[lane].ReadLevel() < seq {
		return false
	}
	for at, q := range r.queues {
		if at.Lane == lane && q.lags() && q.window.ReadLevel() < min(q.demand, q.last) {
			return false
		}
	}
	return true
}

// Lags tells whether the lane's reader passes over the messages of a domain. They need not be decoded.
func (r *Replica) Lags(at Queue) bool {
	q := r.queues[at]
	return q != nil && q.lags()
}

// LaggingLanes counts the lanes that a domain lags behind.
func (r *Replica) LaggingLanes(domain string) (n int) {
	for at, q := range r.queues {
		if at.Domain == domain && q.lags() {
			n++
		}
	}
	return n
}

// Lagging counts the domains that lag behind a lane, once for each lane.
func (r *Replica) Lagging() (n int) {
	for _, q := range r.queues {
		if q.lags() {
			n++
		}
	}
	return n
}

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
		if q.lags() {
			read := q.window.ReadLevel()
			all = append(all, Reading{Queue: q.Queue, From: read + 1, Room: read < q.demand || r.queueRoom(q)})
		}
	}
	return all
}

// QueueRoom tells whether the next message of a domain that lags, at seq, may be read. Its reader is never
// ahead of the lane's, so that what the lane has not read is unread whatever its domain.
func (r *Replica) QueueRoom(at Queue, seq uint64) bool {
	q := r.queues[at]
	return q != nil && q.lags() && seq <= r.lanes[at.Lane].ReadLevel() && (q.window.ReadLevel() < q.demand || r.queueRoom(q))
}

// UnreadLevels are how far the lanes are read, and the queues of a domain; "" = of all.
func (r *Replica) UnreadLevels(domain string) Levels {
	levels := Levels{Lanes: r.ReadLevels(), Events: r.eventAt}
	for _, q := range r.sortedQueues() {
		if q.lags() && (domain == "" || q.Domain == domain) {
			levels.Queues = append(levels.Queues, QueueLevel{q.Queue, q.level(levels.Lanes[q.Lane])})
		}
	}
	return levels
}

// queueCursors are the queues as a checkpoint has them.
func (r *Replica) queueCursors() []QueueCursor {
	var all []QueueCursor
	for _, q := range r.sortedQueues() {
		all = append(all, QueueCursor{Queue: q.Queue, Ack: q.window.AckLevel(), Read: q.window.ReadLevel(), Last: q.last, End: q.end})
	}
	return all
}

// acks are the levels up to which a checkpoint lets the log forget.
func (cp *Checkpoint) acks() Levels {
	levels := Levels{Lanes: cp.Ack, Events: cp.Floor}
	for _, c := range cp.Queues {
		if c.End == 0 {
			levels.Queues = append(levels.Queues, QueueLevel{c.Queue, c.Ack})
		}
	}
	return levels
}
