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

// Settings are those of a shard.
type Settings[L arrival.List] struct {
	// AnswerBytesMax bounds the tasks of one answer, PopMax the triggers that a call takes of a tasklist.
	AnswerBytesMax, PopMax int
	// Strict reports whether of a tasklist a more urgent priority goes first, however long others wait.
	Strict func(domain, tasklist string) bool
	// ReadAhead reports whether there is room for triggers that are read ahead.
	ReadAhead func() bool
	// Last is the number of the poll that came last.
	Last func() uint64
	// Of is the tasklist that limits see.
	Of func(l *limit.List) *Source[L]
}

// Call is a call to the tables of a domain.
type Call[L arrival.List] struct {
	Out table.Call
	limit.Call
	set Settings[L]
	// Puts are what it stores, sources the tasklists whose triggers it takes, and paths those of their candidates, by Wants.
	Puts    []arrival.Arrival[L]
	sources []*Source[L]
	paths   [][]*limit.Path
	// candidates counts the columns that it names. more: some were left to the next one, since
	// this one asks for as many of their limit as there can be.
	candidates int
	more       bool
	// Looks counts the tasklists looked at. Cut: there are more.
	Looks int
	Cut   bool
	// Spills are the wants behind those of sources: for triggers that are to be rejected.
	Spills []overflow.Want
	// Stale: since it was made a group was paused, whose triggers it may take.
	Stale bool
}

// Empty reports whether a call has nothing to say.
func (c *Call[L]) Empty() bool {
	return len(c.Out.Clear)+len(c.Out.Put)+len(c.Limits)+len(c.Out.Wants) == 0
}

// Budget is how many columns more it may name.
func (c *Call[L]) Budget() int { return CallCandidatesMax - c.candidates }

// Clear has a call forget some columns, and returns those that are left to the next one.
func (c *Call[L]) Clear(all []table.Place) (left []table.Place) {
	n := min(len(all), CallCandidatesMax)
	c.Out.Clear = slices.Clone(all[:n])
	return slices.Delete(all, 0, n)
}

// Put has a call store chunks that found no poll, and returns those that are left to the next one.
func (c *Call[L]) Put(all []arrival.Arrival[L]) (left []arrival.Arrival[L]) {
	n := min(len(all), putChunksMax)
	c.Puts = append(c.Puts, all[:n]...)
	return slices.Delete(all, 0, n)
}

// Join joins small chunks of one column that the call stores: the tables' work is per chunk.
func (c *Call[L]) Join() {
	last := make(map[table.Place]int, len(c.Puts))
	var shared fairness.Puts
	for i := range c.Puts {
		a := &c.Puts[i]
		switch {
		case a.Ranks() != nil:
			shared.Add(a.Chunk, a.Ranks())
			continue
		case a.Rank != 0:
			c.Out.Put = append(c.Out.Put, a.Chunk)
			continue
		}
		at := table.Place{Tasklist: a.Tasklist, Column: a.Column}
		if i, ok := last[at]; ok && c.Out.Put[i].Cost == a.Cost && c.Out.Put[i].Len()+a.Len() <= table.ChunkTriggersMax {
			joined := &c.Out.Put[i]
			joined.Triggers = append(joined.Triggers[:len(joined.Triggers):len(joined.Triggers)], a.Triggers...)
			joined.ReadyAt = min(joined.ReadyAt, a.ReadyAt)
			continue
		}
		last[at] = len(c.Out.Put)
		c.Out.Put = append(c.Out.Put, a.Chunk)
	}
	c.Out.Put = shared.Append(c.Out.Put)
}

// Spill has a call take triggers that are to be rejected.
func (c *Call[L]) Spill(all []overflow.Want) {
	c.Spills = all
	for i := range all {
		c.Out.Wants = append(c.Out.Wants, all[i].Want)
	}
}

// look has a call take triggers of a tasklist. It reports whether it takes some, and whether others were left to the next call.
func (c *Call[L]) look(l *Source[L], leave bool) (asked, more bool) {
	c.Looks++
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
	first := l.Index.BeginTurn(func() bool { return c.set.Strict(l.Domain, l.Name) })
	byLine := map[*pairing.Line[L, grab.Grant]]int{}
	total, before := 0, len(c.Out.Wants)
	l.Polls.Each(func(p *grab.Poll[L]) bool {
		room := min(p.Room(c.set.AnswerBytesMax), c.set.PopMax-total)
		if room <= 0 {
			return total < c.set.PopMax
		}
		i, ok := byLine[p.Line()]
		if !ok {
			if c.candidates >= CallCandidatesMax || !c.wantFor(l, p, first) {
				return false
			}
			i = len(c.Out.Wants) - 1
			byLine[p.Line()] = i
		}
		c.Out.Wants[i].N += room
		total += room
		return total < c.set.PopMax
	})
	for _, i := range byLine {
		l.Index.Share(&c.Out.Wants[i])
	}
	if total > 0 {
		l.asking, l.asked, l.asks = true, c.set.Last(), c.Out.Wants[before:]
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
	candidates := l.Index.CandidatesOf(p.Types, first, most, func(at table.Column) bool {
		pass, more := l.Pass(at, &c.Call)
		c.more = c.more || more
		return pass
	})
	if len(candidates) == 0 {
		return false
	}
	w := table.Want{Tasklist: l.Tasklist, Candidates: candidates}
	if first == 0 && c.set.ReadAhead() {
		w.Ahead = table.ChunkTriggersMax
	}
	paths := make([]*limit.Path, len(candidates))
	for i := range candidates {
		paths[i] = l.PathOf(candidates[i].Column)
		if !c.Ask(l.List, paths[i], &candidates[i], p.Room(c.set.AnswerBytesMax)) {
			w.Ahead = 0
		}
	}
	c.Out.Wants = append(c.Out.Wants, w)
	c.sources, c.paths = append(c.sources, l), append(c.paths, paths)
	c.candidates += len(candidates)
	return true
}

// PathOf is what the call books for a batch that its i-th want takes, and PathsOf for its columns.
func (c *Call[L]) PathOf(i int, b *table.Batch) *limit.Path {
	if i < len(c.paths) && b.From < len(c.paths[i]) {
		return c.paths[i][b.From]
	}
	return limit.Unlimited
}

// PathsOf is what the call books for the columns of its i-th want.
func (c *Call[L]) PathsOf(i int) []*limit.Path { return c.paths[i] }

// Sources are the tasklists whose triggers it takes, by Wants.
func (c *Call[L]) Sources() []*Source[L] { return c.sources }

// Over notes that a call is not under way any more.
func (c *Call[L]) Over() {
	for _, l := range c.sources {
		l.asking, l.done, l.asks = false, l.issued, nil
	}
}

// Learn takes in what the outcome of a call says of its limits.
func (c *Call[L]) Learn(o *table.Outcome) {
	c.End()
	for i := range o.Taken {
		for _, b := range o.Taken[i].Batches {
			c.Took(c.PathOf(i, &b), len(b.Triggers)/ids.TriggerBytes, len(b.Ahead) > 0, o.Limits)
		}
		for _, b := range o.Taken[i].Blocked {
			c.Block(b.At, b.Why)
		}
	}
}
