package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// want has a call take as many triggers as a tasklist's polls have room for: one want
// for all polls that accept the same types. It returns whether there is anything to take.
func (s *Shard) want(l *list, c *call) bool {
	if l.queue.Len() == 0 || l.index.Empty() {
		return false
	}
	first := l.index.BeginTurn(func() bool { return s.catalog.Strict(l.Domain, l.Name) })
	byLine := map[*pairing.Line[*list, grant]]int{}
	total, before := 0, len(c.out.Wants)
	l.queue.Each(func(p *poll) bool {
		room := min(p.Room(s.cfg.AnswerBytesMax), s.cfg.PopMax-total)
		if room <= 0 {
			return total < s.cfg.PopMax
		}
		i, ok := byLine[p.Line()]
		if !ok {
			if c.candidates >= callCandidatesMax || !s.wantFor(l, p, first, c) {
				return false
			}
			i = len(c.out.Wants) - 1
			byLine[p.Line()] = i
		}
		c.out.Wants[i].N += room
		total += room
		return total < s.cfg.PopMax
	})
	for _, i := range byLine {
		l.index.Share(&c.out.Wants[i])
	}
	if total > 0 {
		l.asking, l.asked, l.asks = true, s.polls.Last(), c.out.Wants[before:]
		l.issued++
	}
	return total > 0
}

// wantFor adds a want of what a poll accepts, of one priority first, 0 = the most urgent; false if the table holds nothing of it that could be had.
func (s *Shard) wantFor(l *list, p *poll, first int, c *call) bool {
	most := candidatesMax
	if l.index.Groups() {
		most = max(most, callCandidatesMax-c.candidates)
	}
	candidates := l.index.CandidatesOf(p.Types, first, most, func(at table.Column) bool { return s.pass(l, at, c) })
	if len(candidates) == 0 {
		return false
	}
	w := table.Want{Tasklist: l.Tasklist, Candidates: candidates}
	if s.ahead < aheadMax && first == 0 {
		w.Ahead = table.ChunkTriggersMax
	}
	paths := make([]*path, len(candidates))
	for i := range candidates {
		at := &candidates[i]
		paths[i] = s.pathOf(l, at.Column)
		grouped := at.Group != ""
		if grouped {
			w.Ahead = 0
		}
		for _, lim := range paths[i].asked() {
			if lim.rated() || lim.others || lim.waiters.others(l) { // their turn comes before that of the rest of a chunk
				w.Ahead = 0
			}
			c.stand(lim)
			at.Path = append(at.Path, lim.at)
			if !grouped || lim.of != nil { // of groups others may have more of it
				lim.asked += p.Room(s.cfg.AnswerBytesMax)
			}
			lim.waitAt(at.Priority)
			c.try(lim.waiters.all[l])
		}
	}
	c.out.Wants = append(c.out.Wants, w)
	c.lists, c.paths = append(c.lists, l), append(c.paths, paths)
	c.candidates += len(candidates)
	return true
}

// pass tells whether a call takes nothing of a column that holds something. If a slot of some limit is wanting, it is waited for.
func (s *Shard) pass(l *list, at table.Column, c *call) bool {
	if l.unknownGroups(at) {
		return true
	}
	path, busy := l.path(at.Type), func(lim *limit) bool { return lim.closed() || lim.waiters.before(l) }
	lim := path.pause
	if lim == nil {
		lim = path.meet(busy)
	}
	if lim == nil {
		lim = path.perGroupOf(at, busy)
	}
	if lim != nil {
		s.wait(lim, l, at.Priority)
		return true
	}
	if lim = path.meet(c.asksAll); lim == nil {
		lim = path.groupOf(at, c.asksAll)
	}
	if lim != nil {
		c.more = true
		lim.waitAt(at.Priority)
		return true
	}
	if lim = path.groupOf(at, (*limit).closed); lim != nil {
		s.park(lim, l, at)
	}
	return lim != nil
}

// asksAll tells whether a call asks for as many triggers of a limit as there can be slots.
func (c *call) asksAll(l *limit) bool { return l.in == c && !l.Shadow && l.asked >= l.Max }
