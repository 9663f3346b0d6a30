package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// Resume has the triggers of a tasklist asked for, for a poll that waits, or waits again.
func (l *list) Resume() {
	l.domain.Mark(&l.source)
	l.shard.tree.Offer(&l.node)
}

// MayStillGet reports whether the tables have yet to be asked for a poll whose time is over, once.
func (l *list) MayStillGet(p *poll) bool { return l.source.MayStillGet(p) }

// UpAt is when a poll goes up to the parent partition.
func (l *list) UpAt(p *poll) (at time.Duration, ok bool) {
	return l.shard.tree.UpAt(&l.node, p, func() bool { return l.source.MayGet(p) })
}

// MoveUp sends a poll to the parent partition.
func (l *list) MoveUp(p *poll) {
	l.shard.tree.Move(&l.node, p, ids.ParentPartition(l.Partition), table.Column{})
}

// Left has the tree find out whether polls are wanted here.
func (l *list) Left() {
	l.shard.tree.CallAgain(&l.node, l.shape)
}

// arrivePoll has a poll wait, or refuses it.
func (s *Shard) arrivePoll(m *waiting.Poll) {
	var of *pairing.Domain
	if d := s.domains[m.Domain]; d != nil {
		of = &d.polls
	}
	if s.waiting.Admit(m, of) {
		l := s.list(table.Tasklist{Domain: m.Domain, Name: m.Tasklist, Partition: m.Partition})
		s.waiting.Add(m, l, &l.queue)
	}
}

// shape is how many partitions a tasklist has.
func (l *list) shape() tree.Shape {
	return tree.Shape{Partitions: l.shard.catalog.Partitions(l.Domain, l.Name), Scales: l.shard.catalog.Scales(l.Domain, l.Name)}
}

// passAll gives up polls to the partitions below that want them.
func (s *Shard) passAll() {
	for _, p := range s.tree.Pass(func(n *node) tree.Asked[*list] {
		l := listOf(n.List)
		return tree.Asked[*list]{Last: l.source.AskedUpTo(), For: l.source.AsksFor, Partitions: s.catalog.Partitions(l.Domain, l.Name)}
	}) {
		s.fx.Counts.PollsDown++
		s.waiting.End(p)
	}
}

// unmoved answers polls that no frontend took: their workers poll again.
func (s *Shard) unmoved(all []tree.Move) {
	for i := range all {
		if l := s.lists[all[i].From]; l != nil {
			s.tree.Unmoved(&l.node, &all[i])
		}
		s.fx.Answers = append(s.fx.Answers, all[i].Empty())
	}
}

// heard takes in what a partition below one of this shard's reports.
func (s *Shard) heard(b *tree.Branch) {
	parent, ok := b.Parent()
	switch {
	case !ok:
		s.fx.Counts.Malformed++
	case !s.drain.on:
		s.tree.Hear(&s.list(parent).node, b)
	}
}
