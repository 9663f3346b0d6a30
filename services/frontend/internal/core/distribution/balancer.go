// Package distribution chooses the history partition of a submit, and says which take cancels.
//
// Owns: what this frontend believes of each partition: how much is queued
// there, whether appends have failed there recently, and whether too many cancels wait there. The choice is
// opportunistic: a whole request goes to the healthy partition with the fewest
// queued tasks, so that it touches one log. A partition whose appends are slow, compared with the others or with its own
// past, gets less, and then probes only (pace.go).
//
// Never does: I/O, or reading a clock or a random source; both come in as values.
//
// On failure: a partition where an append failed is set aside, for longer each
// time, and then probed by one request. Where all are set aside, Pick says so. The Balancer may be wrong
// without harm: any partition is a correct choice for any request.
package distribution

import (
	"fmt"
	"time"
)

const (
	// SetAsideMin is for how long a partition is left alone after its first
	// failure in a row; it doubles with each failed probe up to SetAsideMax.
	SetAsideMin = time.Second
	SetAsideMax = 30 * time.Second

	// StayTasks is how many more tasks than the emptiest partition the one chosen last
	// may have and still be chosen again. Requests of one moment then meet in one
	// partition and share a message, where each message costs a sync to disk; and
	// over a longer time the partitions are filled evenly all the same.
	StayTasks = 1024
	// StayReported is how old the report of an owner may be that says so: who has none gets no
	// more than its share, since what it gets may wait for a takeover.
	StayReported = time.Second

	// FullFor is for how long a partition is taken to be full that refused for want of room.
	FullFor = time.Second

	// TasksPerBatchGuess is how many tasks a message is taken for that the owner
	// has not read yet. Its report counts messages; opening them would cost it.
	TasksPerBatchGuess = 100
)

// Balancer knows all partitions. It is not safe for concurrent use.
type Balancer struct {
	partitions []partition
	last       int    // the one chosen last
	choices    uint64 // counts what Pick chose
	scratch    []time.Duration
}

type partition struct {
	pace
	reported   int64
	reportedAt time.Time
	sent       int64 // tasks sent there by this frontend since the report

	// While setAside is above zero the partition is out of the choice, but for
	// one probe at a time from failedAt+setAside on.
	setAside time.Duration
	failedAt time.Time
	probing  bool

	// full: the owner says that the log has no room. fullUntil is as the log itself said it.
	full      bool
	fullUntil time.Time
}

func (p *partition) hasRoom(now time.Time) bool { return !p.full && !now.Before(p.fullUntil) }

func (p *partition) queued() int64 { return p.reported + p.sent }

// stays tells whether p, chosen last, is chosen again, where the emptiest has so many queued.
func (p *partition) stays(least int64, now time.Time) bool {
	return p.share == Full && p.setAside == 0 && p.hasRoom(now) && p.queued() < least+StayTasks && now.Sub(p.reportedAt) <= StayReported
}

// New makes a balancer of n partitions, 0..n-1, all healthy and empty.
func New(n int) *Balancer {
	if n < 1 {
		panic(fmt.Sprintf("distribution: %d partitions", n))
	}
	return &Balancer{partitions: make([]partition, n), last: -1}
}

// Pick chooses the partition of a request of so many tasks and counts them as
// queued there: the one chosen last, while it is no more than StayTasks ahead and has an owner, else the
// emptiest. Slow partitions get their shares of requests, and all requests that no other partition can take. ok is false if every partition is set aside, or full. Among equals, tie
// decides; it should be random, so that several frontends do not agree.
//
// A partition that is due for a probe comes first, and once: without traffic
// no one would learn that it is well again. The caller that got a partition must report
// Stored, Failed or Returned in the end.
func (b *Balancer) Pick(now time.Time, tasks int, tie uint64) (chosen int, ok bool) {
	chosen = -1
	slow := -1 // the emptiest of those that should not get this request
	b.choices++
	n := len(b.partitions)
	alone := b.aloneFor(now)
	for i := range n {
		at := (i + int(tie%uint64(n))) % n
		p := &b.partitions[at]
		if !p.hasRoom(now) {
			continue
		}
		if p.setAside > 0 {
			if p.probing || now.Before(p.probeAt(alone)) {
				continue
			}
			p.probing = true
			return b.choose(at, tasks), true
		}
		if p.due(b.choices, now) {
			return b.choose(at, tasks), true
		}
		if p.share != Full {
			if slow < 0 || p.queued() < b.partitions[slow].queued() {
				slow = at
			}
			continue
		}
		if chosen < 0 || p.queued() < b.partitions[chosen].queued() {
			chosen = at
		}
	}
	if chosen < 0 {
		chosen = slow
	}
	if chosen < 0 {
		return 0, false
	}
	if l := b.last; l >= 0 && b.partitions[l].stays(b.partitions[chosen].queued(), now) {
		chosen = l
	}
	b.last = chosen
	return b.choose(chosen, tasks), true
}

func (b *Balancer) choose(p, tasks int) int {
	at := &b.partitions[p]
	at.chosenAt = b.choices
	at.sent += int64(tasks)
	return p
}

// Take counts a request of so many tasks as queued in p, the only partition that it may go to. It returns false where p is set
// aside, or full; where p is set aside it is probed soon, whatever others there are.
func (b *Balancer) Take(p int, now time.Time, tasks int) bool {
	at := &b.partitions[p]
	switch {
	case !at.hasRoom(now):
		return false
	case at.setAside > 0 && (at.probing || now.Before(at.probeAt(SetAsideMin))):
		return false
	}
	at.probing = at.setAside > 0
	at.sent += int64(tasks)
	return true
}

// aloneFor is the longest that a partition is left alone. Where all are set
// aside, or full, what failed is the way there, and patience with one gains nothing.
func (b *Balancer) aloneFor(now time.Time) time.Duration {
	for i := range b.partitions {
		if b.partitions[i].setAside == 0 && b.partitions[i].hasRoom(now) {
			return SetAsideMax
		}
	}
	return SetAsideMin
}

func (p *partition) probeAt(alone time.Duration) time.Time {
	return p.failedAt.Add(min(p.setAside, alone))
}

// Healthy tells whether a request that already has partition p may still be
// sent there: p is not set aside, or is being probed.
func (b *Balancer) Healthy(p int) bool {
	at := &b.partitions[p]
	return at.setAside == 0 || at.probing
}

// Report takes in what the owner of p says is queued: tasks in its window and
// log messages it has not read. A message that was sent before counts as contained in it.
func (b *Balancer) Report(p int, active, unreadBatches int64, now time.Time) {
	if p < 0 || p >= len(b.partitions) || active < 0 || unreadBatches < 0 {
		return // a hint from an unknown process
	}
	b.partitions[p].reported = active + unreadBatches*TasksPerBatchGuess
	b.partitions[p].reportedAt = now
	b.partitions[p].sent = 0
}

// ReportFull takes in whether the owner of p says that the log there has no room for tasks.
func (b *Balancer) ReportFull(p int, full bool) {
	if p >= 0 && p < len(b.partitions) {
		b.partitions[p].full = full
	}
}

// HasRoom tells whether the log of p has room for tasks, as far as is known.
func (b *Balancer) HasRoom(p int, now time.Time) bool { return b.partitions[p].hasRoom(now) }

// Full is how many partitions have no room.
func (b *Balancer) Full(now time.Time) (n int) {
	for i := range b.partitions {
		if !b.partitions[i].hasRoom(now) {
			n++
		}
	}
	return n
}

// Refused tells that the log of p refused so many tasks for want of room. It is left alone for
// FullFor; it has not failed.
func (b *Balancer) Refused(p, tasks int, now time.Time) {
	at := &b.partitions[p]
	at.sent = max(0, at.sent-int64(tasks))
	at.setAside, at.probing, at.fullUntil = 0, false, now.Add(FullFor)
}

// Stored tells that an append to p went well: it is healthy.
func (b *Balancer) Stored(p int) {
	b.partitions[p].setAside, b.partitions[p].probing = 0, false
}

// Failed tells that an append of so many tasks to p failed, or that no one
// knows how it ended. Several failures of one outage count once: only a failed
// probe doubles the time.
func (b *Balancer) Failed(p, tasks int, now time.Time) {
	at := &b.partitions[p]
	at.sent = max(0, at.sent-int64(tasks))
	switch {
	case at.setAside == 0:
		at.setAside = SetAsideMin
	case at.probing:
		at.setAside = min(2*at.setAside, SetAsideMax)
	default:
		return // sent before it was set aside
	}
	at.probing = false
	at.failedAt = now
}

// Returned tells that tasks chosen for p were not sent there after all. Had they
// been the probe, another request may be.
func (b *Balancer) Returned(p, tasks int) {
	at := &b.partitions[p]
	at.sent = max(0, at.sent-int64(tasks))
	at.probing = false
}
