package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// call is a call to the tables of a domain that is under way.
type call struct {
	out table.Call
	limit.Call
	// puts are what it stores, lists whose triggers it takes and paths of their candidates, by Wants.
	puts  []arrived
	lists []*list
	paths [][]*limit.Path
	// candidates counts the columns that it looks at. more: some were left to the next one, since
	// this one asks for as many of their limit as there can be.
	candidates int
	more       bool
	// looks counts the tasklists looked at. cut: there are more.
	looks int
	cut   bool
	// spills are the wants behind those of lists: for triggers that are to be rejected.
	spills []overflow.Want
	// stale: since it was made a group was paused, whose triggers it may take.
	stale bool
}

// taken is triggers that came out of a table.
type taken struct {
	list  *list
	chunk table.Chunk
	// path is the limits of which slots were booked for them.
	path *limit.Path
	// stale: its call is.
	stale bool
}

// callAll calls the tables of the domains that need it, as far as one turn may look at tasklists. The others come
// first in the next one, which is due at once.
func (s *Shard) callAll() {
	i := 0
	for n := len(s.turn.busy); i < n && s.fx.Counts.Looks < turnLooksMax; i++ {
		d := s.turn.busy[i]
		d.busy = false
		if d.call == nil && d.Open && !d.Forgotten {
			s.call(d)
		}
	}
	s.turn.busy = slices.Delete(s.turn.busy, 0, i)
}

// call makes one call out of everything that there is to say.
func (s *Shard) call(d *domain) {
	c := &call{}
	s.clear(d, c)
	if len(d.clears) == 0 { // or what is stored now would be forgotten
		s.put(d, c)
	}
	d.StandDue(&c.Call)
	s.wantAll(d, c)
	s.wantSpills(d, c)
	if len(c.out.Clear)+len(c.out.Put)+len(c.Limits)+len(c.out.Wants) == 0 {
		if c.cut {
			s.work(d)
		}
		return
	}
	c.out.Stances = s.limits.Stances(&c.Call)
	s.calls++
	c.out.Domain, c.out.Epoch = d.Name, d.epoch
	c.out.Shard, c.out.Shards = s.cfg.Shard, s.cfg.Shards
	c.out.Seq = table.Seq{Epoch: s.cfg.Epoch, Call: s.calls}
	d.call, d.Call = c, &c.Call
	s.fx.Calls = append(s.fx.Calls, c.out)
}

// pathOf is what the call books for a batch that its i-th want takes.
func (c *call) pathOf(i int, b *table.Batch) *limit.Path {
	if i < len(c.paths) && b.From < len(c.paths[i]) {
		return c.paths[i][b.From]
	}
	return limit.Unlimited
}

// put has a call store what found no poll. Small chunks of one column are joined: the
// tables' work is per chunk. The index counts them at once: the call takes after it stores.
func (s *Shard) put(d *domain, c *call) {
	type place struct {
		table.Tasklist
		table.Column
	}
	n := min(len(d.puts), putChunksMax)
	if n == 0 {
		return
	}
	c.puts = append(c.puts, d.puts[:n]...)
	d.puts = slices.Delete(d.puts, 0, n)
	last := make(map[place]int, n)
	var shared fairness.Puts
	for _, a := range c.puts {
		a.List.putting--
		s.index(&a)
		s.tree.Report(&a.List.node)
		switch {
		case a.Ranks() != nil:
			shared.Add(a.Chunk, a.Ranks())
			continue
		case a.Rank != 0:
			c.out.Put = append(c.out.Put, a.Chunk)
			continue
		}
		at := place{a.Tasklist, a.Column}
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

// wantAll has a call take triggers for the polls of tasklists: of those that wait for slots that may be free, then of
// dirty ones, as far as one turn may look at tasklists, and one call at columns. The others come
// next: by then, what is full is known.
func (s *Shard) wantAll(d *domain, c *call) {
	if !s.drain.on {
		d.Domain.TryWaiters(&c.Call, &trial{s, d, c})
	}
	var again []*list
	n := 0
	for ; n < len(d.dirty) && (s.drain.on || c.candidates < callCandidatesMax); n++ {
		if c.looks >= looksMax {
			c.cut = true
			break
		}
		if l := d.dirty[n]; l.asking || s.look(l, c) {
			again = append(again, l)
		}
	}
	d.dirty = append(slices.Delete(d.dirty, 0, n), again...)
	c.WaitInLine()
}

// trial has a call take triggers for tasklists that wait for slots, with half of what there is: dirty ones are not to wait for them.
type trial struct {
	shard  *Shard
	domain *domain
	call   *call
}

// Enough reports whether the half is used up.
func (t *trial) Enough() bool {
	enough := t.call.looks >= looksMax/2 || t.call.candidates >= callCandidatesMax/2
	t.call.cut = t.call.cut || enough
	return enough
}

// May reports whether a call may take something for a tasklist.
func (t *trial) May(l *limit.List) bool {
	switch {
	case t.shard.listOf(l).asking || t.call.candidates >= callCandidatesMax/2:
		return false
	case t.call.looks >= looksMax/2:
		t.call.cut = true
		return false
	}
	return true
}

// Look has the call take triggers of a tasklist.
func (t *trial) Look(of *limit.List) {
	l := t.shard.listOf(of)
	dirty := l.dirty
	if more := t.shard.look(l, t.call); dirty {
		l.dirty = true
	} else if more {
		t.domain.dirty = append(t.domain.dirty, l)
	}
}

// look has a call take triggers of a tasklist. It returns whether some were left to the next call.
func (s *Shard) look(l *list, c *call) (more bool) {
	s.fx.Counts.Looks++
	c.looks++
	c.more = false
	asked := !s.drain.on && s.want(l, c)
	if l.dirty = c.more; !asked && !c.more {
		s.reconsider(l)        // there is nothing to wait for
		s.tree.Report(&l.node) // but polls, perhaps
	}
	return c.more
}

// called takes in what became of a call. A trigger that a failed call was to store meets a poll, or is let
// go of: should it have been stored too, the second of the two is a double.
func (s *Shard) called(o *CallOutcome) {
	d := s.domains[o.Domain]
	if d == nil || d.call == nil {
		return
	}
	c := d.call
	d.call, d.Call = nil, nil
	for _, l := range c.lists {
		l.asking, l.done, l.asks = false, l.issued, nil
		s.tree.Offer(&l.node)
	}
	switch {
	case o.Failed:
		s.limits.NotMade(&c.Call)
		s.arrivals.All = append(s.arrivals.All, s.putAgain(c)...)
		d.lost = true
		s.fail(d)
	case o.Outcome.Overtaken:
		s.limits.NotMade(&c.Call)
		s.arrivals.FinishAll(c.puts, false) // for the newer owner
		d.lost = true
		s.fail(d)
	case o.Outcome.Lost:
		s.fx.Counts.Losses++
		s.limits.NotMade(&c.Call)
		s.arrivals.FinishAll(c.puts, true) // the next life begins with asking for all
		s.open(d)
	default:
		s.arrivals.FinishAll(c.puts, true)
		s.learnLimits(d, c, &o.Outcome)
		for i := range o.Outcome.Taken {
			if i < len(c.lists) {
				s.took(c, i, &o.Outcome)
			} else {
				s.spilled(c, &c.spills[i-len(c.lists)], &o.Outcome.Taken[i], o.Outcome.Limits)
			}
		}
		c.GiveUp()
	}
	for _, l := range c.lists {
		s.reconsider(l)
	}
	s.work(d)
}

// learnLimits learns how the limits of a call stand.
func (s *Shard) learnLimits(d *domain, c *call, o *table.Outcome) {
	c.End()
	for i := range o.Taken {
		for _, b := range o.Taken[i].Batches {
			c.Call.Took(c.pathOf(i, &b), len(b.Triggers)/ids.TriggerBytes, len(b.Ahead) > 0, o.Limits)
		}
		for _, b := range o.Taken[i].Blocked {
			c.Block(b.At, b.Why)
		}
	}
	freed, restore := s.limits.Learn(&c.Call, o.Limits)
	if len(freed) > 0 {
		s.fx.Freed = append(s.fx.Freed, LimitHint{Domain: d.Name, Limits: freed})
	}
	s.askForEntries(d, restore)
}

// took keeps what a want got for the matching to come, and learns from it about the table.
func (s *Shard) took(c *call, i int, o *table.Outcome) {
	l, got := c.lists[i], &o.Taken[i]
	progress := len(got.Blocked) > 0
	if len(got.Batches) > 0 {
		l.index.EndTurn()
	}
	for _, b := range got.Batches {
		t := taken{list: l, chunk: b.Chunk(l.Tasklist), path: limit.Unlimited, stale: c.stale}
		l.ranks.Taken(&t.chunk, l.index.Shift(t.chunk.Column))
		if b.Booked {
			t.path = c.pathOf(i, &b)
		}
		s.taken = append(s.taken, t)
		s.fx.Counts.Matches += int64(len(b.Triggers) / ids.TriggerBytes)
		if len(b.Ahead) > 0 && !c.stale {
			if rest := b.Rest(l.Tasklist); !l.KeepAhead(c.Full(t.path, o.Limits), rest) {
				s.arrivals.PutBack(l, rest)
			}
		}
		progress = true
	}
	for _, b := range got.Blocked {
		lim := l.domain.Limits[b.By]
		if lim != nil && !slices.ContainsFunc(got.Batches, func(t table.Batch) bool { return c.pathOf(i, &t).Waits(lim) }) { // it keeps its place
			lim.KeepPlace(l.List)
		}
	}
	for j, h := range got.Heads {
		s.sawHead(l, h)
		progress = progress || h.Empty
		if !h.Empty {
			s.limits.ParkBehind(c.paths[i][j], l.List, h.Column)
		}
	}
	if slices.ContainsFunc(got.Heads, func(h table.Head) bool { return !h.Empty && l.UnknownGroups(h.Column) }) {
		s.clearUnknown(l) // it was taken from while a limit came
	}
	if progress && !l.index.Empty() { // there may be more for its polls
		s.mark(l)
	}
	s.tree.Report(&l.node)
}

// sawHead takes in the head of a column after a call.
func (s *Shard) sawHead(l *list, h table.Head) {
	l.index.Seen(h)
	l.ranks.End(h.Column, l.keepsRanks)
	if h.Empty {
		l.ForgetParked(h.Column)
	}
}
