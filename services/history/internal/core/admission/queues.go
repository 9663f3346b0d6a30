package admission

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// queuesMax bounds the domains that are split off. Past it no further domain is taken out of its lane, and one that
// fills the lane holds the others up.
const queuesMax = 1000

// Queue names the messages of a lane that are filed under one domain.
type Queue struct {
	Lane   ids.Lane
	Domain string
}

func (q Queue) compare(o Queue) int {
	return cmp.Or(cmp.Compare(q.Lane, o.Lane), cmp.Compare(q.Domain, o.Domain))
}

// Cursor is how far a queue is read.
type Cursor struct {
	Queue
	Read uint64
	// First and Last are the first and the last message of it that the lane's reader has passed over since it was last read to its end.
	First, Last uint64
}

// Level is a place in a queue.
type Level struct {
	Queue
	Seq uint64
}

// queue is a domain that is split off a lane: its messages have a reader and an account of their own, and the lane's
// reader passes over them. So the lane waits for none of its tasks.
//
// It is read by itself until all its messages up to the lane's read level are read, and the lane has room for it again.
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

func (g *Gate) startQueue(q *queue) {
	g.queues[q.Queue] = q
	g.schedule.of[q.Lane].apart = append(g.schedule.of[q.Lane].apart, q)
	q.account = g.accountOf(q.Queue)
	q.account.queue = q
}

// sortedQueues are all queues, in an order that does not depend on a map.
func (g *Gate) sortedQueues() []*queue {
	if len(g.queues) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(g.queues), func(a, b *queue) int { return a.compare(b.Queue) })
}

// split takes a domain out of a lane: what is read of it goes to accounts of its own.
func (g *Gate) split(at Queue) {
	q := &queue{Queue: at, read: g.lanes[at.Lane]}
	g.startQueue(q)
	q.account.move(&g.rooms[at.Lane], &g.pools[at.Lane])
	g.note(Step{Queue: at, Kind: Split, To: q.read})
}

// MergeBack lets the domains go back into their lanes that have caught up.
func (g *Gate) MergeBack() {
	if !g.MayAdmit() {
		return
	}
	for _, q := range g.sortedQueues() {
		if !q.unread(q.last) && g.fitsIn(q) {
			g.merge(q)
		}
	}
}

func (g *Gate) merge(q *queue) {
	q.account.queue = nil
	q.account.move(&g.pools[q.Lane], &g.rooms[q.Lane])
	g.dropAccount(q.account)
	delete(g.queues, q.Queue)
	of := &g.schedule.of[q.Lane]
	of.apart = slices.DeleteFunc(of.apart, func(o *queue) bool { return o == q })
	g.note(Step{Queue: q.Queue, Kind: Merge, To: g.lanes[q.Lane]})
}

// fitsIn tells whether what a domain still holds leaves half of its lane's window free. Else it would soon be split off again.
func (g *Gate) fitsIn(q *queue) bool {
	w := &g.rooms[q.Lane]
	return 2*(w.tasks+q.account.tasks) <= g.cfg.WindowTasks && 2*(w.bytes+q.account.bytes) <= g.cfg.WindowBytes ||
		q.account.tasks == 0
}

// Admit notes that a message of a lane was read, of a domain that it is filed under, "" where domains share it; own: by
// the reader of that. It tells whether its tasks come in: else it is passed over, or was read before.
func (g *Gate) Admit(at Queue, own bool, seq uint64) bool {
	if g.underWay {
		panic(fmt.Sprintf("message %d of lane %s is read while a turn is being stored", seq, at.Lane))
	}
	q := g.queues[at]
	lane := Queue{Lane: at.Lane}
	switch {
	case own && (q == nil || seq <= q.read):
		return false // its reader has not heard that it is split off no more
	case own:
		g.note(Step{Queue: at, To: seq, From: q.read, Messages: 1})
		q.read = seq
		return true
	case seq <= g.lanes[at.Lane]:
		panic(fmt.Sprintf("message %d of lane %s is read after %d", seq, at.Lane, g.lanes[at.Lane]))
	}
	g.note(Step{Queue: lane, To: seq, From: g.lanes[at.Lane], Messages: 1})
	g.lanes[at.Lane] = seq
	if q == nil {
		return true
	}
	if !q.unread(q.last) {
		q.first = seq
	}
	q.last = max(q.last, seq)
	return false
}

// Unread tells whether the submit at pos, of a task of a domain, has not been read.
func (g *Gate) Unread(pos ids.Position, domain string) bool {
	switch {
	case pos.Lane() >= ids.Lanes:
		return false
	case pos.Seq() > g.lanes[pos.Lane()]:
		return true
	}
	if len(g.queues) == 0 || pos.Shared() {
		return false
	}
	q := g.queues[Queue{pos.Lane(), domain}] // the lane's reader may have passed over it
	return q != nil && q.unread(pos.Seq())
}

// Passed tells whether all that a lane has up to seq of a domain is read; "" = of all domains.
func (g *Gate) Passed(lane ids.Lane, seq uint64, domain string) bool {
	read := g.lanes[lane]
	if read < seq {
		return false
	}
	for at, q := range g.queues {
		if at.Lane == lane && (domain == "" || at.Domain == domain) && q.level(read) < seq && q.read < min(seq, q.last) {
			return false
		}
	}
	return true
}

// IsSplit tells whether the lane's reader passes over the messages of a domain. They need not be decoded.
func (g *Gate) IsSplit(at Queue) bool {
	return g.queues[at] != nil
}

// SplitLanes counts the lanes that a domain is split off.
func (g *Gate) SplitLanes(domain string) (n int) {
	for at := range g.queues {
		if at.Domain == domain {
			n++
		}
	}
	return n
}

// Splits counts the domains that are split off a lane, once for each lane.
func (g *Gate) Splits() int { return len(g.queues) }

// Reading is the reader of a domain that is split off.
type Reading struct {
	Queue
	// From is the first sequence that is not read.
	From uint64
	// Room: it may read more.
	Room bool
}

// Readings are the readers of all domains that are split off, in order.
func (g *Gate) Readings() []Reading {
	var all []Reading
	for _, q := range g.sortedQueues() {
		all = append(all, Reading{Queue: q.Queue, From: q.read + 1, Room: g.queueRoom(q)})
	}
	return all
}

// QueueRoom tells whether the next message of a domain that is split off, at seq, may be read. Its reader is never
// ahead of the lane's, so that what the lane has not read is unread whatever its domain.
func (g *Gate) QueueRoom(at Queue, seq uint64) bool {
	q := g.queues[at]
	return q != nil && g.MayAdmit() && seq <= g.lanes[at.Lane] && g.queueRoom(q)
}

// Levels are how far the lanes are read, and the queues of a domain, "" = of all, for a reader of the events up to a turn.
func (g *Gate) Levels(domain string, events uint64) Levels {
	levels := Levels{Lanes: g.lanes, Events: events}
	for _, q := range g.sortedQueues() {
		if domain == "" || q.Domain == domain {
			levels.Queues = append(levels.Queues, Level{q.Queue, q.level(levels.Lanes[q.Lane])})
		}
	}
	return levels
}

// State is what a queue, or a lane, takes of its window.
type State struct {
	Queue
	// Read is how far it is read.
	Read uint64
	// Tasks and Bytes are what it takes. It is read while it takes less than TasksMax and BytesMax.
	Tasks, TasksMax int
	Bytes, BytesMax int64
}

// States are the lanes in order, and behind them the queues of a domain, "" = of all, that take most first.
func (g *Gate) States(domain string) []State {
	var all []State
	for lane, w := range g.rooms {
		tasks, bytes := g.laneWindow(ids.Lane(lane))
		all = append(all, State{Queue{Lane: ids.Lane(lane)}, g.lanes[lane], w.tasks, tasks, w.bytes, bytes})
	}
	for _, a := range g.largest(func(a *account) bool { return a.queue != nil && (domain == "" || a.Domain == domain) }) {
		tasks, bytes := g.queueWindow(a)
		all = append(all, State{a.Queue, a.queue.read, a.tasks, tasks, a.bytes, bytes})
	}
	return all
}

// Cursors are the queues, in order.
func (g *Gate) Cursors() []Cursor {
	var all []Cursor
	for _, q := range g.sortedQueues() {
		all = append(all, Cursor{Queue: q.Queue, Read: q.read, First: q.first, Last: q.last})
	}
	return all
}

// Levels say how far the log is no longer needed: the submits of each lane and the events.
type Levels struct {
	Lanes  [ids.Lanes]uint64
	Events uint64
	// Queues are the levels of domains that are split off, in order, each instead of its lane's. They are not changed any more.
	Queues []Level
}

// Of is the level of the messages of a lane that are filed under a domain; "" = that of those which domains share.
func (l *Levels) Of(at Queue) uint64 {
	if len(l.Queues) > 0 && at.Domain != "" {
		if i, ok := slices.BinarySearchFunc(l.Queues, at, func(q Level, at Queue) int { return q.compare(at) }); ok {
			return l.Queues[i].Seq
		}
	}
	return l.Lanes[at.Lane]
}

// Lowest is the level that all messages of a lane have at least.
func (l *Levels) Lowest(lane ids.Lane) uint64 {
	lowest := l.Lanes[lane]
	for _, q := range l.Queues {
		if q.Lane == lane {
			lowest = min(lowest, q.Seq)
		}
	}
	return lowest
}

// Behind are the read levels, but without end for the lanes that are read to where they end: nothing is looked for
// there, unless a domain lags behind. Some tells whether there is any other.
func (l *Levels) Behind(ends [ids.Lanes]uint64) (behind Levels, some bool) {
	for lane, level := range l.Lanes {
		if behind.Lanes[lane] = level; ends[lane] <= level {
			behind.Lanes[lane] = math.MaxUint64
		} else {
			some = true
		}
	}
	for _, q := range l.Queues {
		if q.Seq < ends[q.Lane] {
			behind.Queues, some = append(behind.Queues, q), true
		}
	}
	return behind, some
}
