package match

import (
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/lasthour"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// limit is what a shard knows of one limit of a domain. One that is to cover other attempts is another one.
type limit struct {
	Limit
	domain *domain
	// held are the attempts that use slots, decided or not. unbooked counts those for which
	// nothing was booked: they began before there was a limit.
	held     map[member]holding
	unbooked int
	// unknown counts partitions that have yet to tell which attempts run. Until it is 0 nothing
	// is said about the limit.
	unknown int
	// entry is what the tables count for this shard; unsaid: that is not known.
	entry  int
	unsaid bool
	// wait is the priority of the most urgent trigger that waits here; 0 = none. waiters are the
	// tasklists that wait; waited: in domain.waited.
	wait    int
	waiters waiters
	waited  bool
	// blocked says why no slot was to be had; 0 = it is worth asking. short: none was the last
	// time.
	blocked table.BlockedWhy
	short   bool
	// again: something has become free since the call under way began.
	again bool
	// others: another shard waits, and slots are free for it. full: none is.
	others, full bool
	// used is how many slots all shards held then.
	used int
	// due: in domain.due. telling: in turn.telling, until tellAt.
	due, telling bool
	tellAt       time.Duration
	// shownAt is when it was last reported to the tables, restoreAt to other shards.
	shownAt, restoreAt time.Duration
	// deadline is the last one known of its attempts, Unix ms.
	deadline int64
	// auditAt is when to compare with history, 0 = no need; auditing: it is under way.
	// auditLeft counts the partitions that have not answered, round the audits.
	auditAt   time.Duration
	auditing  bool
	auditLeft int
	round     int
	// ahead are triggers of the type that came without slots, in order: some, only while the limit is blocked.
	ahead []ahead
	// perGroup is what it knows of single groups, if it counts per group. Or it is the limit of one group, of one that does.
	perGroup *perGroup
	of       *limit
	group    string
	// parked are the columns that wait for it, of one group; rings tell its places in domain.rings, from 1.
	parked []parked
	rings  [rings]int
	// booked counts the slots booked since the last report to the tables.
	booked int
	// unused counts the starts of a rate that are to be given back.
	unused int
	// slack: in turn.slack. ripens: in turn.ripening; of a rate, the next attempt may start at freeAt.
	// lined: the shard stands in the line of a rate.
	slack, ripens, lined bool
	freeAt               time.Duration
	// over is what its policy knows.
	over overflow
	// usage is how full it was, for people.
	usage usage
	// at is its place among the stances of call in, asked how many triggers that asks for, at least.
	in    *call
	at    int
	asked int
}

// holding is one attempt that uses a slot.
type holding struct {
	// since is when it was known to run.
	since time.Duration
	// undecided: it is a grab. unbooked: nothing was booked for it.
	undecided, unbooked bool
}

func (l *limit) inUse() bool {
	return len(l.held) > 0 || l.perGroup != nil && len(l.perGroup.limits) > 0 || l.unknown > 0 || l.wait > 0 || l.blocked != 0 || l.auditing || len(l.ahead) > 0
}

// hold counts an attempt that is not counted yet.
func (l *limit) hold(m member, h holding) {
	if h.unbooked {
		l.unbooked++
	}
	if l.held == nil {
		l.held = map[member]holding{}
	}
	l.held[m] = h
}

// granted notes that an attempt runs.
func (l *limit) granted(m member, now Now, deadlineMS int64) {
	if h, ok := l.held[m]; ok {
		h.since, h.undecided = now.Mono, false
		l.held[m] = h
		l.deadline = max(l.deadline, deadlineMS)
	}
}

// free forgets an attempt; false if it holds nothing.
func (l *limit) free(m member) bool {
	h, ok := l.held[m]
	if !ok {
		return false
	}
	if h.unbooked {
		l.unbooked--
	}
	delete(l.held, m)
	if len(l.held) == 0 {
		l.deadline = 0
	}
	return true
}

// waitAt notes that a trigger of a priority waits.
func (l *limit) waitAt(priority int) {
	if l.wait == 0 || priority < l.wait {
		l.wait = priority
	}
}

// stance is how the shard stands with a limit that a call is to name.
func (s *Shard) stance(l *limit) table.Stance {
	keeps, asks := s.lease(l)
	l.booked = 0
	if l.rated() {
		st := table.Stance{Ref: l.Ref, Rate: l.Rate, Unused: l.unused, Shadow: l.Shadow}
		l.unused = 0
		return st
	}
	if l.PerGroup {
		return table.Stance{Ref: l.Ref, PerGroup: table.PerGroup{Count: l.perGroup.count, Complete: l.complete()}}
	}
	st := table.Stance{Ref: l.Ref, Max: l.Max, Held: len(l.held) + keeps, Ask: asks, Wait: l.waiters.linePriority(l.wait, s.now.Mono), Shadow: l.Shadow}
	if l.Shadow {
		st.Wait = 0
	}
	if l.of != nil {
		st.Of = l.of.at + 1
	}
	if len(l.held) > 0 {
		st.TTL = time.Duration(max(0, l.deadline-s.now.MS)) * time.Millisecond
	}
	return st
}

// meetLimits counts the attempts that the limits of a domain cover which are new here.
func (s *Shard) meetLimits(d *domain, all []Limit) []*limit {
	var met []*limit
	groups := false
	for i := range all {
		if d.limits[all[i].Ref] != nil {
			continue
		}
		l := &limit{Limit: all[i], domain: d, held: map[member]holding{}, usage: usage{Fullness: lasthour.Fullness{MetAt: s.now.Mono}}}
		if l.PerGroup {
			l.perGroup = &perGroup{limits: map[string]*limit{}}
			groups = true
		}
		d.limits[l.Ref] = l
		d.met = append(d.met, l)
		if l.rated() {
			l.Max = l.Rate.Burst
		}
		if l.counted() {
			l.unknown, l.unsaid = len(s.lanes), true
			met = append(met, l)
		}
	}
	d.paths = newPaths(d.met)
	for _, l := range d.lists {
		l.repath()
	}
	if groups {
		s.regroup(d)
	}
	if len(met) == 0 {
		return nil
	}
	for _, lane := range s.lanes { // what is under way may come to run
		for i := range lane.gather {
			s.adoptGrab(d, &lane.gather[i])
		}
		for _, b := range lane.flight {
			for i := range b.grabs {
				s.adoptGrab(d, &b.grabs[i])
			}
		}
	}
	s.audit(d, met, true)
	return met
}

// recountAll counts the attempts of all limits of a domain whose tables have lost their memory, before it tells them of any: if a newer owner
// serves the shard, history says so. The tables cannot, and would take what this one says for all that the shard uses.
func (s *Shard) recountAll(d *domain) {
	var counted []*limit
	for _, l := range d.met {
		if l.unknown == 0 && l.counted() {
			l.unknown, l.unsaid = len(s.lanes), true
			s.unread(l)
			counted = append(counted, l)
		}
	}
	s.audit(d, counted, true)
}

// adoptGrab counts a grab that limits cover now.
func (s *Shard) adoptGrab(d *domain, g *grab) {
	if g.decided || g.from.list.domain != d {
		return
	}
	m := memberOf(g.trigger)
	for _, l := range s.pathOf(g.from.list, g.from.Column).limits {
		if !l.holds(m) {
			l.hold(m, holding{undecided: true, unbooked: !slices.Contains(g.from.path, l.Ref)})
		}
	}
}

func (l *limit) holds(m member) bool {
	_, ok := l.held[m]
	return ok
}

// limitsChanged takes over what operators have set.
func (s *Shard) limitsChanged(name string) {
	all := s.catalog.Limits(name)
	d := s.domains[name]
	if d == nil {
		if len(all) == 0 {
			return
		}
		for _, l := range s.domain(name).met {
			s.dueLimit(l)
		}
		return
	}
	d.met = slices.DeleteFunc(d.met, func(l *limit) bool {
		at, found := slices.BinarySearchFunc(all, l.Ref, func(a Limit, ref table.Ref) int { return strings.Compare(string(a.Ref), string(ref)) })
		if found && l.sameAs(&all[at]) {
			s.resize(l, &all[at])
			return false
		}
		s.unread(l)
		s.unparkAll(l)
		d.rings[ringOver].remove(l, ringOver)
		delete(d.limits, l.Ref)
		if !found && l.counted() { // else its slots are those of the one that is met now
			s.fx.Drops = append(s.fx.Drops, LimitHint{name, []table.Ref{l.Ref}})
		}
		s.markWaiters(l)
		return true
	})
	for _, l := range s.meetLimits(d, all) {
		s.dueLimit(l)
	}
	s.withhold(d)
}

// resize takes over how much a limit allows now.
func (s *Shard) resize(l *limit, now *Limit) {
	most := now.Max
	if l.rated() {
		most = now.Rate.Burst
	}
	if most != l.Max || now.Rate != l.Rate || now.Shadow != l.Shadow {
		l.Max, l.Rate, l.Shadow = most, now.Rate, now.Shadow
		s.unblock(l)
		s.work(l.domain) // it may be that it holds up no more what waits for it to be counted
	}
	l.OnFull, l.OnFullAfter = now.OnFull, now.OnFullAfter
	if l.PerGroup {
		s.resizeGroups(l)
	}
}

// known tells whether l is a limit still.
func (l *limit) known() bool {
	if l.of != nil {
		return l.of.perGroup.limits[l.group] == l && l.of.known()
	}
	return !l.domain.gone && l.domain.limits[l.Ref] == l
}

// counting tells whether it is not known which attempts run.
func (l *limit) counting() bool { return l.unknown > 0 || l.of != nil && l.of.unknown > 0 }

// scarce tells whether others may soon wait for a slot that comes free: half of them are in use.
func (l *limit) scarce() bool {
	if l.of != nil { // it is small, and mostly its group has one shard only
		return l.others || l.blocked != 0
	}
	return l.others || l.full || l.blocked != 0 || l.waiters.any() || 2*max(l.used, len(l.held)) >= l.Max
}

// closed reports whether no slot can be booked now.
func (l *limit) closed() bool { return l.Paused || !l.Shadow && (l.counting() || l.blocked != 0) }

// dueLimit reports a limit to the tables as soon as it is known.
func (s *Shard) dueLimit(l *limit) {
	if !l.due && !l.Paused && !(l.of != nil && l.counting()) { // the tables learn of those of groups when they are counted
		l.due = true
		l.domain.due = append(l.domain.due, l)
	}
	s.work(l.domain)
}

// unblock has tasklists tried again that wait for slots, as many as there may be slots for. The answer of a call under way
// is out of date.
func (s *Shard) unblock(l *limit) {
	if c := l.domain.call; c != nil && l.in == c {
		l.again = true
		return
	}
	if l.blocked == 0 && l.wait == 0 {
		return
	}
	l.blocked, l.wait = 0, 0
	s.unread(l)
	s.unpark(l)
	s.dueLimit(l)
}

// unblockAll does so for all limits of a domain, whose tables were away: nothing is known of what is full.
func (s *Shard) unblockAll(d *domain) {
	for _, l := range d.met {
		s.unblock(l)
		l.over.fullAt = 0
		for one := range l.groups() {
			s.unblock(one)
			one.over.fullAt = 0
		}
	}
}

// release frees the slot of an attempt.
func (s *Shard) release(l *limit, m member) {
	if l.free(m) && !l.slack {
		l.slack = true
		s.slack = append(s.slack, l)
	}
}

// takeUpSlack uses slots again that have become free, or has the tables know.
func (s *Shard) takeUpSlack() {
	for _, l := range s.slack {
		l.slack = false
		if !l.known() {
			continue
		}
		s.forgetGroup(l)
		s.reuse(l)
		if l.inCall() { // its outcome is out of date, and will be found so
			continue
		}
		if l.entry > len(l.held) || l.unsaid {
			s.unblock(l)
		}
		s.reportFree(l)
	}
	clear(s.slack)
	s.slack = s.slack[:0]
}

// reportFree sees to it that the tables do not count slots for long that are free: at once where
// somebody waits, else when the chance comes, or after a while.
func (s *Shard) reportFree(l *limit) {
	s.reuse(l)
	if l.again || l.blocked != 0 && l.entry > len(l.held) { // what blocked it is out of date
		l.again = false
		s.unblock(l)
	}
	switch {
	case l.entry <= len(l.held):
	case l.others:
		s.dueLimit(l)
	case !l.telling:
		l.telling, l.tellAt = true, s.now.Mono+tellAfter
		s.telling = append(s.telling, l)
	}
}

// tell reports to the tables what they have not received for a while.
func (s *Shard) tell() {
	s.telling = slices.DeleteFunc(s.telling, func(l *limit) bool {
		gone := !l.known() || l.entry <= len(l.held)
		if !gone && s.now.Mono < l.tellAt {
			return false
		}
		if l.telling = false; !gone {
			s.dueLimit(l)
		}
		return true
	})
}

// sweepLimit has a limit tried, or shown, again.
func (s *Shard) sweepLimit(l *limit) {
	since := s.now.Mono - l.shownAt
	switch {
	case l.rated() && !l.lined: // it says itself when it is looked at again
	case l.domain.state != open: // also while a call is under way: in a busy domain one always is
	case l.blocked == table.Restoring && since >= retryEvery, (l.blocked != 0 || l.wait > 0) && since >= lineEvery:
		s.unblock(l)
	case len(l.held) > 0 && since >= refreshAfter:
		s.dueLimit(l)
	}
}

// freed tries limits again of which slots have become free.
func (s *Shard) freed(h *LimitHint) {
	if d := s.domains[h.Domain]; d != nil {
		for _, ref := range h.Limits {
			if l := d.limit(ref); l != nil {
				s.unblock(l)
			}
		}
	}
}

// restore sets the entries of limits that lack some.
func (s *Shard) restore(h *LimitHint) {
	d := s.domains[h.Domain]
	if d == nil {
		if len(s.catalog.Limits(h.Domain)) == 0 {
			return
		}
		d = s.domain(h.Domain)
	}
	for _, ref := range h.Limits {
		l := d.limit(ref)
		if of, group, ok := ref.Group(); ok && l == nil && d.limits[of] != nil {
			l = s.groupLimit(d.limits[of], group) // the tables may think that the shard holds some
		}
		if l != nil {
			s.dueLimit(l)
		}
	}
}

// releaseAll counts the slots of attempts that are over. Those that it does not know
// hold none.
func (s *Shard) releaseAll(r *Release) {
	d := s.domains[r.Domain]
	if d == nil {
		// The previous owner may have reported them to the tables.
		if len(s.catalog.Limits(r.Domain)) == 0 {
			return
		}
		d = s.domain(r.Domain)
		for _, ref := range r.Path {
			if l := d.limit(ref); l != nil { // operators may change it any time
				s.dueLimit(l)
			}
		}
	}
	free := func(l *limit) {
		for b := r.Bookings; l != nil && len(b) > 0; b = b[len(member{}):] {
			s.release(l, member(b[:len(member{})]))
		}
	}
	// The limit of the type may be newer than the attempts. Other limits that are find out by asking.
	byType := table.TypeRef(r.Type)
	free(d.limits[byType])
	for _, ref := range r.Path {
		if ref != byType {
			free(d.limit(ref))
		}
	}
}
