package admission

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

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

// Load begins where a snapshot was.
func (g *Gate) Load(lanes [ids.Lanes]uint64, queues []Cursor) {
	g.lanes = lanes
	for _, c := range queues {
		g.startQueue(&queue{Queue: c.Queue, read: c.Read, first: c.First, last: c.Last})
	}
}

// Replay takes a split or a merge of a turn, in a takeover.
func (g *Gate) Replay(s Step) {
	switch q := g.queues[s.Queue]; {
	case s.Kind == Split && q == nil:
		g.split(s.Queue)
	case s.Kind == Merge && q != nil:
		g.merge(q)
	}
}

// startQueue begins a queue. It takes over the accounts that belong there.
func (g *Gate) startQueue(q *queue) {
	q.domain = g.domainOf(q.Queue.domain())
	if len(q.domain.queues) == 0 {
		g.schedule.apart[q.Lane] = append(g.schedule.apart[q.Lane], q.domain)
	}
	q.domain.queues = append(q.domain.queues, q)
	g.queues[q.Queue] = q
	g.assign(q.domain)
}

// assign gives what a domain holds to the queues that it has now.
func (g *Gate) assign(d *domain) {
	for tasklist, a := range d.accounts {
		if to := g.queueOf(Queue{d.Lane, ids.PlaceOf(d.Name, tasklist)}); to != a.queue {
			g.move(a, to)
		}
	}
}

// sortedQueues are all queues, in an order that does not depend on a map.
func (g *Gate) sortedQueues() []*queue {
	if len(g.queues) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(g.queues), func(a, b *queue) int { return a.compare(b.Queue) })
}

// split takes a place out of its lane, or a tasklist out of the queue of its domain, from what that has not read.
func (g *Gate) split(at Queue) {
	q := &queue{Queue: at, read: g.lanes[at.Lane]}
	if from := g.queueOf(at); from != nil {
		q.read = from.read
	}
	g.startQueue(q)
	g.note(Step{Queue: at, Kind: Split, To: q.read})
}

// MergeBack lets the queues go back that have caught up, of domains within their rates: those of tasklists to their domain's, if it has one, and else to the lane.
func (g *Gate) MergeBack() {
	if !g.MayAdmit() {
		return
	}
	for _, q := range g.sortedQueues() {
		if g.full(q.domain.Name) && q.readToEnd() && g.fitsIn(q) {
			g.merge(q)
		}
	}
}

func (g *Gate) merge(q *queue) {
	delete(g.queues, q.Queue)
	d := q.domain
	d.queues = slices.DeleteFunc(d.queues, func(o *queue) bool { return o == q })
	if len(d.queues) == 0 {
		g.schedule.apart[q.Lane] = slices.DeleteFunc(g.schedule.apart[q.Lane], func(o *domain) bool { return o == d })
	}
	g.assign(d)
	g.dropDomain(d)
	g.note(Step{Queue: q.Queue, Kind: Merge, To: g.lanes[q.Lane]})
}

// fitsIn tells whether what a queue still holds leaves half of the window free that it goes back to; and, if it is a domain's, whether that does not overflow.
// Else it would soon be split off again.
func (g *Gate) fitsIn(q *queue) bool {
	if q.Place.Tasklist() == "" && g.overflows(q.domain) {
		return false
	}
	w := g.rooms[q.Lane]
	if parent := q.parent(); parent != nil {
		w = parent.room
	}
	return 2*(w.tasks+q.room.tasks) <= g.cfg.WindowTasks && 2*(w.bytes+q.room.bytes) <= g.cfg.WindowBytes || q.room.tasks == 0
}

// Admit notes that a message was read which is filed at a place, by the reader of a queue, or of the lane: by is "". It
// tells whether its tasks come in: else it is passed over, or was read before.
func (g *Gate) Admit(at Queue, by ids.Place, seq uint64) bool {
	if g.underWay {
		panic(fmt.Sprintf("message %d of lane %s is read while a turn is being stored", seq, at.Lane))
	}
	q, reader := g.queueOf(at), Queue{at.Lane, by}
	if by != "" {
		r := g.queues[reader]
		if r == nil || !r.unread(seq) {
			return false // its reader has not heard that it is split off no more; or a queue of a tasklist had the message
		}
		g.note(Step{Queue: reader, To: seq, From: r.read, Messages: 1})
		if r.read = seq; q != r {
			q.passed(seq)
		}
		return q == r
	}
	if seq <= g.lanes[at.Lane] {
		panic(fmt.Sprintf("message %d of lane %s is read after %d", seq, at.Lane, g.lanes[at.Lane]))
	}
	g.note(Step{Queue: reader, To: seq, From: g.lanes[at.Lane], Messages: 1})
	g.lanes[at.Lane] = seq
	if q != nil {
		q.passed(seq)
	}
	return q == nil
}

// Unread tells whether the submit at pos has not been read, of a task of a domain and a tasklist; "" = of a tasklist that is not known.
func (g *Gate) Unread(pos ids.Position, domain, tasklist string) bool {
	switch {
	case pos.Lane() >= ids.Lanes:
		return false
	case pos.Seq() > g.lanes[pos.Lane()]:
		return true
	case len(g.queues) == 0 || pos.Shared():
		return false
	}
	// The lane's reader may have passed over it.
	whole := Queue{pos.Lane(), ids.PlaceOf(domain, "")}
	if tasklist == "" && !pos.Mixed() {
		for at, q := range g.queues {
			if at.domain() == whole.domain() && q.unread(pos.Seq()) {
				return true
			}
		}
		return false
	}
	if !pos.Mixed() {
		whole.Place = ids.PlaceOf(domain, tasklist)
	}
	q := g.queueOf(whole)
	return q != nil && q.unread(pos.Seq())
}

// Passed tells whether all that a lane has up to seq of a domain is read; "" = of all domains.
func (g *Gate) Passed(lane ids.Lane, seq uint64, domain string) bool {
	read := g.lanes[lane]
	if read < seq {
		return false
	}
	for at, q := range g.queues {
		if at.Lane == lane && (domain == "" || at.Place.Domain() == domain) && q.read < min(seq, q.last) {
			return false
		}
	}
	return true
}

// IsSplit tells whether the lane's reader passes over what is filed at a place. It need not be decoded.
func (g *Gate) IsSplit(at Queue) bool { return g.queueOf(at) != nil }

// SplitLanes counts the lanes that a domain has queues in.
func (g *Gate) SplitLanes(domain string) (n int) {
	for lane := range ids.Lane(ids.Lanes) {
		if d := g.domains[domainAt{lane, domain}]; d != nil && len(d.queues) > 0 {
			n++
		}
	}
	return n
}

// Splits counts the queues.
func (g *Gate) Splits() int { return len(g.queues) }

// Reading is the reader of a queue.
type Reading struct {
	Queue
	// From is the first sequence that is not read.
	From uint64
	// Room: it may read more.
	Room bool
}

// Readings are the readers of all queues, in order.
func (g *Gate) Readings() []Reading {
	var all []Reading
	for _, q := range g.sortedQueues() {
		all = append(all, Reading{Queue: q.Queue, From: q.read + 1, Room: g.queueRoom(q)})
	}
	return all
}

// QueueRoom tells whether the next message of a queue, at seq, may be read. Its reader is never
// ahead of the lane's, so that what the lane has not read is unread whatever its domain.
func (g *Gate) QueueRoom(at Queue, seq uint64) bool {
	q := g.queues[at]
	return q != nil && g.MayAdmit() && seq <= g.lanes[at.Lane] && g.queueRoom(q)
}

// Levels are how far the lanes are read, and the queues of a domain, "" = of all, for a reader of the events up to a turn.
func (g *Gate) Levels(domain string, events uint64) Levels {
	levels := Levels{Lanes: g.lanes, Events: events}
	for _, q := range g.sortedQueues() {
		if domain == "" || q.Place.Domain() == domain {
			levels.Queues = append(levels.Queues, Level{q.Queue, q.level(levels.Lanes[q.Lane])})
		}
	}
	return levels
}

// State is how far a queue, or a lane, is read, and what it takes.
type State struct {
	Queue
	Read uint64
	Fill
	// LowClass: it has the turns of the domains that are over their rates.
	LowClass bool
}

// States are the lanes in order, and behind them the queues of a domain, "" = of all, that take most first.
func (g *Gate) States(domain string) []State {
	var all []State
	for lane := range ids.Lane(ids.Lanes) {
		all = append(all, State{Queue: Queue{Lane: lane}, Read: g.lanes[lane], Fill: g.laneFill(lane)})
	}
	var queues []claim
	for at, q := range g.queues {
		if domain == "" || at.Place.Domain() == domain {
			queues = append(queues, claim{at, q.room})
		}
	}
	for _, c := range g.sorted(queues) {
		q := g.queues[c.Queue]
		all = append(all, State{Queue: c.Queue, Read: q.read, Fill: g.queueFill(q), LowClass: g.class(c.Place.Domain()) == lowClass})
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
	// Queues are the levels of the queues, in order, each instead of its lane's. They are not changed any more.
	Queues []Level
}

// Of is the level of the messages that are filed at a place; "" = of those which domains share.
func (l *Levels) Of(at Queue) uint64 {
	for ; len(l.Queues) > 0 && at.Place != ""; at.Place = at.Place.Parent() {
		if i, ok := slices.BinarySearchFunc(l.Queues, at, func(q Level, at Queue) int { return q.compare(at) }); ok {
			return l.Queues[i].Seq
		}
	}
	return l.Lanes[at.Lane]
}

// PurgeTo is up to where the messages that are filed at a place are no longer needed: those of a tasklist that is split off are read twice, by its queue and
// by that of its domain, which passes over them and may be behind.
func (l *Levels) PurgeTo(at Queue) uint64 {
	return min(l.Of(at), l.Of(Queue{at.Lane, at.Place.Parent()}))
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
