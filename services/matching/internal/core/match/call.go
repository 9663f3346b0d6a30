package match

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// call is a call to the tables of a domain that is under way.
type call struct {
	out table.Call
	// puts are what it stores, lists whose triggers it takes, by Wants, limits by Stances.
	puts   []arrival
	lists  []*list
	limits []*limit
	// candidates counts the columns that it looks at. more: some were left to the next one, since
	// this one asks for as many of their limit as there can be.
	candidates int
	more       bool
}

// taken is triggers that came out of a table.
type taken struct {
	list  *list
	chunk table.Chunk
	// limit is that of which slots were booked for them.
	limit *limit
}

// callAll calls the tables of the domains that need it.
func (s *Shard) callAll() {
	for i := 0; i < len(s.turn.busy); i++ {
		d := s.turn.busy[i]
		d.busy = false
		if d.call == nil && d.state == open && !d.gone {
			s.call(d)
		}
	}
	clear(s.turn.busy)
	s.turn.busy = s.turn.busy[:0]
}

// call makes one call out of everything that there is to say.
func (s *Shard) call(d *domain) {
	c := &call{}
	s.put(d, c)
	due := d.due
	d.due = nil
	for _, l := range due {
		switch {
		case !l.known():
			l.due = false
		case l.unknown > 0:
			d.due = append(d.due, l)
		default:
			l.due = false
			c.stand(l)
		}
	}
	s.wantAll(d, c)
	if len(c.out.Put)+len(c.limits)+len(c.out.Wants) == 0 {
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

// stand has a call tell about a limit, and returns its index.
func (c *call) stand(l *limit) []int {
	if l.in != c {
		l.in, l.at, l.asked = c, []int{len(c.limits)}, 0
		c.limits = append(c.limits, l)
	}
	return l.at
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
	rest := copy(d.puts, d.puts[n:])
	clear(d.puts[rest:])
	d.puts = d.puts[:rest]
	last := make(map[place]int, n)
	for _, a := range c.puts {
		a.list.putting--
		a.list.index.Put(a.Column, a.ReadyAt, a.Len())
		at := place{a.Tasklist, a.Column}
		if i, ok := last[at]; ok && c.out.Put[i].Len()+a.Len() <= table.ChunkTriggersMax {
			joined := &c.out.Put[i]
			joined.Triggers = append(joined.Triggers[:len(joined.Triggers):len(joined.Triggers)], a.Triggers...)
			joined.ReadyAt = min(joined.ReadyAt, a.ReadyAt)
			continue
		}
		last[at] = len(c.out.Put)
		c.out.Put = append(c.out.Put, a.Chunk)
	}
}

// wantAll has a call take triggers for the polls of dirty tasklists, as far as one call may look
// at columns. The others wait for the next call: by then, what is full is known.
func (s *Shard) wantAll(d *domain, c *call) {
	rest := d.dirty[:0]
	for _, l := range d.dirty {
		if !s.drain.on && c.candidates >= callCandidatesMax {
			rest = append(rest, l)
			continue
		}
		c.more = false
		asked := !s.drain.on && s.want(l, c)
		if l.dirty = c.more; c.more {
			rest = append(rest, l)
		} else if !asked {
			s.reconsider(l) // there is nothing to wait for
		}
	}
	clear(d.dirty[len(rest):])
	d.dirty = rest
}

// want has a call take as many triggers as a tasklist's polls have room for: one want
// for all polls that accept the same types. It returns whether there is anything to take.
func (s *Shard) want(l *list, c *call) bool {
	if l.queue.n == 0 || l.index.Empty() {
		return false
	}
	byLine := map[*pollLine]int{}
	total := 0
	l.queue.each(func(p *poll) bool {
		room := min(p.room(s.cfg.AnswerBytesMax), s.cfg.PopMax-total)
		if room <= 0 {
			return total < s.cfg.PopMax
		}
		i, ok := byLine[p.line]
		if !ok {
			if c.candidates >= callCandidatesMax || !s.wantFor(l, p, c) {
				return false
			}
			i = len(c.out.Wants) - 1
			byLine[p.line] = i
		}
		c.out.Wants[i].N += room
		total += room
		return total < s.cfg.PopMax
	})
	if total > 0 {
		l.asking = true
		l.issued++
	}
	return total > 0
}

// wantFor adds a want of what a poll accepts; false if the table holds nothing of it.
func (s *Shard) wantFor(l *list, p *poll, c *call) bool {
	full := false
	candidates := l.index.CandidatesOf(p.types, candidatesMax, func(typ string) bool {
		if l.domain.blocked(typ) {
			return true
		}
		left := c.asksAll(l.domain.limits[typ])
		full = full || left
		return left
	})
	if full {
		c.more = true
		left := func(typ string) bool { return !l.domain.blocked(typ) && c.asksAll(l.domain.limits[typ]) }
		for _, at := range l.index.CandidatesOf(p.types, candidatesMax, func(typ string) bool { return !left(typ) }) {
			l.domain.limits[at.Type].waitAt(at.Priority)
		}
	}
	if len(candidates) == 0 {
		return false
	}
	for i := range candidates {
		at := &candidates[i]
		if lim := l.domain.limits[at.Type]; lim != nil {
			at.Path = c.stand(lim)
			lim.asked += p.room(s.cfg.AnswerBytesMax)
			lim.waitAt(at.Priority)
		}
	}
	w := table.Want{Tasklist: l.Tasklist, Candidates: candidates}
	if s.ahead < aheadMax {
		w.Ahead = table.ChunkTriggersMax
	}
	c.out.Wants = append(c.out.Wants, w)
	c.lists = append(c.lists, l)
	c.candidates += len(candidates)
	return true
}

// asksAll tells whether a call asks for as many triggers of a limit as there can be slots.
func (c *call) asksAll(l *limit) bool { return l != nil && l.in == c && l.asked >= l.max }

// called takes in what became of a call. What one was to store that failed meets a poll, or is let
// go of: should it have been stored too, the second of the two is a double.
func (s *Shard) called(o *CallOutcome) {
	d := s.domains[o.Domain]
	if d == nil || d.call == nil {
		return
	}
	c := d.call
	d.call = nil
	for _, l := range c.lists {
		l.asking, l.done = false, l.issued
	}
	switch {
	case o.Failed:
		s.notCalled(c)
		s.arrivals = append(s.arrivals, c.puts...)
		d.lost = true
		s.fail(d)
	case o.Outcome.Overtaken:
		s.notCalled(c)
		for i := range c.puts {
			s.settle(c.puts[i].from, false) // for the newer owner
		}
		d.lost = true
		s.fail(d)
	case o.Outcome.Lost:
		s.fx.Counts.Losses++
		s.notCalled(c)
		for i := range c.puts {
			s.settle(c.puts[i].from, true) // the next life begins with asking for all
		}
		s.open(d)
	default:
		for i := range c.puts {
			s.settle(c.puts[i].from, true)
		}
		s.told(d, c, &o.Outcome)
		for i := range o.Outcome.Taken {
			s.took(c, i, &o.Outcome.Taken[i])
		}
	}
	for _, l := range c.lists {
		s.reconsider(l)
	}
	s.work(d)
}

// notCalled: what the call said about limits is said again.
func (s *Shard) notCalled(c *call) {
	for _, l := range c.limits {
		l.again = false
		if l.known() {
			l.unsaid = true
			s.dueLimit(l)
		}
	}
}

// told learns how the limits of a call stand.
func (s *Shard) told(d *domain, c *call, o *table.Outcome) {
	booked := make([]int, len(c.limits))
	blocked := make([]table.BlockedWhy, len(c.limits))
	for i := range o.Taken {
		for _, b := range o.Taken[i].Batches {
			l := d.limits[b.Type]
			if !b.Booked || l == nil || l.in != c {
				continue
			}
			booked[l.at[0]] += len(b.Triggers) / ids.TriggerBytes
			if len(b.Ahead) > 0 { // though that may be all that was left
				blocked[l.at[0]] = table.Full
			}
		}
		for _, b := range o.Taken[i].Blocked {
			if l := d.refs[b.By]; l != nil && l.in == c {
				blocked[l.at[0]] = b.Why
			}
		}
	}
	var freed, restore LimitHint
	for i, l := range c.limits {
		if !l.known() || i >= len(o.Limits) {
			continue
		}
		// Who leaves the line may have kept more slots from those behind than it took.
		freer := l.unsaid || c.out.Stances[i].Held < l.entry || l.short && blocked[i] == 0
		l.booked += booked[i]
		if l.stands(&o.Limits[i], c.out.Stances[i].Held+booked[i]+o.Limits[i].Leased, blocked[i], s.now) {
			restore.Limits = append(restore.Limits, l.ref)
		}
		if l.others && !l.full && freer {
			freed.Limits = append(freed.Limits, l.ref)
		}
		s.owing = append(s.owing, l)
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
	l.entry, l.unsaid, l.shownAt = entry, false, now.Mono
	l.others, l.full = st.Others, st.Used >= l.max
	// A limit that was left out of the wants is blocked as it was before.
	if blocked != 0 {
		l.blocked = blocked
	} else if l.blocked == 0 {
		l.wait = 0
	}
	l.short = l.blocked != 0
	if l.full && l.auditAt == 0 && len(l.held) > 0 || l.blocked == table.Full && l.auditAt == 0 {
		l.auditAt = now.Mono + auditEvery
	}
	return l.blocked == table.Restoring && (l.restoreAt == 0 || now.Mono-l.restoreAt >= restoreEvery)
}

// askForEntries has all shards set their entries of some limits.
func (s *Shard) askForEntries(d *domain, refs []table.Ref) {
	if len(refs) == 0 {
		return
	}
	for _, ref := range refs {
		d.refs[ref].restoreAt = s.now.Mono
	}
	s.fx.Restore = append(s.fx.Restore, LimitHint{Domain: d.name, Limits: refs})
}

// took keeps what a want got for the matching to come, and learns from it about the table.
func (s *Shard) took(c *call, i int, got *table.Taken) {
	l := c.lists[i]
	progress := len(got.Blocked) > 0
	for _, b := range got.Batches {
		t := taken{list: l, chunk: table.Chunk{Tasklist: l.Tasklist, Column: b.Column, ReadyAt: b.ReadyAt, Triggers: b.Triggers}}
		if b.Booked {
			t.limit = l.domain.limits[b.Type]
		}
		s.taken = append(s.taken, t)
		s.fx.Counts.Matches += int64(len(b.Triggers) / ids.TriggerBytes)
		if len(b.Ahead) > 0 {
			rest := t.chunk
			rest.Triggers = b.Ahead
			s.readAhead(l, t.limit, rest)
		}
		progress = true
	}
	for _, h := range got.Heads {
		l.index.Seen(h)
		progress = progress || h.Empty
	}
	if progress && !l.index.Empty() { // there may be more for its polls
		s.mark(l)
	}
}
