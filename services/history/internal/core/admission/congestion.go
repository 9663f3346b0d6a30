package admission

import "github.com/yardmaster-io/yardmaster/contracts/ids"

const (
	// lookAgainMS is when it is looked again whether others wait, if none did.
	lookAgainMS = 1000
	// unsureMax is how many counts in a row may be unsure: a place that floods faster than it is counted is split off,
	// though it may wait for itself alone.
	unsureMax = 8
	// splitWeightMin is how much a domain must hold, in thousandths of a window, to be taken out with a larger one.
	splitWeightMin = 1000 / 64
)

// Look asks how many messages lie behind a sequence of a lane, In a place, and how many of them are filed at the queue's.
type Look struct {
	Queue
	In   ids.Place
	Read uint64
}

// Counts is the answer to a Look: so many messages lie behind its sequence, and so many of them are the queue's. Both
// are 0 if they could not be counted.
type Counts struct {
	Look
	// Own is counted after All. Unsure: further ones of the queue have come in between, and may hide others'.
	All, Own uint64
	Unsure   bool
}

// Congested looks for lanes that a place may hold up, and for queues of domains: it holds most of what has had no room for a while.
// Whether anything else waits behind it only the log can tell. Of the queues it looks at one at a time.
func (g *Gate) Congested(nowMS int64) (looks []Look) {
	g.splitOverflows()
	if !g.maySplit() {
		return nil
	}
	for lane := range ids.Lane(ids.Lanes) {
		c := &g.congested[lane]
		if !c.due(g.Room(lane), nowMS) {
			continue
		}
		if at, in, ok := g.largest(lane, c); ok {
			c.asked = true
			looks = append(looks, Look{at, in, g.lanes[lane]})
		}
	}
	if q := g.nextQueue(); q != nil && q.congested.due(g.queueRoom(q), nowMS) {
		if at, ok := g.largestList(q.Queue.domain(), q); ok {
			q.congested.asked = true
			looks = append(looks, Look{at, q.Place, q.read})
		}
	}
	return looks
}

// largest is the domain that takes most of a lane, or its largest tasklist if nothing but the domain waits there.
func (g *Gate) largest(lane ids.Lane, c *congestion) (at Queue, in ids.Place, ok bool) {
	if c.alone != "" {
		at, ok = g.largestList(domainAt{lane, c.alone}, nil)
		in, c.alone = ids.PlaceOf(c.alone, ""), ""
	}
	if ok {
		return at, in, true
	}
	if all := g.inLane(lane); len(all) > 0 {
		return all[0].Queue, "", true
	}
	return Queue{}, "", false
}

// nextQueue is the domain's queue behind the one that was looked at last.
func (g *Gate) nextQueue() (next *queue) {
	var first *queue
	for at, q := range g.queues {
		if at.Place.Tasklist() != "" {
			continue
		}
		if first == nil || q.compare(first.Queue) < 0 {
			first = q
		}
		if at.compare(g.watched) > 0 && (next == nil || at.compare(next.Queue) < 0) {
			next = q
		}
	}
	if next == nil {
		next = first
	}
	if next != nil {
		g.watched = next.Queue
	}
	return next
}

// overflows tells whether the tasklists of a domain that are split off take more than that lets them read: it comes in messages with other tasklists, which
// the lane reads unless the domain is split off.
func (x *windows) overflows(d *domain) bool { return x.takesWindows(d, domainWindows-1) }

// splitOverflows splits off the domains that overflow.
func (g *Gate) splitOverflows() {
	if !g.MayAdmit() {
		return
	}
	for _, q := range g.sortedQueues() {
		if at := (Queue{q.Lane, q.Place.Parent()}); at.Place != "" && g.queues[at] == nil && g.overflows(q.domain) && g.maySplit() {
			g.split(at)
		}
	}
}

// maySplit tells whether further places may be split off.
func (g *Gate) maySplit() bool { return len(g.queues) < queuesMax }

// Counted takes in how much waits behind what has no room. A place that waits for itself alone stays: it has the
// whole window. Else it is taken out of it; and out of a lane those that hold most, until half of the window is free.
func (g *Gate) Counted(in Counts, nowMS int64) {
	c, parent := &g.congested[in.Lane], g.queues[Queue{in.Lane, in.In}]
	c.asked = false // also if this answers a look of the queue: then the lane may be counted twice
	if parent != nil {
		c = &parent.congested
		c.asked = false
	}
	if !g.MayAdmit() {
		return
	}
	if c.unsure++; !in.Unsure {
		c.unsure = 0
	}
	if in.All <= in.Own && c.unsure < unsureMax {
		if _, some := g.largestList(in.domain(), nil); some && in.In == "" && in.All > 0 {
			c.alone = in.Place.Domain()
			return
		}
		c.askAt = nowMS + lookAgainMS
		return
	}
	c.unsure = 0
	if in.In == "" {
		g.splitLane(in.Lane)
		return
	}
	if at, ok := g.largestList(in.domain(), parent); ok && at == in.Queue && g.maySplit() {
		g.split(at)
	}
}

// splitLane takes those domains out of a lane that hold most, until half of its window is free.
func (g *Gate) splitLane(lane ids.Lane) {
	for i, c := range g.inLane(lane) {
		half := g.rooms[lane].tasks*2 <= g.cfg.WindowTasks && g.rooms[lane].bytes*2 <= g.cfg.WindowBytes
		if g.Room(lane) && (half || i > 0 && g.weight(c.room) < splitWeightMin) || !g.maySplit() {
			return
		}
		g.split(c.Queue)
	}
}
