package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// call is a call to the tables of a domain that is under way.
type call struct {
	out table.Call
	// puts are what it stores, lists whose triggers it takes and paths of their candidates, by Wants, limits by Stances.
	puts   []arrival
	lists  []*list
	paths  [][]*path
	limits []*limit
	// groups counts those of limits that are of one group.
	groups int
	// candidates counts the columns that it looks at. more: some were left to the next one, since
	// this one asks for as many of their limit as there can be.
	candidates int
	more       bool
	// looks counts the tasklists looked at. cut: there are more.
	looks int
	cut   bool
	// spills are the wants behind those of lists: for triggers that are to be rejected.
	spills []spill
	// tried are waiters for whose triggers it asks.
	tried []*waiter
	// stale: since it was made a group was paused, whose triggers it may take.
	stale bool
}

// taken is triggers that came out of a table.
type taken struct {
	list  *list
	chunk table.Chunk
	// path is the limits of which slots were booked for them.
	path *path
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
		if d.call == nil && d.state == open && !d.gone {
			s.call(d)
		}
	}
	s.turn.busy = shift(s.turn.busy, i)
}

// shift takes the first n out, and keeps the memory.
func shift[T any](all []T, n int) []T {
	rest := copy(all, all[n:])
	clear(all[rest:])
	return all[:rest]
}

// call makes one call out of everything that there is to say.
func (s *Shard) call(d *domain) {
	c := &call{}
	s.clear(d, c)
	if len(d.clears) == 0 { // or what is stored now would be forgotten
		s.put(d, c)
	}
	due := d.due
	d.due = nil
	for _, l := range due {
		switch {
		case !l.known(), l.rated() && l.unused == 0 && (!l.lined || l.waiters.any()): // of a rate only this is said: starts that come back, and that nothing waits in its line any more
			l.due = false
		case l.counting() && l.of != nil: // the tables learn of it when it is counted
			l.due = false
		case l.counting() || l.of != nil && c.groups >= groupsToldMax:
			d.due = append(d.due, l)
		default:
			l.due = false
			c.stand(l)
		}
	}
	s.wantAll(d, c)
	s.wantOverflows(d, c)
	if len(c.out.Clear)+len(c.out.Put)+len(c.limits)+len(c.out.Wants) == 0 {
		if c.cut {
			s.work(d)
		}
		return
	}
	for _, l := range c.limits {
		c.out.Stances = append(c.out.Stances, s.stance(l))
	}
	s.calls++
	c.out.Domain, c.out.Epoch = d.name, d.epoch
	c.out.Shard, c.out.Shards = s.cfg.Shard, s.cfg.Shards
	c.out.Seq = table.Seq{Epoch: s.cfg.Epoch, Call: s.calls}
	d.call = c
	s.fx.Calls = append(s.fx.Calls, c.out)
}

// stand has a call tell about a limit.
func (c *call) stand(l *limit) {
	if l.in == c {
		return
	}
	if l.of != nil {
		c.stand(l.of)
		c.groups++
	}
	l.in, l.at, l.asked = c, len(c.limits), 0
	c.limits = append(c.limits, l)
}

// pathOf is what the call books for a batch that its i-th want takes.
func (c *call) pathOf(i int, b *table.Batch) *path {
	if i < len(c.paths) && b.From < len(c.paths[i]) {
		return c.paths[i][b.From]
	}
	return unlimited
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
	d.puts = shift(d.puts, n)
	last := make(map[place]int, n)
	var shared fairness.Puts
	for _, a := range c.puts {
		a.list.putting--
		s.index(&a)
		s.tellUp(a.list)
		switch {
		case a.ranks != nil:
			shared.Add(a.Chunk, a.ranks)
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
		s.wantWaiters(d, c)
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
	d.dirty = append(shift(d.dirty, n), again...)
	for _, l := range c.limits {
		if w := l.waiters.mostUrgent(); w != nil {
			l.waitAt(w.priority)
		}
	}
}

// wantWaiters does so for those that wait for slots, with half of what there is: dirty ones are not to wait for them. Limits
// take turns.
func (s *Shard) wantWaiters(d *domain, c *call) {
	var again []*limit
	n := 0
	for all := len(d.waited); n < all; n++ {
		if c.looks >= looksMax/2 || c.candidates >= callCandidatesMax/2 {
			c.cut = true
			break
		}
		lim := d.waited[n]
		begun := lim.waiters.turn
		for first := true; ; first = false {
			w, after := lim.waiters.next()
			if w == nil || !s.turnOf(w, c) {
				break
			}
			dirty := w.list.dirty
			if more := s.look(w.list, c); dirty {
				w.list.dirty = true
			} else if more {
				d.dirty = append(d.dirty, w.list)
			}
			if !w.tried { // it has nothing to ask for any more
				lim.waiters.leave(w)
			}
			if lim.waiters.turn = after; first { // there may be a slot for this one only, so the others are next as they were
				begun = after
			}
		}
		lim.waiters.turn = begun
		if lim.waited = lim.waiters.any(); lim.waited {
			again = append(again, lim)
		} else if lim.known() && lim.in != c { // the tables think that somebody waits
			s.dueLimit(lim)
		}
	}
	d.waited = append(shift(d.waited, n), again...)
}

// turnOf tells whether a call may ask for slots for the first waiter of a limit.
func (s *Shard) turnOf(w *waiter, c *call) bool {
	switch {
	case w.limit.closed() || c.asksAll(w.limit) || w.list.asking || c.candidates >= callCandidatesMax/2:
		return false
	case c.looks >= looksMax/2:
		c.cut = true
		return false
	}
	return true
}

// look has a call take triggers of a tasklist. It returns whether some were left to the next call.
func (s *Shard) look(l *list, c *call) (more bool) {
	s.fx.Counts.Looks++
	c.looks++
	c.more = false
	asked := !s.drain.on && s.want(l, c)
	if l.dirty = c.more; !asked && !c.more {
		s.reconsider(l) // there is nothing to wait for
		s.tellUp(l)     // but polls, perhaps
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
	d.call = nil
	for _, l := range c.lists {
		l.asking, l.done, l.asks = false, l.issued, nil
		s.offer(l)
	}
	switch {
	case o.Failed:
		s.notCalled(c)
		s.arrivals = append(s.arrivals, s.putAgain(c)...)
		d.lost = true
		s.fail(d)
	case o.Outcome.Overtaken:
		s.notCalled(c)
		for i := range c.puts {
			s.finishPart(c.puts[i].from, false) // for the newer owner
		}
		d.lost = true
		s.fail(d)
	case o.Outcome.Lost:
		s.fx.Counts.Losses++
		s.notCalled(c)
		for i := range c.puts {
			s.finishPart(c.puts[i].from, true) // the next life begins with asking for all
		}
		s.open(d)
	default:
		for i := range c.puts {
			s.finishPart(c.puts[i].from, true)
		}
		s.learnStances(d, c, &o.Outcome)
		for i := range o.Outcome.Taken {
			if i < len(c.lists) {
				s.took(c, i, &o.Outcome)
			} else {
				s.spilled(c, i, &o.Outcome)
			}
		}
		for _, w := range c.tried {
			if w.tried {
				w.limit.waiters.leave(w)
			}
		}
	}
	for _, l := range c.lists {
		s.reconsider(l)
	}
	s.work(d)
}

// notCalled: what the call said about limits is said again, and who was tried keeps its place.
func (s *Shard) notCalled(c *call) {
	for _, l := range c.limits {
		l.again = false
		if l.known() && l.counted() {
			l.unsay()
			s.dueLimit(l)
		}
	}
	for _, w := range c.tried {
		w.limit.waiters.back(w)
	}
}

// learnStances learns how the limits of a call stand.
func (s *Shard) learnStances(d *domain, c *call, o *table.Outcome) {
	booked := make([]int, len(c.limits))
	blocked := make([]table.BlockedWhy, len(c.limits))
	for i := range o.Taken {
		for _, b := range o.Taken[i].Batches {
			p := c.pathOf(i, &b)
			for _, l := range p.limits {
				booked[l.at] += len(b.Triggers) / ids.TriggerBytes
			}
			if l := c.full(p, o); l != nil && len(b.Ahead) > 0 { // though that may be all that was left
				blocked[l.at] = table.Full
			}
		}
		for _, b := range o.Taken[i].Blocked {
			if b.At < len(blocked) {
				blocked[b.At] = b.Why
			}
		}
	}
	var freed, restore LimitHint
	for i, l := range c.limits {
		if !l.known() || i >= len(o.Limits) {
			continue
		}
		s.wouldWait(l, o.Limits[i].Beyond)
		if l.rated() {
			s.learnRate(l, &o.Limits[i], blocked[i])
			continue
		}
		if l.PerGroup {
			if l.learnPerGroup(&o.Limits[i], blocked[i], s.now) {
				restore.Limits = append(restore.Limits, l.Ref)
			}
			continue
		}
		// A shard that leaves the line may have kept more slots from those behind than it took.
		freer := l.unsaid || c.out.Stances[i].Held < l.entry || l.short && blocked[i] == 0
		l.booked += booked[i]
		waited := l.short
		if l.stands(&o.Limits[i], c.out.Stances[i].Held+booked[i]+o.Limits[i].Leased, blocked[i], s.now) {
			restore.Limits = append(restore.Limits, l.Ref)
		}
		l.waiters.lack.Note(l.short && booked[i] == 0, s.now.Mono)
		s.sawFull(l, &o.Limits[i], waited, booked[i])
		l.usage.Saw(s.now.Mono, l.saturated(booked[i]), fullFor(len(l.held)+booked[i] > 0 || l.blocked != 0))
		if l.others && !l.full && freer {
			freed.Limits = append(freed.Limits, l.Ref)
		}
		s.suspects = append(s.suspects, l)
		s.watch(l)
	}
	if len(freed.Limits) > 0 {
		freed.Domain = d.name
		s.fx.Freed = append(s.fx.Freed, freed)
	}
	s.askForEntries(d, restore.Limits)
}

// stands takes in how a limit stands. It returns whether other shards are to be asked for
// their entries.
func (l *limit) stands(st *table.LimitState, entry int, blocked table.BlockedWhy, now Now) bool {
	if l.of != nil && l.unsaid {
		l.of.perGroup.unsaid--
	}
	l.entry, l.unsaid, l.shownAt = entry, false, now.Mono
	l.others, l.full, l.used = st.Others, st.Used >= l.Max, st.Used
	l.standsBlocked(blocked)
	if l.full && l.auditAt == 0 && len(l.held) > 0 || l.blocked == table.Full && l.auditAt == 0 {
		l.auditAt = now.Mono + auditEvery
	}
	return l.blocked == table.Restoring && l.mayRestore(now)
}

// standsBlocked takes in why a limit had no slot. One that was left out of the wants is blocked as it was before.
func (l *limit) standsBlocked(blocked table.BlockedWhy) {
	if blocked != 0 {
		l.blocked = blocked
	} else if l.blocked == 0 {
		l.wait = 0
	}
	l.short = l.blocked != 0
}

// mayRestore tells whether other shards may be asked again for their entries.
func (l *limit) mayRestore(now Now) bool {
	return l.restoreAt == 0 || now.Mono-l.restoreAt >= restoreEvery
}

// full is the first limit of a path that had no slot left at the end of a call, or nil.
func (c *call) full(p *path, o *table.Outcome) *limit {
	return p.find(func(l *limit) bool { return l.in == c && !l.Shadow && o.Limits[l.at].Used >= c.out.Stances[l.at].Max })
}

// askForEntries has all shards set their entries of some limits.
func (s *Shard) askForEntries(d *domain, refs []table.Ref) {
	if len(refs) == 0 {
		return
	}
	for _, ref := range refs {
		d.limit(ref).restoreAt = s.now.Mono
	}
	s.fx.Restore = append(s.fx.Restore, LimitHint{Domain: d.name, Limits: refs})
}

// took keeps what a want got for the matching to come, and learns from it about the table.
func (s *Shard) took(c *call, i int, o *table.Outcome) {
	l, got := c.lists[i], &o.Taken[i]
	progress := len(got.Blocked) > 0
	if len(got.Batches) > 0 {
		l.index.EndTurn()
	}
	for _, b := range got.Batches {
		t := taken{list: l, chunk: b.Chunk(l.Tasklist), path: unlimited, stale: c.stale}
		l.ranks.Taken(&t.chunk, l.index.Shift(t.chunk.Column))
		if b.Booked {
			t.path = c.pathOf(i, &b)
		}
		s.taken = append(s.taken, t)
		s.fx.Counts.Matches += int64(len(b.Triggers) / ids.TriggerBytes)
		if len(b.Ahead) > 0 && !c.stale {
			s.readAhead(l, c.full(t.path, o), b.Rest(l.Tasklist))
		}
		progress = true
	}
	for _, b := range got.Blocked {
		lim := l.domain.limits[b.By]
		if lim != nil && !slices.ContainsFunc(got.Batches, func(t table.Batch) bool { return c.pathOf(i, &t).waits(lim) }) { // it keeps its place
			lim.waiters.back(lim.waiters.all[l])
		}
	}
	for j, h := range got.Heads {
		l.index.Seen(h)
		l.ranks.End(h.Column, l.keepsRanks)
		progress = progress || h.Empty
		if h.Empty {
			l.unparkGone(h.Column)
		} else {
			s.parkBehind(c.paths[i][j], l, h.Column)
		}
	}
	if slices.ContainsFunc(got.Heads, func(h table.Head) bool { return !h.Empty && l.unknownGroups(h.Column) }) {
		s.clearUnknown(l) // it was taken from while a limit came
	}
	if progress && !l.index.Empty() { // there may be more for its polls
		s.mark(l)
	}
	s.tellUp(l)
}
