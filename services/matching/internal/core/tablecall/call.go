package tablecall

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// candidatesMax is how many columns one want names: each costs Redis 6 µs.
	candidatesMax = 32
	// CallCandidatesMax is how many columns one call names, and one want more: 2 ms of Redis, which
	// does nothing for others meanwhile.
	CallCandidatesMax = 256
	// LooksMax is how many tasklists of a domain one call is made for: each costs up to a microsecond, and all others wait meanwhile.
	LooksMax = 256
	// putChunksMax is how many chunks one call stores.
	putChunksMax = 512
)

// Call is a call to the tables of a domain.
type Call[L List] struct {
	out table.Call
	limit.Call
	calls *Calls[L]
	// puts are what it stores, sources the tasklists whose triggers it takes, and paths those of their candidates, by wants.
	puts    []arrival.Arrival[L]
	sources []*Source[L]
	paths   [][]*limit.Path
	// candidates counts the columns that it names. more: some were left to the next one, since
	// this one asks for as many of their limit as there can be.
	candidates int
	more       bool
	// looks counts the tasklists looked at. cut: there are more.
	looks int
	cut   bool
	// spills are the wants behind those of sources: for triggers that are to be rejected.
	spills []overflow.Want
	// life is that of its domain when it was made.
	life uint64
}

// join joins small chunks of one column that the call stores: the tables' work is per chunk.
func (c *Call[L]) join() {
	last := make(map[table.Place]int, len(c.puts))
	var shared fairness.Puts
	for i := range c.puts {
		a := &c.puts[i]
		switch {
		case a.Ranks() != nil:
			shared.Add(a.Chunk, a.Ranks())
			continue
		case a.Rank != 0:
			c.out.Put = append(c.out.Put, a.Chunk)
			continue
		}
		at := table.Place{Tasklist: a.Tasklist, Column: a.Column}
		if i, ok := last[at]; ok && c.out.Put[i].Cost == a.Cost && c.out.Put[i].Len()+a.Len() <= table.ChunkTriggersMax {
			joined := &c.out.Put[i]
			joined.Triggers = append(joined.Triggers[:len(joined.Triggers):len(joined.Triggers)], a.Triggers...)
			joined.ReadyAt = min(joined.ReadyAt, a.ReadyAt)
			continue
		}
		last[at] = len(c.out.Put)
		c.out.Put = append(c.out.Put, a.Chunk)
	}
	c.out.Put = shared.Append(c.out.Put)
}

// look has a call take triggers of a tasklist. It reports whether it takes some, and whether others were left to the next call.
func (c *Call[L]) look(l *Source[L], leave bool) (asked, more bool) {
	c.looks++
	c.more = false
	asked = !leave && c.want(l)
	l.dirty = c.more
	return asked, c.more
}

// want has a call take as many triggers as a tasklist's polls have room for: one want
// for all polls that accept the same types. It returns whether there is anything to take.
func (c *Call[L]) want(l *Source[L]) bool {
	if l.Polls.Len() == 0 || l.Index.Empty() {
		return false
	}
	first := l.Index.BeginTurn(func() bool { return c.calls.cfg.Strict(l.Domain, l.Name) })
	byLine := map[*pairing.Line[L, grab.Grant]]int{}
	total, before := 0, len(c.out.Wants)
	l.Polls.Each(func(p *grab.Poll[L]) bool {
		room := min(p.Room(c.calls.cfg.AnswerBytesMax), c.calls.cfg.PopMax-total)
		if room <= 0 {
			return total < c.calls.cfg.PopMax
		}
		i, ok := byLine[p.Line()]
		if !ok {
			if c.candidates >= CallCandidatesMax || !c.wantFor(l, p, first) {
				return false
			}
			i = len(c.out.Wants) - 1
			byLine[p.Line()] = i
		}
		c.out.Wants[i].N += room
		total += room
		return total < c.calls.cfg.PopMax
	})
	for _, i := range byLine {
		l.Index.Share(&c.out.Wants[i])
	}
	if total > 0 {
		l.asking, l.asked, l.asks = true, c.calls.cfg.Last(), c.out.Wants[before:]
		l.issued++
	}
	return total > 0
}

// wantFor adds a want of what a poll accepts, of one priority first, 0 = the most urgent; false if the table holds nothing of it that could be had.
func (c *Call[L]) wantFor(l *Source[L], p *grab.Poll[L], first int) bool {
	most := candidatesMax
	if l.Index.Groups() {
		most = max(most, CallCandidatesMax-c.candidates)
	}
	candidates := l.Index.Candidates(p.Types, first, most, func(at table.Column) bool {
		pass, more := l.Pass(at, &c.Call)
		c.more = c.more || more
		return pass
	})
	if len(candidates) == 0 {
		return false
	}
	w := table.Want{Tasklist: l.Tasklist, Candidates: candidates}
	if first == 0 && c.calls.limits.MayReadAhead() {
		w.Ahead = table.ChunkTriggersMax
	}
	paths := make([]*limit.Path, len(candidates))
	for i := range candidates {
		paths[i] = l.PathOf(candidates[i].Column)
		if !c.Ask(l.List, paths[i], &candidates[i], p.Room(c.calls.cfg.AnswerBytesMax)) {
			w.Ahead = 0
		}
	}
	c.out.Wants = append(c.out.Wants, w)
	c.sources, c.paths = append(c.sources, l), append(c.paths, paths)
	c.candidates += len(candidates)
	return true
}

// pathOf is what the call books for a batch that its i-th want takes.
func (c *Call[L]) pathOf(i int, b *table.Batch) *limit.Path {
	if i < len(c.paths) && b.From < len(c.paths[i]) {
		return c.paths[i][b.From]
	}
	return limit.Unlimited
}

// over notes that a call is not under way any more.
func (c *Call[L]) over() {
	for _, l := range c.sources {
		l.asking, l.done, l.asks = false, l.issued, nil
	}
}

// learn takes in what the outcome of a call says of its limits.
func (c *Call[L]) learn(o *table.Outcome) {
	c.Call.End()
	for i := range o.Taken {
		for _, b := range o.Taken[i].Batches {
			c.Took(c.pathOf(i, &b), len(b.Triggers)/ids.TriggerBytes, len(b.Ahead) > 0, o.Limits)
		}
		for _, b := range o.Taken[i].Blocked {
			c.Block(b.At, b.Why)
		}
	}
}

// want has a call take triggers for the polls of tasklists: of those that wait for slots that may be free, then of
// dirty ones, as far as one call may look at tasklists and name columns. The others come
// next: by then, what is full is known. It returns the tasklists for which there is nothing to wait.
func (t *Tables[L]) want(c *Call[L]) (idle []*Source[L]) {
	leaving := c.calls.leaving
	if !leaving {
		t.TryWaiters(&c.Call, c.halfFull, func(of *limit.List) bool {
			l := c.calls.cfg.Of(of)
			if l.asking || c.halfFull() {
				return false
			}
			dirty := l.dirty
			asked, more := c.look(l, false)
			if !asked && !more {
				idle = append(idle, l)
			}
			if l.dirty = dirty || more; more && !dirty {
				t.dirty = append(t.dirty, l)
			}
			return true
		})
	}
	var again []*Source[L]
	n := 0
	for ; n < len(t.dirty) && (leaving || c.candidates < CallCandidatesMax); n++ {
		if c.looks >= LooksMax {
			c.cut = true
			break
		}
		l := t.dirty[n]
		if l.asking {
			again = append(again, l)
			continue
		}
		asked, more := c.look(l, leaving)
		if more {
			again = append(again, l)
		} else if !asked {
			idle = append(idle, l)
		}
	}
	t.dirty = append(slices.Delete(t.dirty, 0, n), again...)
	c.WaitInLine()
	return idle
}

// halfFull reports whether half of what a call may look at is used up: those that wait for slots get no more, so that dirty ones do not wait for them.
func (c *Call[L]) halfFull() bool {
	full := c.looks >= LooksMax/2 || c.candidates >= CallCandidatesMax/2
	c.cut = c.cut || full
	return full
}
