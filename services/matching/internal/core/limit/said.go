package limit

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Call is what one call to the tables of a domain says about limits.
type Call struct {
	// Limits are those that it names, by stances; groups counts those of them that are of one group.
	Limits  []*Limit
	Stances []table.Stance
	groups  int
	// Tried are waiters for whose triggers it asks.
	Tried []*waiter
	// booked and blocked are what its outcome says, by limits.
	booked  []int
	blocked []table.BlockedWhy
}

// Stand has a call tell about a limit.
func (c *Call) Stand(l *Limit) {
	if l.In == c {
		return
	}
	if l.Of != nil {
		c.Stand(l.Of)
		c.groups++
	}
	l.In, l.At, l.asked = c, len(c.Limits), 0
	c.Limits = append(c.Limits, l)
}

// FullOf is the first limit of a path that had no slot left at the end of a call, or nil.
func (c *Call) FullOf(p *Path, states []table.LimitState) *Limit {
	return p.Find(func(l *Limit) bool { return l.In == c && !l.Shadow && c.IsFull(l, states) })
}

// IsFull reports whether a limit had no slot left at the end of a call.
func (c *Call) IsFull(l *Limit, states []table.LimitState) bool {
	return states[l.At].Used >= c.Stances[l.At].Max
}

// asksAll tells whether a call asks for as many triggers of a limit as there can be slots.
func (c *Call) asksAll(l *Limit) bool { return l.In == c && !l.Shadow && l.asked >= l.Max }

// try notes that a call asks for what a waiter waits for.
func (c *Call) try(w *waiter) {
	if w != nil && !w.tried {
		w.limit.waiters.lines[w.priority].Remove(w)
		w.tried = true
		c.Tried = append(c.Tried, w)
	}
}

// Took notes that a call booked slots of a path for n triggers. cut: it left some of their chunk, though that may be all that was left.
func (c *Call) Took(p *Path, n int, cut bool, states []table.LimitState) *Limit {
	for _, l := range p.limits {
		c.booked[l.At] += n
	}
	full := c.FullOf(p, states)
	if full != nil && cut {
		c.blocked[full.At] = table.Full
	}
	return full
}

// End makes room for what a call that has ended says of its limits.
func (c *Call) End() {
	c.booked, c.blocked = make([]int, len(c.Limits)), make([]table.BlockedWhy, len(c.Limits))
}

// Block notes why a call had no slot of its i-th limit.
func (c *Call) Block(i int, why table.BlockedWhy) {
	if i < len(c.blocked) {
		c.blocked[i] = why
	}
}

// Learn learns how the limits of a call stand: of those in freed other shards may try again, of those in restore they are to set their entries.
func (s *Limits) Learn(c *Call, states []table.LimitState) (freed, restore []table.Ref) {
	for i, l := range c.Limits {
		if !l.known() || i >= len(states) {
			continue
		}
		st, booked, blocked := &states[i], c.booked[i], c.blocked[i]
		if st.Beyond > 0 {
			l.Usage.beyond.Add(s.now, uint32(st.Beyond))
			s.Done.WouldWait += int64(st.Beyond)
		}
		if l.rated() {
			s.learnRate(l, st, blocked)
			continue
		}
		again := false
		if l.PerGroup {
			l.ShownAt, l.unsaid = s.now, false
			l.standsBlocked(blocked)
			again = st.Restoring
		} else {
			// A shard that leaves the line may have kept more slots from those behind than it took.
			freer := l.unsaid || c.Stances[i].Held < l.Entry || l.short && blocked == 0
			s.learnSlots(l, st, c.Stances[i].Held+booked+st.Leased, booked, blocked)
			if again = l.Blocked == table.Restoring; l.others && !l.full && freer {
				freed = append(freed, l.Ref)
			}
		}
		if again && (l.restoreAt == 0 || s.now-l.restoreAt >= RestoreEvery) {
			restore = append(restore, l.Ref)
		}
	}
	return freed, restore
}

// learnSlots learns how a limit with slots stands after a call that booked some.
func (s *Limits) learnSlots(l *Limit, st *table.LimitState, entry, booked int, blocked table.BlockedWhy) {
	if l.Of != nil && l.unsaid {
		l.Of.ByGroup.unsaid--
	}
	waited := l.short
	l.Entry, l.unsaid, l.ShownAt = entry, false, s.now
	l.booked += booked
	l.others, l.full, l.used = st.Others, st.Used >= l.Max, st.Used
	l.standsBlocked(blocked)
	if l.auditAt == 0 && (l.full && len(l.Slots) > 0 || l.Blocked == table.Full) {
		l.auditAt = s.now + AuditEvery
	}
	if !l.short || booked > 0 {
		l.waiters.lackSince = 0
	} else if l.waiters.lackSince == 0 {
		l.waiters.lackSince = s.now
	}
	l.sawFull(st, waited, booked, s.now)
	lasts := LineEvery
	if len(l.Slots)+booked > 0 || l.Blocked != 0 { // the tables are asked again
		lasts = fullStale
	}
	saturated := l.Blocked != 0 && l.Blocked != table.Restoring || l.full && entry-booked <= len(l.Slots) // what was booked is not granted yet
	l.Usage.Saw(s.now, saturated, lasts)
	s.slacken(l)
	l.watch(s.now)
}

// NotMade has what a call said about limits said again; who was tried keeps its place.
func (s *Limits) NotMade(c *Call) {
	for _, l := range c.Limits {
		l.Again = false
		if l.known() && l.counted() {
			l.unsay()
			s.ReportSoon(l)
		}
	}
	for _, w := range c.Tried {
		w.limit.waiters.back(w)
	}
}

// GiveUp has those wait no more that a call tried, and that do not wait still.
func (c *Call) GiveUp() {
	for _, w := range c.Tried {
		if w.tried {
			w.limit.waiters.leave(w)
		}
	}
}

// StandDue has a call tell about the limits of a domain that are due.
func (d *Domain) StandDue(c *Call) {
	due := d.Due
	d.Due = nil
	for _, l := range due {
		switch {
		case !l.known(), l.rated() && l.unused == 0 && (!l.lined || l.waiters.any()): // of a rate only this is said: starts that come back, and that nothing waits in its line any more
			l.Due = false
		case l.Counting() && l.Of != nil: // the tables learn of it when it is counted
			l.Due = false
		case l.Counting() || l.Of != nil && c.groups >= groupsReportedMax:
			d.Due = append(d.Due, l)
		default:
			l.Due = false
			c.Stand(l)
		}
	}
}

// Stances is how the shard stands with the limits that a call tells about.
func (s *Limits) Stances(c *Call) []table.Stance {
	for _, l := range c.Limits {
		c.Stances = append(c.Stances, s.stance(l))
	}
	return c.Stances
}

// WaitInLine has the limits of a call wait with the most urgent of the tasklists that do.
func (c *Call) WaitInLine() {
	for _, l := range c.Limits {
		if w := l.waiters.mostUrgent(); w != nil {
			l.waitAt(w.priority)
		}
	}
}

// Ask has a call ask for n triggers of a column of a tasklist, and names its limits there. alone reports whether the rest of a chunk may be
// read ahead: no one else waits for these limits.
func (c *Call) Ask(l *List, p *Path, at *table.Candidate, n int) (alone bool) {
	alone = true
	grouped := at.Group != ""
	for _, lim := range p.asked() {
		if lim.rated() || lim.others || lim.waiters.others(l) { // their turn comes before that of the rest of a chunk
			alone = false
		}
		c.Stand(lim)
		at.Path = append(at.Path, lim.At)
		if !grouped || lim.Of != nil { // of groups others may have more of it
			lim.asked += n
		}
		lim.waitAt(at.Priority)
		c.try(lim.waiters.all[l])
	}
	return alone && !grouped
}

// standsBlocked takes in why a limit had no slot. One that was left out of the wants is blocked as it was before.
func (l *Limit) standsBlocked(blocked table.BlockedWhy) {
	if blocked != 0 {
		l.Blocked = blocked
	} else if l.Blocked == 0 {
		l.Wait = 0
	}
	l.short = l.Blocked != 0
}

// TryWaiters has a call take triggers for tasklists that wait for slots which may be free. Limits take turns. try has it take some of a tasklist; false
// if it takes nothing more of this one now. enough reports whether it takes nothing more at all.
func (d *Domain) TryWaiters(c *Call, enough func() bool, try func(l *List) bool) {
	var again []*Limit
	n := 0
	for all := len(d.waited); n < all && !enough(); n++ {
		lim := d.waited[n]
		begun := lim.waiters.turn
		for first := true; ; first = false {
			w, after := lim.waiters.next()
			if w == nil || lim.Closed() || c.asksAll(lim) || !try(w.list) {
				break
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
		} else if lim.known() && lim.In != c { // the tables think that somebody waits
			d.shard.ReportSoon(lim)
		}
	}
	d.waited = append(slices.Delete(d.waited, 0, n), again...)
}

// Pass reports whether a call takes nothing of a column that holds something. If a slot of some limit is wanting, it is waited for. more: it is
// left to the next call.
func (l *List) Pass(at table.Column, c *Call) (pass, more bool) {
	path, busy := l.TypePath(at.Type), func(lim *Limit) bool { return lim.Closed() || lim.waiters.before(l) }
	if lim := cmp.Or(path.Pause, path.meet(at, busy)); lim != nil {
		l.wait(lim, at.Priority)
		return true, false
	}
	if lim := cmp.Or(path.meet(at, c.asksAll), path.groupOf(at, c.asksAll)); lim != nil {
		lim.waitAt(at.Priority)
		return true, true
	}
	lim := path.groupOf(at, (*Limit).Closed)
	if lim != nil {
		l.domain.shard.park(lim, l, at)
	}
	return lim != nil, false
}

// stance is how the shard stands with a limit that a call is to name.
func (s *Limits) stance(l *Limit) table.Stance {
	keeps, asks := s.lease(l)
	l.booked = 0
	if l.rated() {
		st := table.Stance{Ref: l.Ref, Rate: l.Rate, Unused: l.unused, Shadow: l.Shadow}
		l.unused = 0
		return st
	}
	if l.PerGroup {
		return table.Stance{Ref: l.Ref, PerGroup: table.PerGroup{Count: l.ByGroup.count, Complete: l.complete()}}
	}
	st := table.Stance{Ref: l.Ref, Max: l.Max, Held: len(l.Slots) + keeps, Ask: asks, Wait: l.waiters.linePriority(l.Wait, s.now), Shadow: l.Shadow}
	if l.Shadow {
		st.Wait = 0
	}
	if l.Of != nil {
		st.Of = l.Of.At + 1
	}
	if len(l.Slots) > 0 {
		st.TTL = time.Duration(max(0, l.deadline-s.nowMS)) * time.Millisecond
	}
	return st
}
