package match

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
)

// shape is how many partitions a tasklist has.
func (s *Shard) shape(l *list) tree.Shape {
	return tree.Shape{Partitions: s.catalog.Partitions(l.Domain, l.Name), Scales: s.catalog.Scales(l.Domain, l.Name)}
}

// watchMove has a new poll of a partition below another looked at, in this turn already.
func (s *Shard) watchMove(p *poll) {
	if p.List.Partition > 0 && p.ID != 0 {
		s.polls.Look(p, min(p.Until, s.now.Mono))
	}
	s.tree.Offer(&p.List.node)
}

// moveUp gives a poll up that has found nothing here for long enough. It returns false where it
// is not to be moved, nor looked at before its end.
func (s *Shard) moveUp(p *poll) bool {
	l := p.List
	due, ok := s.tree.UpAt(&l.node, p, func() bool { return l.source.MayGet(p) })
	if !ok || s.drain.on {
		return false
	}
	if due > s.now.Mono {
		s.polls.Look(p, due)
		return true
	}
	s.fx.Counts.PollsUp++
	s.end(p)
	s.tree.Move(&l.node, p, ids.ParentPartition(l.Partition), table.Column{})
	return true
}

// passAll gives up polls to the partitions below that want them.
func (s *Shard) passAll() {
	for _, p := range s.tree.Pass(func(n *node) tree.Asked[*list] {
		l := s.listOf(n.List)
		return tree.Asked[*list]{Last: l.source.AskedUpTo(), For: l.source.AsksFor, Partitions: s.catalog.Partitions(l.Domain, l.Name)}
	}) {
		s.fx.Counts.PollsDown++
		s.end(p)
	}
}

// unmoved takes a poll back that no frontend took. It stays, and has no one to be given up to.
func (s *Shard) unmoved(id uint64) {
	p := s.tree.TakeBack(id)
	if p == nil {
		return
	}
	l := p.List
	s.arrivePoll(&Poll{
		Domain: l.Domain, Tasklist: l.Name, Partition: l.Partition, Max: p.Max, Types: p.Types,
		Worker: p.Worker, WorkerID: p.WorkerID, Version: p.By.Version(), ReplyTo: p.ReplyTo, JSON: p.JSON, For: p.Until - s.now.Mono, Moved: true,
	})
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
