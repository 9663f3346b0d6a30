package match

import (
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
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
	byLine := map[*pairing.Line[*list, grab.Grant]]int{}
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
	candidates := l.index.CandidatesOf(p.Types, first, most, func(at table.Column) bool {
		pass, more := l.Pass(at, &c.Call)
		c.more = c.more || more
		return pass
	})
	if len(candidates) == 0 {
		return false
	}
	w := table.Want{Tasklist: l.Tasklist, Candidates: candidates}
	if first == 0 && s.limits.MayReadAhead() {
		w.Ahead = table.ChunkTriggersMax
	}
	paths := make([]*limit.Path, len(candidates))
	for i := range candidates {
		paths[i] = l.PathOf(candidates[i].Column)
		if !c.Ask(l.List, paths[i], &candidates[i], p.Room(s.cfg.AnswerBytesMax)) {
			w.Ahead = 0
		}
	}
	c.out.Wants = append(c.out.Wants, w)
	c.lists, c.paths = append(c.lists, l), append(c.paths, paths)
	c.candidates += len(candidates)
	return true
}
