package admission

import "github.com/yardmaster-io/yardmaster/contracts/ids"

const (
	// congestedMS is how long a lane must have had no room before a domain is taken out of it.
	congestedMS = 250
	// lookAgainMS is when it is looked again whether others wait, if none did.
	lookAgainMS = 1000
	// unsureMax is how many counts in a row may be unsure: a domain that floods faster than it is counted is split off,
	// though it may wait for itself alone.
	unsureMax = 8
	// splitWeightMin is how much a domain must hold, in thousandths of a window, to be taken out with a larger one.
	splitWeightMin = 1000 / 64
)

// congestion is what is known of a lane without room.
type congestion struct {
	// since is when it was first seen to have none, Unix ms; 0 = it has room.
	since int64
	// asked: a count is under way. next is when another may be asked for, Unix ms.
	asked bool
	next  int64
	// unsure counts the last counts in a row that were.
	unsure int
}

// Look asks how many messages of a lane lie behind a sequence, and how many of them are filed under the domain.
type Look struct {
	Queue
	Read uint64
}

// Counts is the answer to a Look: so many messages lie behind its sequence, and so many of them are the domain's. Both
// are 0 if they could not be counted.
type Counts struct {
	Look
	// Own is counted after All. Unsure: further ones of the domain have come in between, and may hide others'.
	All, Own uint64
	Unsure   bool
}

// Congested looks for lanes that a domain may hold up: it holds most of a lane that has had no room for a while.
// Whether somebody else's messages wait behind it only the log can tell.
func (g *Gate) Congested(nowMS int64) (looks []Look) {
	if !g.maySplit() {
		return nil
	}
	for lane := range ids.Lane(ids.Lanes) {
		c := &g.congested[lane]
		switch {
		case g.Room(lane):
			c.since = 0
			continue
		case c.since == 0:
			c.since = nowMS
		}
		if c.asked || nowMS-c.since < congestedMS || nowMS < c.next {
			continue
		}
		if all := g.inLane(lane); len(all) > 0 {
			c.asked = true
			looks = append(looks, Look{all[0].Queue, g.lanes[lane]})
		}
	}
	return looks
}

// maySplit tells whether further domains may be split off.
func (g *Gate) maySplit() bool { return len(g.queues) < queuesMax }

// inLane are the accounts of a lane's window, the one that holds most first.
func (g *Gate) inLane(lane ids.Lane) []*account {
	return g.largest(func(a *account) bool { return a.Lane == lane && a.queue == nil })
}

// Counted takes in how much waits behind a lane without room. A domain that waits for itself alone stays: it has the
// whole window. Else those that hold most are taken out until half of the window is free.
func (g *Gate) Counted(in Counts, nowMS int64) {
	c := &g.congested[in.Lane]
	c.asked = false
	if !g.MayAdmit() {
		return
	}
	if c.unsure++; !in.Unsure {
		c.unsure = 0
	}
	if in.All <= in.Own && c.unsure < unsureMax {
		c.next = nowMS + lookAgainMS
		return
	}
	c.unsure = 0
	for i, a := range g.inLane(in.Lane) {
		half := g.rooms[in.Lane].tasks*2 <= g.cfg.WindowTasks && g.rooms[in.Lane].bytes*2 <= g.cfg.WindowBytes
		if g.Room(in.Lane) && (half || i > 0 && g.weight(a) < splitWeightMin) || !g.maySplit() {
			return
		}
		g.split(a.Queue)
	}
}
