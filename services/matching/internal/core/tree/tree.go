package tree

import (
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// upAfter is after how long without a trigger a partition is quiet: polls go up at once, but those that another partition gave up wait
	// as long, lest they go round. upBusyAfter is how long a poll waits in another one, and where triggers wait for slots: their
	// partition has a place in a line, which it keeps with it. upDownAfter is when it is looked at
	// again where the tables do not answer: triggers meet polls of their own partition only. upBackAfter is how long one stays that came back.
	upAfter     = 10 * time.Millisecond
	upBusyAfter = 100 * time.Millisecond
	upDownAfter = time.Second
	upBackAfter = time.Second
	// reportEvery bounds how often a partition reports to its parent, reportManyEvery while polls are wanted for reportMany triggers, which one
	// message is enough for. reportAgain is when it repeats a report.
	reportEvery     = 10 * time.Millisecond
	reportManyEvery = 100 * time.Millisecond
	reportMany      = 100
	reportAgain     = time.Second
	// sparedLooksMax is how many polls of a line are looked at for one that may be sent down.
	sparedLooksMax = 32
)

// Tree is the partitions of all tasklists of a shard. The zero value has none.
type Tree[L any] struct {
	now time.Duration
	out *Reports
	// due are partitions that have something to report to their parents, passing those with polls that partitions below may want.
	due, passing []*Node[L]
	// watched counts the tasklists that frontends hear of.
	watched int
}

// Begin begins a turn, whose reports are added to out.
func (s *Tree[L]) Begin(now time.Duration, out *Reports) { s.now, s.out = now, out }

// Watchful reports whether something may become due before long.
func (s *Tree[L]) Watchful() bool { return s.watched > 0 }

// UpAt is when a poll goes up to the parent of its partition, which may know of more, if it finds nothing until then. mayGet reports whether it may yet
// get something of its own partition. ok is false where it is not to be moved, nor looked at before its end.
func (s *Tree[L]) UpAt(n *Node[L], p *grab.Poll[L], mayGet func() bool) (due time.Duration, ok bool) {
	if n.Partition == 0 || p.ID == 0 || len(p.Granted) > 0 || s.now >= p.Until {
		return 0, false
	}
	due = p.Since + upBusyAfter
	switch {
	case n.Down():
		due = s.now + upDownAfter
	case !p.Movable(s.now):
		due = s.now + upAfter
	case p.Back:
		due = p.Since + upBackAfter
	case n.WaitsForSlot():
	default:
		due = min(due, n.quietFor(p))
	}
	if due <= s.now && mayGet() {
		due = s.now + upAfter
	}
	return min(due, p.Until), true
}

// quietFor is when a poll goes up, if no trigger comes.
func (n *Node[L]) quietFor(p *grab.Poll[L]) time.Duration {
	at := p.Since
	if p.Moved {
		at += upAfter
	}
	if n.cameAt > 0 {
		at = max(at, n.cameAt+upAfter)
	}
	return at
}

// Move gives a poll up to its frontend, which sends it to another partition.
func (s *Tree[L]) Move(n *Node[L], p *grab.Poll[L], to int, wanted table.Column) {
	s.out.Moves = append(s.out.Moves, Move{Poll: p.ID, ReplyTo: p.ReplyTo, JSON: p.JSON, From: n.Tasklist, Partition: to, Wanted: wanted})
}

// Unmoved notes that no frontend took a poll that a partition gave up: another poll is wanted instead.
func (s *Tree[L]) Unmoved(n *Node[L], m *Move) {
	for i := range n.below {
		for j := range n.below[i].Wanted {
			if w := &n.below[i].Wanted[j]; n.below[i].Partition == m.Partition && w.Column == m.Wanted {
				w.Triggers = max(w.Triggers, 1)
			}
		}
	}
	s.Offer(n)
}

// Hear takes in what a partition below one of this shard's reports.
func (s *Tree[L]) Hear(n *Node[L], b *Branch) {
	n.hear(b, s.now)
	s.Offer(n)
	s.Report(n)
}

// Report has the parent of a partition hear of it soon.
func (s *Tree[L]) Report(n *Node[L]) {
	if n.Partition > 0 && !n.due {
		n.due = true
		s.due = append(s.due, n)
	}
}

// ReportAll sends the reports that are due.
func (s *Tree[L]) ReportAll() {
	s.due = slices.DeleteFunc(s.due, func(n *Node[L]) bool {
		if s.now < n.dueAt() {
			return false
		}
		n.due = false
		if b := n.branch(s.now); len(b.Wanted) > 0 || n.wanted || len(b.Present) > 0 && s.now-n.sentAt >= reportAgain {
			n.wanted, n.sentAt, n.triggers = len(b.Wanted) > 0, s.now, b.triggers()
			s.out.Branches = append(s.out.Branches, b)
		}
		return true
	})
}

// dueAt is when a partition may report to its parent again.
func (n *Node[L]) dueAt() time.Duration {
	if n.sentAt == 0 {
		return 0
	}
	if n.triggers >= reportMany {
		return n.sentAt + reportManyEvery
	}
	return n.sentAt + reportEvery
}

// Wake is when a report is due.
func (s *Tree[L]) Wake(w time.Duration) time.Duration {
	for _, n := range s.due {
		w = min(w, n.dueAt())
	}
	return w
}

// Sweep repeats what a partition holds, and forgets what others have said.
func (s *Tree[L]) Sweep(n *Node[L], shape Shape) {
	n.outdated(s.now)
	s.reportLoad(n, shape)
	if (!n.Index.Empty() || len(n.below) > 0) && s.now-n.sentAt >= reportAgain {
		s.Report(n)
	}
}

// Offer has the polls of a tasklist looked at that partitions below may want.
func (s *Tree[L]) Offer(n *Node[L]) {
	if len(n.below) > 0 && n.Polls.Len() > 0 && !n.passes {
		n.passes = true
		s.passing = append(s.passing, n)
	}
}

// Asked is what the call under way takes for the polls of a tasklist: those up to the number Last, of which For is true. Partitions is how many the
// tasklist has.
type Asked[L any] struct {
	Last       uint64
	For        func(p *grab.Poll[L]) bool
	Partitions int
}

// Pass gives up polls to the partitions below that want them, the most urgent first. asked is about each tasklist. They have left their
// lines, and are to be ended.
func (s *Tree[L]) Pass(asked func(n *Node[L]) Asked[L]) (polls []*grab.Poll[L]) {
	for _, n := range s.passing {
		n.passes = false
		n.outdated(s.now)
		if all := n.wantedBelow(); len(all) > 0 {
			d := descent[L]{n, s.now, asked(n)}
			polls = s.pass(&d, all, polls)
		}
	}
	clear(s.passing)
	s.passing = s.passing[:0]
	return polls
}

// pass gives up polls of one tasklist.
func (s *Tree[L]) pass(d *descent[L], all []wantedFrom, polls []*grab.Poll[L]) []*grab.Poll[L] {
	spares := d.spares(all)
	for _, w := range all {
		for w.Triggers > 0 && len(spares[w.Type]) > 0 {
			p := d.spared(w, spares[w.Type])
			if p == nil {
				delete(spares, w.Type) // nor for what is less urgent
				break
			}
			w.Triggers -= p.Max
			p.LeaveLine()
			s.Move(d.node, p, w.to, w.Column)
			polls = append(polls, p)
			if w.Limited {
				break
			}
		}
	}
	return polls
}

// descent finds polls of a tasklist that go down.
type descent[L any] struct {
	node  *Node[L]
	now   time.Duration
	asked Asked[L]
}

// spare is a line of polls, and what the tasklist has for them itself.
type spare[L any] struct {
	line *pairing.Line[L, grab.Grant]
	own  []table.Candidate
}

// spares are the lines of polls that accept what is wanted, by type. It looks at each line once.
func (d *descent[L]) spares(all []wantedFrom) map[string][]*spare[L] {
	n, by := d.node, map[string][]*spare[L]{}
	for _, w := range all {
		if n.Polls.Takes(w.Type) {
			by[w.Type] = nil
		}
	}
	if len(by) == 0 {
		return by
	}
	for _, line := range n.Polls.Lines() {
		types := line.First().Types
		if len(types) == 0 || len(types) > len(by) {
			types = slices.Collect(maps.Keys(by))
		}
		var one *spare[L]
		for _, typ := range types {
			if _, wanted := by[typ]; !wanted || line.First().ID == 0 || !line.First().Accepts(typ) {
				continue
			}
			if one == nil {
				one = &spare[L]{line, n.Index.Candidates(line.First().Types, 0, 1, n.Lacks)}
			}
			by[typ] = append(by[typ], one)
		}
	}
	return by
}

// spared is a poll for a trigger of a partition below, or nil: the first of some lines, unless the tasklist has something for it
// that is as urgent: frontends send that partition polls of its own, and a flood below that came first is not to have all of these. For a partition
// that is no more what is older comes first. While the tables are asked for such, only polls that came since are looked at.
func (d *descent[L]) spared(w wantedFrom, lines []*spare[L]) *grab.Poll[L] {
	polled := w.to < d.asked.Partitions
	var found *grab.Poll[L]
	for _, one := range lines {
		if len(one.own) > 0 && (polled && one.own[0].Priority <= w.Priority || (Wanted{Column: one.own[0].Column, ReadyAt: one.own[0].Head}).compare(*w.Wanted) <= 0) {
			continue
		}
		if p := d.idle(one.line); p != nil && (found == nil || p.Before(found)) {
			found = p
		}
	}
	return found
}

// idle is the first poll of a line that may be sent down, as far as is looked at. The line may be empty by now.
func (d *descent[L]) idle(line *pairing.Line[L, grab.Grant]) *grab.Poll[L] {
	p := line.First()
	if p != nil && d.asked.For(p) {
		if p = line.Last(); !p.After(d.asked.Last) {
			return nil
		}
	}
	for looks := 0; p != nil && looks < sparedLooksMax; looks++ {
		if p.Movable(d.now) {
			return p
		}
		p = p.Next()
	}
	return nil
}
