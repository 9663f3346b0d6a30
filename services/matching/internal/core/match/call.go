package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
)

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
	c := tablecall.Begin(s.calling)
	if d.clears = c.Clear(d.clears); len(d.clears) == 0 { // or what is stored now would be forgotten
		d.puts = c.Put(d.puts)
		for i := range c.Puts { // the call takes after it stores
			a := &c.Puts[i]
			a.List.putting--
			s.index(a)
			s.tree.Report(&a.List.node)
		}
		c.Join()
	}
	d.StandDue(&c.Call)
	for _, l := range d.sources.Want(c, d.Domain, s.drain.on) {
		s.waiting.Reconsider(&s.listOf(l.List).queue)
		s.tree.Report(&s.listOf(l.List).node) // but polls, perhaps
	}
	s.fx.Counts.Looks += int64(c.Looks)
	c.Spill(d.policies.Wants(s.policyTurn(), &c.Call, c.Budget(), s.drain.on))
	if c.Empty() {
		if c.Cut {
			s.work(d)
		}
		return
	}
	c.Out.Stances = s.limits.Stances(&c.Call)
	s.calls++
	c.Out.Domain, c.Out.Epoch = d.Name, d.epoch
	c.Out.Shard, c.Out.Shards = s.cfg.Shard, s.cfg.Shards
	c.Out.Seq = table.Seq{Epoch: s.cfg.Epoch, Call: s.calls}
	d.call, d.Call = c, &c.Call
	s.fx.Calls = append(s.fx.Calls, c.Out)
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
	c.Over()
	for _, l := range c.Sources() {
		s.tree.Offer(&s.listOf(l.List).node)
	}
	switch {
	case o.Failed:
		s.limits.NotMade(&c.Call)
		s.arrivals.All = append(s.arrivals.All, s.putAgain(c)...)
		d.lost = true
		s.fail(d)
	case o.Outcome.Overtaken:
		s.limits.NotMade(&c.Call)
		s.arrivals.FinishAll(c.Puts, false) // for the newer owner
		d.lost = true
		s.fail(d)
	case o.Outcome.Lost:
		s.fx.Counts.Losses++
		s.limits.NotMade(&c.Call)
		s.arrivals.FinishAll(c.Puts, true) // the next life begins with asking for all
		s.open(d)
	default:
		s.arrivals.FinishAll(c.Puts, true)
		s.learnLimits(d, c, &o.Outcome)
		for i := range o.Outcome.Taken {
			if n := len(c.Sources()); i < n {
				s.took(c, i, &o.Outcome)
			} else {
				s.spilled(c, &c.Spills[i-n], &o.Outcome.Taken[i], o.Outcome.Limits)
			}
		}
		c.GiveUp()
	}
	for _, l := range c.Sources() {
		s.waiting.Reconsider(&s.listOf(l.List).queue)
	}
	s.work(d)
}

// learnLimits learns how the limits of a call stand.
func (s *Shard) learnLimits(d *domain, c *call, o *table.Outcome) {
	c.Learn(o)
	freed, restore := s.limits.Learn(&c.Call, o.Limits)
	if len(freed) > 0 {
		s.fx.Freed = append(s.fx.Freed, LimitHint{Domain: d.Name, Limits: freed})
	}
	s.askForEntries(d, restore)
}

// took keeps what a want got for the matching to come, and learns from it about the table.
func (s *Shard) took(c *call, i int, o *table.Outcome) {
	l, got := s.listOf(c.Sources()[i].List), &o.Taken[i]
	progress := len(got.Blocked) > 0
	if len(got.Batches) > 0 {
		l.index.EndTurn()
	}
	for _, b := range got.Batches {
		t := taken{list: l, chunk: b.Chunk(l.Tasklist), path: limit.Unlimited, stale: c.Stale}
		l.ranks.Taken(&t.chunk, l.index.Shift(t.chunk.Column))
		if b.Booked {
			t.path = c.PathOf(i, &b)
		}
		s.taken = append(s.taken, t)
		s.fx.Counts.Matches += int64(len(b.Triggers) / ids.TriggerBytes)
		if len(b.Ahead) > 0 && !c.Stale {
			if rest := b.Rest(l.Tasklist); !l.KeepAhead(c.Full(t.path, o.Limits), rest) {
				s.arrivals.PutBack(l, rest)
			}
		}
		progress = true
	}
	for _, b := range got.Blocked {
		lim := l.domain.Limits[b.By]
		if lim != nil && !slices.ContainsFunc(got.Batches, func(t table.Batch) bool { return c.PathOf(i, &t).Waits(lim) }) { // it keeps its place
			lim.KeepPlace(l.List)
		}
	}
	for j, h := range got.Heads {
		s.sawHead(l, h)
		progress = progress || h.Empty
		if !h.Empty {
			s.limits.ParkBehind(c.PathsOf(i)[j], l.List, h.Column)
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
