package distribution

import (
	"slices"
	"time"
)

// Share is the part of the submits that a partition gets, of those that may go to any partition.
type Share uint8

// The shares, from all to none.
const (
	// Full: the partition competes for each request.
	Full Share = iota
	// Less: its appends are slow. It gets one of LessEvery requests at most, and only while no append to it is under way.
	Less
	// Probes: it is left alone, but for one request now and then, whose append shows how quick it is.
	Probes
)

// String is the share as people read it.
func (s Share) String() string { return [...]string{"full", "less", "probes"}[s] }

// Part is the share as a number, 0 to 1.
func (s Share) Part() float64 { return [...]float64{1, 1. / LessEvery, 0}[s] }

const (
	// An append is slow if it takes more than SlowTimes what is expected, and more than SlowMin.
	SlowTimes = 4
	SlowMin   = 20 * time.Millisecond
	// ExpectedFirst is expected of a partition while nothing is known of it or of others.
	ExpectedFirst = 60 * time.Millisecond
	// KnownFor is how long the last answer of a partition counts for what is expected of others.
	KnownFor = 10 * time.Second

	// LessAfter and ProbesAfter are after how many slow answers in a row a partition gets less, and probes only. FullAfter is
	// after how many quick ones in a row it gets its full share again.
	LessAfter, ProbesAfter, FullAfter = 2, 4, 4
	// SilentAfter: a partition gets probes only if an append is slow and has no answer for so long.
	SilentAfter = 200 * time.Millisecond
	// LessEvery: a partition that gets less gets one of so many requests at most.
	LessEvery = 8
	// ProbeMin is when a partition that is left alone is probed first. The time doubles with each probe up to ProbeMax.
	ProbeMin, ProbeMax = time.Second, 16 * time.Second
)

// Change is a change of the share of a partition.
type Change struct {
	Partition int
	From, To  Share
	// Took is how long its last append took, or takes so far. Expected is what is expected of it.
	Took, Expected time.Duration
}

// pace is how quickly appends to one partition are answered. A time is one between two answers: the log takes one message
// after the other, so what is ahead of an append is not counted twice.
type pace struct {
	underWay int
	// since is when the last answer came, or the first append under way began.
	since time.Time
	// took is the last time. recent is the mean of all, usual of those that were not slow.
	took, recent, usual time.Duration
	answered            time.Time
	slow, quick         int // answers in a row

	share, shown Share
	// chosenAt is which choice of the balancer it was last.
	chosenAt  uint64
	nextProbe time.Time
	wait      time.Duration // between probes
}

// silence is for how long an append under way has had no answer.
func (p *pace) silence(now time.Time) time.Duration {
	if p.underWay == 0 {
		return 0
	}
	return now.Sub(p.since)
}

// due reports whether the next request goes to p, which is slow. A probe is counted.
func (p *pace) due(choices uint64, now time.Time) bool {
	switch {
	case p.share == Full || p.underWay > 0:
		return false
	case p.share == Less:
		return choices >= p.chosenAt+LessEvery
	case now.Before(p.nextProbe):
		return false
	}
	p.wait = min(2*p.wait, ProbeMax)
	p.nextProbe = now.Add(p.wait)
	return true
}

// leave has p left alone but for probes.
func (p *pace) leave(now time.Time) {
	p.share, p.wait, p.nextProbe = Probes, ProbeMin, now.Add(ProbeMin)
}

// Began takes in that an append to p is under way. Answered or Abandoned follows.
func (b *Balancer) Began(p int, now time.Time) {
	at := &b.partitions[p].pace
	if at.underWay == 0 {
		at.since = now
	}
	at.underWay++
}

// Abandoned takes in that an append to p ended without an answer.
func (b *Balancer) Abandoned(p int) { b.partitions[p].underWay-- }

// Answered takes in that the log has answered an append to p, whatever it said.
func (b *Balancer) Answered(p int, now time.Time) {
	at := &b.partitions[p].pace
	slowFrom := SlowFrom(b.expected(p, now))
	at.took = at.silence(now)
	at.underWay--
	at.since, at.answered = now, now
	at.recent = mean(at.recent, at.took)
	if at.took > slowFrom {
		at.slow, at.quick = at.slow+1, 0
	} else {
		at.usual = mean(at.usual, at.took)
		at.slow, at.quick = 0, at.quick+1
	}
	switch {
	case at.share == Full && at.slow >= LessAfter && b.anotherIsFull(p, now):
		at.share = Less
	case at.share == Less && at.slow >= ProbesAfter && b.anotherIsFull(p, now):
		at.leave(now)
	case at.share == Less && at.quick >= FullAfter:
		at.share = Full
	case at.share == Probes && at.quick > 0:
		at.share, at.quick = Less, 0
	}
}

// Changes reduces the shares of partitions that have been silent for too long by now, and returns what has changed since
// the last call. It should be called many times in SlowMin.
func (b *Balancer) Changes(now time.Time) (all []Change) {
	for i := range b.partitions {
		at := &b.partitions[i].pace
		silence, expected := at.silence(now), b.expected(i, now)
		slowFrom := SlowFrom(expected)
		switch {
		case silence <= slowFrom || at.share == Probes || !b.anotherIsFull(i, now):
		case silence > SilentAfter:
			at.leave(now)
		default:
			at.share = Less
		}
		if at.share != at.shown {
			all = append(all, Change{Partition: i, From: at.shown, To: at.share, Took: max(at.took, silence), Expected: expected})
			at.shown = at.share
		}
	}
	return all
}

// Share is that of partition p.
func (b *Balancer) Share(p int) Share { return b.partitions[p].share }

// SlowFrom is how long an append may take that is not slow.
func SlowFrom(expected time.Duration) time.Duration { return max(SlowMin, SlowTimes*expected) }

// expected is how long an append to p should take: as long as those of other partitions recently, of which a third are
// quicker. If nothing is known of others, it is as long as those of p before. The quicker third and not the middle:
// one of three servers may lead most of the partitions, and be the slow one.
func (b *Balancer) expected(p int, now time.Time) time.Duration {
	others := b.scratch[:0]
	for i := range b.partitions {
		if at := &b.partitions[i].pace; i != p && !at.answered.IsZero() && now.Sub(at.answered) <= KnownFor {
			others = append(others, max(at.recent, at.silence(now)))
		}
	}
	b.scratch = others
	switch own := b.partitions[p].usual; {
	case len(others) > 0:
		slices.Sort(others)
		return others[(len(others)-1)/3]
	case own > 0:
		return own
	}
	return ExpectedFirst
}

// anotherIsFull reports whether a partition besides p has its full share, and can use it. So all are never left alone.
func (b *Balancer) anotherIsFull(p int, now time.Time) bool {
	for i := range b.partitions {
		if at := &b.partitions[i]; i != p && at.share == Full && at.setAside == 0 && at.hasRoom(now) {
			return true
		}
	}
	return false
}

// mean is the next one of a moving mean, which begins with its first value.
func mean(old, next time.Duration) time.Duration {
	if old == 0 {
		return max(next, 1)
	}
	return old + (next-old)/4
}
