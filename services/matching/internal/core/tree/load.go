package tree

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

const (
	// loadEvery is how often frontends hear what waits, remainsEvery how often they hear of what an answered poll has left.
	loadEvery, remainsEvery = time.Second, 250 * time.Millisecond
	// loadTypesMax is how many types frontends hear of.
	loadTypesMax = 16
)

// load is what frontends hear of a partition.
type load struct {
	// cameAt is when triggers came last, came counts those since loadAt, when frontends last heard.
	cameAt, loadAt time.Duration
	came           int
	// spread: the tasklist has several partitions, or may get them. kept: it is not to be forgotten.
	spread, kept bool
	// watched: frontends hear what waits. remains: a poll was answered that has left some of it, which they have not heard.
	watched, remains bool
	// reported is how many triggers they heard of, if it is not spread.
	reported int
}

// Spread reports whether the tasklist has several partitions, or may get them.
func (n *Node[L]) Spread() bool { return n.spread }

// Shape is how many partitions a tasklist has, and whether the engine sets that number.
type Shape struct {
	Partitions int
	Scales     bool
}

// Watch notes whether a tasklist has several partitions, or may get them: those are looked after also while no polls wait, as those with triggers,
// which polls of frontends are wanted for. Partitions whose number the engine sets are remembered as long as there are so many: one that no one tells of
// would be unknown, not idle.
func (s *Tree[L]) Watch(n *Node[L], shape Shape) {
	n.spread = n.Partition > 0 || shape.Partitions > 1 || shape.Scales
	n.kept = shape.Scales && n.Partition < shape.Partitions
	watched := n.spread || n.reported > 0 || !n.Index.Empty()
	switch {
	case watched && !n.watched:
		s.watched++
	case n.watched && !watched:
		s.watched--
	}
	n.watched = watched
}

// Forget forgets a partition.
func (s *Tree[L]) Forget(n *Node[L]) {
	if n.watched {
		s.watched--
	}
}

// reportLoad has frontends hear what waits in a partition, if something does, or its tasklist has several partitions, or may get them; and at once that nothing
// waits any more.
func (s *Tree[L]) reportLoad(n *Node[L], shape Shape) {
	since, load := s.now-n.loadAt, Load{Tasklist: n.Tasklist, Triggers: n.Index.Triggers() + n.ReadAhead()}
	if s.Watch(n, shape); !n.watched || since < loadEvery && !n.remains && (load.Triggers > 0 || n.reported == 0) {
		return
	}
	if n.loadAt > 0 {
		load.PerSecond = float64(n.came) / since.Seconds()
	}
	load.Types = n.Index.Types(loadTypesMax)
	s.sendLoad(n, load)
}

func (s *Tree[L]) sendLoad(n *Node[L], load Load) {
	n.loadAt, n.came, n.remains = s.now, 0, false
	if !n.spread {
		n.reported = load.Triggers
	}
	s.out.Loads = append(s.out.Loads, load)
}

// Came notes that packed triggers have come.
func (s *Tree[L]) Came(n *Node[L], packed []byte) {
	n.cameAt = s.now
	n.came += len(packed) / ids.TriggerBytes
}

// Call has frontends send the polls that wait there, once a turn: packed triggers have come that none is here for.
func (s *Tree[L]) Call(n *Node[L], typ string, packed []byte) {
	if !n.spread && !n.Polls.Takes(typ) && (n.reported == 0 || n.loadAt < s.now) {
		all := n.Index.Triggers() + n.ReadAhead() + len(packed)/ids.TriggerBytes
		s.sendLoad(n, Load{Tasklist: n.Tasklist, Triggers: all, Types: append(n.Index.Types(loadTypesMax-1), typ)})
	}
}

// CallAgain has frontends hear what a poll has left that was answered, if no other one is here for it: they have sent no more polls than what waited
// needs, and this one may have taken less than it could. The first time is at once, others with the next sweep.
func (s *Tree[L]) CallAgain(n *Node[L], shape func() Shape) {
	if n.spread || n.remains || n.Index.Empty() || !slices.ContainsFunc(n.Index.Types(loadTypesMax), func(typ string) bool { return !n.Polls.Takes(typ) }) {
		return
	}
	if n.remains = true; s.now-n.loadAt >= remainsEvery {
		s.reportLoad(n, shape())
	}
}
