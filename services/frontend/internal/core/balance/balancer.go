// Package balance chooses the partition of a tasklist that a poll goes to.
//
// Owns: whose turn it is in each tasklist of several partitions, and what the owners of the shards reported last of what waits there.
//
// Never does: I/O, or reading a clock or a random source; both come in as values. It keeps nothing of a tasklist of one partition.
//
// On failure: any partition is a correct choice. Where a report is missing or old, partitions take turns, and a poll that finds
// nothing is sent on by matching (contracts/decisions/0030). A tasklist that was not used or reported for KeptFor is forgotten.
package balance

import (
	"math"
	"math/rand/v2"
	"time"
)

// Strategy is how a partition is chosen.
type Strategy string

const (
	// Weighted has more polls go where more triggers wait, if a partition has more than BacklogMin; else as RoundRobin.
	Weighted Strategy = "weighted"
	// RoundRobin has partitions take turns.
	RoundRobin Strategy = "round_robin"
	// Random chooses any.
	Random Strategy = "random"
)

// Known tells whether there is such a strategy.
func (s Strategy) Known() bool { return s == Weighted || s == RoundRobin || s == Random }

const (
	// BacklogMin is how many triggers partitions may have and still take turns.
	BacklogMin = 100
	// MatchSeconds is about how long a poll is busy with a trigger: at a rate, so many polls are at work at once (Cadence's weights).
	MatchSeconds = 0.01
	// ReportedFor is for how long a report counts.
	ReportedFor = 5 * time.Second
	// KeptFor is for how long a tasklist is remembered without a poll or a report: longer than a poll may wait.
	KeptFor = 2 * time.Minute

	// leastOf is which part of an even share a partition gets at least where something waits: one poll in 5 for each partition there is.
	leastOf = 4

	// weightMax bounds what is believed of a partition, so that sums fit.
	weightMax = 1 << 40
)

// Tasklist is one with several partitions.
type Tasklist struct{ Domain, Name string }

// Load is what an owner reports of a partition.
type Load struct {
	// Triggers wait there.
	Triggers int64
	// PerSecond is how many come there, about; 0 = not known.
	PerSecond float64
}

// weight is how many polls it needs, beside others.
func (l Load) weight() int64 {
	came := l.PerSecond
	if math.IsNaN(came) {
		came = 0
	}
	came = math.Ceil(min(max(came, 0), weightMax) * MatchSeconds)
	return min(max(l.Triggers, 0), weightMax) + int64(came)
}

// Balancer knows all tasklists of several partitions that are used. It is not safe for concurrent use.
type Balancer struct {
	strategy Strategy
	dice     *rand.Rand
	lists    map[Tasklist]*list
	swept    time.Time
}

// list is one tasklist.
type list struct {
	parts []part
	// turn is whose turn it is.
	turn int
	// used is when it was last polled, or reported.
	used time.Time
}

// part is one partition.
type part struct {
	triggers, weight int64
	// reportedAt is when that was so; zero = never.
	reportedAt time.Time
	// credit is how far it is behind its share of the polls: it grows with its weight, and who is chosen pays for all.
	credit int64
}

// New makes a balancer that knows no tasklist.
func New(s Strategy, dice *rand.Rand) *Balancer {
	return &Balancer{strategy: s, dice: dice, lists: make(map[Tasklist]*list)}
}

// atLeast is its weight, if it has any, or a larger one.
func (p *part) atLeast(least int64) int64 {
	if p.weight == 0 {
		return 0
	}
	return max(p.weight, least)
}

// Pick chooses one of n partitions, 0..n-1.
func (b *Balancer) Pick(of Tasklist, n int, now time.Time) int {
	switch {
	case n <= 1:
		return 0
	case b.strategy == Random:
		return b.dice.IntN(n)
	}
	l := b.list(of, n, now)
	if l.busy(now) {
		return l.heaviest()
	}
	return l.next()
}

// Report takes in what an owner says of one of n partitions. Of others nothing is kept: the owner knows of a count that this
// frontend does not know yet, or that is no more.
func (b *Balancer) Report(of Tasklist, n, partition int, load Load, now time.Time) {
	if n <= 1 || partition < 0 || partition >= n || b.strategy != Weighted {
		return
	}
	p := &b.list(of, n, now).parts[partition]
	p.triggers, p.weight, p.reportedAt = load.Triggers, load.weight(), now
}

// Forget forgets tasklists that are not used any more. It may be called often.
func (b *Balancer) Forget(now time.Time) {
	if now.Sub(b.swept) < KeptFor/4 {
		return
	}
	b.swept = now
	for of, l := range b.lists {
		if now.Sub(l.used) > KeptFor {
			delete(b.lists, of)
		}
	}
}

// list is what is known of a tasklist of n partitions, which is in use.
func (b *Balancer) list(of Tasklist, n int, now time.Time) *list {
	l := b.lists[of]
	if l == nil {
		l = &list{}
		b.lists[of] = l
	}
	l.used = now
	l.resize(n)
	return l
}

// resize begins again where partitions were added: the others' share is another one. Of fewer ones the reports hold.
func (l *list) resize(n int) {
	if n > len(l.parts) {
		l.parts = make([]part, n)
	}
	l.parts = l.parts[:n]
}

// next has partitions take turns.
func (l *list) next() int {
	p := l.turn % len(l.parts)
	l.turn = p + 1
	return p
}

// busy tells whether weights count: each partition has reported, and one has many triggers. Only Weighted takes reports.
func (l *list) busy(now time.Time) bool {
	many := false
	for i := range l.parts {
		p := &l.parts[i]
		if now.Sub(p.reportedAt) > ReportedFor {
			return false
		}
		many = many || p.triggers > BacklogMin
	}
	return many
}

// heaviest chooses by weight, evenly: of weights 3 and 1 the order is a, a, b, a. The rest of weights that were larger is cut, so
// that a backlog that is gone does not keep polls away, or draw them. Where something waits a part of the polls goes at least: else what is
// rare, and lies where a flood does not, would wait for the flood.
func (l *list) heaviest() int {
	all := int64(0)
	for i := range l.parts {
		all += l.parts[i].weight
	}
	least, total := all/int64(leastOf*len(l.parts)), int64(0)
	for i := range l.parts {
		total += l.parts[i].atLeast(least)
	}
	best := 0
	for i := range l.parts {
		p := &l.parts[i]
		p.credit = min(max(p.credit, -total), total) + p.atLeast(least)
		if p.credit > l.parts[best].credit {
			best = i
		}
	}
	l.parts[best].credit -= total
	return best
}
