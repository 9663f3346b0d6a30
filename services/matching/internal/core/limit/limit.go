package limit

import (
	"encoding/binary"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/lasthour"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Limit is what a shard knows of one limit of a domain. One that is to cover other attempts is another one.
type Limit struct {
	Setting
	Domain *Domain
	slotState
	countState
	tableState
	waitState
	rateState
	// Ahead are triggers of the type that came without slots, in order: some, only while the limit is blocked.
	Ahead []Ahead
	// ByGroup is what it knows of single groups, if it counts per group. Or it is the limit of one group, of one that does.
	ByGroup *PerGroup
	Of      *Limit
	Group   string
	// Parked are the columns that wait for it, of one group; rings names its places in Domain.Rings, from 1.
	Parked []Parked
	rings  [rings]int
	// Over is what its policy knows.
	Over Overflow
	// Usage is how full it was, for people.
	Usage usage
	// At is its place among the stances of call In, asked how many triggers that asks for, at least.
	In    *Call
	At    int
	asked int
}

// slotState is the attempts that use slots.
type slotState struct {
	// Slots are those attempts, decided or not. unbooked counts those for which nothing was booked: they began before there was a limit.
	Slots    map[Member]Holding
	unbooked int
	// deadline is the last one known of them, Unix ms.
	deadline int64
	// slack: in Limits.Slack.
	slack bool
}

// countState is what is known of the counts of the attempts that run.
type countState struct {
	// Unknown counts partitions that have yet to report which attempts run. Until it is 0 nothing is said about the limit.
	Unknown int
	// auditAt is when to compare with history, 0 = no need. auditLeft counts the partitions that have not answered yet, round the audits.
	auditAt   time.Duration
	auditLeft int
	round     int
}

// tableState is what the tables know.
type tableState struct {
	// Entry is what the tables count for this shard; unsaid: that is not known.
	Entry  int
	unsaid bool
	// others: another shard waits, and slots are free for it. full: none is.
	others, full bool
	// used is how many slots all shards used then.
	used int
	// Due: in Domain.Due. timed: in Limits.Timed, until at.
	Due, timed bool
	at         time.Duration
	// ShownAt is when it was last reported to the tables, restoreAt to other shards.
	ShownAt, restoreAt time.Duration
	// booked counts the slots booked since the last report to the tables.
	booked int
}

// waitState is who waits for slots.
type waitState struct {
	// Wait is the priority of the most urgent trigger that waits here; 0 = none. waiters are the tasklists that wait; waited: in
	// Domain.waited.
	Wait    int
	waiters waiters
	waited  bool
	// Blocked says why no slot was to be had; 0 = it is worth asking. short: none was the last time.
	Blocked table.BlockedWhy
	short   bool
	// Again: something has become free since the call under way began.
	Again bool
}

// rateState is what is known of a rate.
type rateState struct {
	// unused counts the starts that are to be given back.
	unused int
	// lined: the shard stands in the line of the rate.
	lined bool
}

// Holding is one attempt that uses a slot.
type Holding struct {
	// since is when it was known to run.
	since time.Duration
	// undecided: it is a grab. unbooked: nothing was booked for it.
	undecided, unbooked bool
}

func (l *Limit) inUse() bool {
	return len(l.Slots) > 0 || l.ByGroup != nil && len(l.ByGroup.Limits) > 0 || l.Unknown > 0 || l.Wait > 0 || l.Blocked != 0 || l.auditLeft > 0 || len(l.Ahead) > 0
}

// hold counts an attempt that is not counted yet.
func (l *Limit) hold(m Member, h Holding) {
	if h.unbooked {
		l.unbooked++
	}
	if l.Slots == nil {
		l.Slots = map[Member]Holding{}
	}
	l.Slots[m] = h
}

// granted notes that an attempt runs.
func (l *Limit) granted(m Member, now time.Duration, deadlineMS int64) {
	if h, ok := l.Slots[m]; ok {
		h.since, h.undecided = now, false
		l.Slots[m] = h
		l.deadline = max(l.deadline, deadlineMS)
	}
}

// free forgets an attempt; false if it holds nothing.
func (l *Limit) free(m Member) bool {
	h, ok := l.Slots[m]
	if !ok {
		return false
	}
	if h.unbooked {
		l.unbooked--
	}
	delete(l.Slots, m)
	if len(l.Slots) == 0 {
		l.deadline = 0
	}
	return true
}

// waitAt notes that a trigger of a priority waits.
func (l *Limit) waitAt(priority int) {
	if l.Wait == 0 || priority < l.Wait {
		l.Wait = priority
	}
}

func (l *Limit) Holds(m Member) bool {
	_, ok := l.Slots[m]
	return ok
}

// resize takes over how much a limit allows now.
func (s *Limits) resize(l *Limit, now *Setting) {
	most := now.Max
	if l.rated() {
		most = now.Rate.Burst
	}
	if most != l.Max || now.Rate != l.Rate || now.Shadow != l.Shadow {
		l.Max, l.Rate, l.Shadow = most, now.Rate, now.Shadow
		s.unblock(l)
		l.Domain.Work() // it may be that it holds up no more what waits for it to be counted
	}
	l.OnFull, l.OnFullAfter = now.OnFull, now.OnFullAfter
	for one := range l.groups() {
		if most := s.groupMax(l, one.Group); most != one.Max {
			one.Max = most
			s.unblock(one)
		}
	}
}

// known tells whether l is a limit still.
func (l *Limit) known() bool {
	if l.Of != nil {
		return l.Of.ByGroup.Limits[l.Group] == l && l.Of.known()
	}
	return !l.Domain.Forgotten && l.Domain.Limits[l.Ref] == l
}

// Counting tells whether it is not known which attempts run.
func (l *Limit) Counting() bool { return l.Unknown > 0 || l.Of != nil && l.Of.Unknown > 0 }

// Scarce tells whether others may soon wait for a slot that comes free: half of them are in use.
func (l *Limit) Scarce() bool {
	if l.Of != nil { // it is small, and mostly its group has one shard only
		return l.others || l.Blocked != 0
	}
	return l.others || l.full || l.Blocked != 0 || l.waiters.any() || 2*max(l.used, len(l.Slots)) >= l.Max
}

// Closed reports whether no slot can be booked now.
func (l *Limit) Closed() bool { return l.Paused || !l.Shadow && (l.Counting() || l.Blocked != 0) }

// ReportSoon reports a limit to the tables as soon as it is known.
func (s *Limits) ReportSoon(l *Limit) {
	if !l.Due && !l.Paused && !(l.Of != nil && l.Counting()) { // the tables learn of those of groups when they are counted
		l.Due = true
		l.Domain.Due = append(l.Domain.Due, l)
	}
	l.Domain.Work()
}

// unblock has tasklists tried again that wait for slots, as many as there may be slots for. The answer of a call under way
// is out of date.
func (s *Limits) unblock(l *Limit) {
	if c := l.Domain.Call; c != nil && l.In == c {
		l.Again = true
		return
	}
	if l.Blocked == 0 && l.Wait == 0 {
		return
	}
	l.Blocked, l.Wait = 0, 0
	l.Domain.Unread(l)
	s.unpark(l)
	s.ReportSoon(l)
}

// UnblockAll does so for all limits of a domain, whose tables were away: nothing is known of what is full.
func (d *Domain) UnblockAll() {
	for l := range d.each() {
		d.shard.unblock(l)
		l.Over.FullAt = 0
	}
}

// release frees the slot of an attempt.
func (s *Limits) release(l *Limit, m Member) {
	if l.free(m) {
		s.slacken(l)
	}
}

// slacken has a limit looked at of which slots may be free.
func (s *Limits) slacken(l *Limit) {
	if !l.slack {
		l.slack = true
		s.Slack = append(s.Slack, l)
	}
}

// TakeUpSlack uses slots again that have become free. The tables do not count them for long: they learn of them at once where somebody waits, else
// when the chance comes, or after a while.
func (s *Limits) TakeUpSlack() {
	for _, l := range s.Slack {
		l.slack = false
		if !l.known() {
			continue
		}
		if s.reuse(l); l.inCall() { // its outcome is out of date, and will be found so
			continue
		}
		if l.Again || l.Entry > len(l.Slots) || l.unsaid { // what blocked it is out of date
			l.Again = false
			s.unblock(l)
		}
		switch {
		case l.Entry <= len(l.Slots):
			l.forgetGroup()
		case l.others:
			s.ReportSoon(l)
		case !l.timed:
			s.later(l, s.now+ReportAfter)
		}
	}
	clear(s.Slack)
	s.Slack = s.Slack[:0]
}

// sweepLimit has a limit tried, or shown, again.
func (s *Limits) sweepLimit(l *Limit) {
	since := s.now - l.ShownAt
	switch {
	case l.rated() && !l.lined: // it says itself when it is looked at again
	case !l.Domain.Open: // also while a call is under way: in a busy domain one always is
	case l.Blocked == table.Restoring && since >= retryLimitEvery, (l.Blocked != 0 || l.Wait > 0) && since >= LineEvery:
		s.unblock(l)
	case len(l.Slots) > 0 && since >= RefreshAfter:
		s.ReportSoon(l)
	}
}

// Member names one attempt in a limit.
type Member [ids.BookingBytes]byte

func MemberOf(t ids.Trigger) Member {
	var m Member
	copy(m[:], t.ID[:])
	binary.BigEndian.PutUint32(m[len(t.ID):], t.Version)
	return m
}

// partition is the history partition of the attempt.
func (m Member) partition() int { return ids.TaskID(m[:16]).Partition() }

// fullStale is for how long a limit counts as full that the tables said to be, while the shard holds or wants slots of it: it
// asks again within, also if it sleeps between two sweeps. Else it counts for lineEvery.
const fullStale = RefreshAfter + SleepMax + LineEvery

// usage is how full a limit was in the last hour, as the tables said so. It takes no decision, and is lost with the owner.
type usage struct {
	lasthour.Fullness
	// beyond counts the attempts that a limit in shadow would have held up.
	beyond lasthour.Count[uint32]
	// Rejected counts tasks, displaced attempts, that its policy ended.
	Rejected, Displaced lasthour.Count[uint32]
	// reclaimed counts slots that were freed since history did not know their attempts any more.
	reclaimed int64
}

// A rate is a limit without slots: nothing is held, counted or given back. The tables keep one number for all shards, by which they say when
// the attempt may start that is next; one may use several starts. Until then tasklists wait for it as for a slot; then it is tried for the first of them. Starts that a call took for
// attempts that did not begin are given back.

// rateRest is how long a shard waits for more starts than one, so that a call is not made for each: at most half of a burst, which is not lost.
const rateRest = 10 * time.Millisecond

// Unstart gives back starts that were taken at a time: what they were for is stale, a duplicate, or goes back.
func (s *Limits) Unstart(rates []*Limit, starts int, at time.Duration) {
	if s.now-at >= UnusedMax {
		return
	}
	for _, l := range rates {
		if !l.Shadow && l.known() {
			l.unused += starts
			s.unblock(l)
			s.ReportSoon(l)
		}
	}
}

// learnRate learns how a rate stands after a call.
func (s *Limits) learnRate(l *Limit, st *table.LimitState, blocked table.BlockedWhy) {
	l.ShownAt, l.lined = s.now, st.Waits
	l.Usage.Saw(s.now, blocked != 0 || st.Beyond > 0, fullStale)
	if l.short = blocked != 0; !l.short {
		if l.Blocked == 0 {
			l.Wait = 0
		}
	} else {
		l.Blocked = blocked
		rest := min(rateRest, time.Duration(l.Rate.EveryUS*float64(l.Rate.Burst)/2)*time.Microsecond)
		s.later(l, s.now+max(st.After, rest))
	}
	if l.Again {
		l.Again = false
		s.unblock(l)
	}
}

// Overflow is what is known of a limit that has a policy.
type Overflow struct {
	// FullAt is since when it is full, as each call about it said; 0 = it is not.
	FullAt time.Duration
	// At is when it may act again.
	At time.Duration
	// Wanted: a call is to take triggers that are to be rejected.
	Wanted bool
}

// Policy is what a limit does that is full.
func (l *Limit) Policy() OnFull {
	switch {
	case l.Of != nil:
		return l.Of.OnFull
	case !l.counted() || l.Shadow:
		return Wait
	}
	return l.OnFull
}

// Patience is how long a trigger waits until the policy acts.
func (l *Limit) Patience() time.Duration {
	if l.Of != nil {
		return l.Of.OnFullAfter
	}
	return l.OnFullAfter
}

// sawFull notes what a call says about a limit that has a policy. waited: triggers waited for it before; booked: some got slots. If
// none did, nothing tells whether it was full all the time.
func (l *Limit) sawFull(st *table.LimitState, waited bool, booked int, now time.Duration) {
	if l.Policy() == Wait {
		l.Over = Overflow{}
		l.InRing(ringOver, false)
		return
	}
	switch full := st.Used >= l.Max && !st.Restoring && !l.Counting(); {
	case !full:
		l.Over.FullAt = 0
	case l.Over.FullAt == 0 || booked > 0 && !waited:
		l.Over.FullAt = now
	}
	if l.Over.FullAt == 0 || l.Blocked == table.Full {
		l.InRing(ringOver, l.Over.FullAt > 0)
	}
}

// Overflows tells whether the policy of a limit may act now.
func (l *Limit) Overflows(now time.Duration) bool {
	return l.Policy() != Wait && l.Blocked == table.Full && l.Over.FullAt > 0 && now-l.Over.FullAt >= l.Patience() && l.known() && !l.Counting()
}

// NextFull are the next n limits whose policy may come to act.
func (d *Domain) NextFull(n int) []*Limit { return d.Rings[ringOver].next(n) }

// Ended counts a task that a limit's policy rejected, or an attempt that it displaced.
func (l *Limit) Ended(displaced bool, now time.Duration) {
	of := l
	if l.Of != nil {
		of = l.Of
	}
	if displaced {
		of.Usage.Displaced.Add(now, 1)
	} else {
		of.Usage.Rejected.Add(now, 1)
	}
}

// auditOverdue looks for the slots of a limit whose attempts must all be over: a release was lost, and no one waits for a slot, which
// would find it. They are those of a limit that is asked for, which is the same, or counts per group.
func (s *Limits) auditOverdue(l, of *Limit) {
	if of.auditAt == 0 && len(l.Slots) > 0 && l.deadline > 0 && s.nowMS > l.deadline {
		of.auditAt = s.now + AuditEvery
	}
}

// inCall tells whether a call is under way that names l.
func (l *Limit) inCall() bool { return l.Domain.Call != nil && l.In == l.Domain.Call }
