package replica

import "github.com/yardmaster-io/yardmaster/contracts/ids"

const (
	// congestedMS is how long a lane must have had no room before a domain is taken out of it.
	congestedMS = 250
	// lookAgainMS is when it is looked again whether others wait, if none did.
	lookAgainMS = 1000
	// unsureMax is how many counts in a row may be unsure: a domain that floods faster than it is counted lags, though
	// it may wait for itself alone.
	unsureMax = 8
	// lagWeightMin is how much a domain must hold, in thousandths of a window, to be taken out with a larger one.
	lagWeightMin = 1000 / 64
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

// findCongestion looks for lanes that a domain may hold up: it holds most of a lane that has had no room for a while.
// Whether somebody else's messages wait behind it only the log can tell.
func (r *Replica) findCongestion(now Now, fx *Effects) {
	if !r.mayLag() {
		return
	}
	for lane := range ids.Lane(ids.Lanes) {
		c := &r.congested[lane]
		switch {
		case r.hasRoom(lane):
			c.since = 0
			continue
		case c.since == 0:
			c.since = now.MS
		}
		if c.asked || now.MS-c.since < congestedMS || now.MS < c.next {
			continue
		}
		if all := r.inLane(lane); len(all) > 0 {
			c.asked = true
			fx.Looks = append(fx.Looks, Look{all[0].Queue, r.lanes[lane]})
		}
	}
}

// mayLag tells whether further domains may lag.
func (r *Replica) mayLag() bool { return len(r.queues) < queuesMax }

// inLane are the accounts of a lane's window, the one that holds most first.
func (r *Replica) inLane(lane ids.Lane) []*account {
	return r.largest(func(a *account) bool { return a.Lane == lane && a.queue == nil })
}

// looked takes in how much waits behind a lane without room. A domain that waits for itself alone stays: it has the
// whole window. Else those that hold most are taken out until half of the window is free.
func (r *Replica) looked(in Looked, now Now) {
	c := &r.congested[in.Lane]
	c.asked = false
	if !r.MayAdmit() {
		return
	}
	if c.unsure++; !in.Unsure {
		c.unsure = 0
	}
	if in.All <= in.Own && c.unsure < unsureMax {
		c.next = now.MS + lookAgainMS
		return
	}
	c.unsure = 0
	for i, a := range r.inLane(in.Lane) {
		half := r.rooms[in.Lane].tasks*2 <= r.cfg.WindowTasks && r.rooms[in.Lane].bytes*2 <= r.cfg.WindowBytes
		if r.hasRoom(in.Lane) && (half || i > 0 && r.weight(a) < lagWeightMin) || !r.mayLag() {
			return
		}
		r.lag(a.Queue)
	}
}
