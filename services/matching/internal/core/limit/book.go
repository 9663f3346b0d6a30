package limit

import (
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/lasthour"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Times, on the clock of the turn.
const (
	// UnusedMax is how old a start of a rate may be that is given back. So much later than the rate says may another attempt start with
	// it, as may one whose grab takes so long. A grab that is older may have been sent again: if its last copy is refused, an
	// earlier one may have been granted.
	UnusedMax = time.Second
	// SleepMax is for how long an idle shard sleeps.
	SleepMax = time.Minute
	// retryLimitEvery is how often a limit is tried of which entries are missing.
	retryLimitEvery = 250 * time.Millisecond
	// ReportAfter is how long the tables may count slots that are not in use any more, if no one waits for them.
	ReportAfter = 50 * time.Millisecond
	// LineEvery is how often a shard that waits for slots shows itself.
	LineEvery = time.Second
	// RefreshAfter is after how long a sweep shows slots in use again, so that they do not expire.
	RefreshAfter = 30 * time.Second
	// RestoreEvery bounds how often other shards are asked for their entries of a limit.
	RestoreEvery = time.Second
	// AuditSoon is when the attempts of a type are asked for again if some may be over without a message, auditEvery while its limit is
	// full, or they must all be over.
	AuditSoon, AuditEvery = time.Second, 30 * time.Second
)

const (
	// groupsReportedMax is how many limits of single groups one call tells about, besides those that it needs: 2 ms of Redis.
	groupsReportedMax = 512
	// groupsSweptMax is how many limits of single groups a sweep looks at, to show them to the tables again.
	groupsSweptMax = 256
)

// Catalog is what operators have set.
type Catalog interface {
	// GroupLimits are how many attempts of single groups may run at once, in each limit that counts them; the others have what the
	// limit says.
	GroupLimits(domain string) map[string]int
	// Strict reports whether of a tasklist a more urgent priority goes first, however long others wait.
	Strict(domain, tasklist string) bool
}

// Tasks is what limits ask of a tasklist.
type Tasks interface {
	// Look has its polls looked at: they may find something. Polled reports whether polls wait.
	Look()
	Polled() bool
	// Pair gives triggers that were read ahead to polls, with slots of a path. It returns those that are left.
	Pair(c table.Chunk, p *Path) (left []byte, given int)
	// PutBack has a chunk stored that was read ahead. Back brings a column back that was set aside.
	PutBack(c table.Chunk)
	Back(at table.Column)
}

// List is a tasklist as limits see it.
type List struct {
	table.Tasklist
	domain *Domain
	Index  *table.Index
	Tasks  Tasks
	// own are the limits of all its types, wide the path of those that no limit names; paths are those of others, as far
	// as they were needed.
	own   []*Limit
	wide  *Path
	paths map[string]*Path
	// Ahead counts the triggers read ahead, by type. waits counts the limits for whose slots it waits.
	Ahead map[string]int
	waits int
}

// NewList returns a tasklist of a domain.
func NewList(name table.Tasklist, d *Domain, index *table.Index, t Tasks) *List {
	l := &List{Tasklist: name, domain: d, Index: index, Tasks: t, Ahead: map[string]int{}}
	l.Repath()
	return l
}

// WaitsForSlot reports whether triggers of a tasklist wait for slots.
func (l *List) WaitsForSlot() bool { return l.waits > 0 || len(l.Ahead) > 0 }

// Down reports whether the tables of its domain did not answer the last time.
func (l *List) Down() bool { return l.domain.Down }

// Open reports whether the tables of its domain may be used.
func (l *List) Open() bool { return l.domain.Open }

// Domain is the limits of a domain.
type Domain struct {
	shard *Limits
	Name  string
	// Work has the tables of the domain called, if there is something to call them for.
	Work func()
	// Open: the tables may be used. Down: they did not answer the last time. Call is what the call under way says of limits; nil = none is.
	Open, Down bool
	Call       *Call
	// Limits by reference and in the order in which they were met. paths finds them by what they cover.
	Limits map[table.Ref]*Limit
	Met    []*Limit
	paths  paths
	// pauses are the last ones that are over.
	pauses []pause
	// Rings are the limits of single groups, some of which are looked at at a time.
	Rings [rings]ring
	// waited are limits for whose slots tasklists wait, due those to be reported.
	waited []*Limit
	Due    []*Limit
	// Forgotten: it is forgotten.
	Forgotten bool
}

func NewDomain(s *Limits, name string, work func()) *Domain {
	return &Domain{shard: s, Name: name, Work: work, Limits: map[table.Ref]*Limit{}}
}

// InUse reports whether forgetting the limits of a domain would lose something.
func (d *Domain) InUse() bool { return len(d.Due) > 0 || slices.ContainsFunc(d.Met, (*Limit).inUse) }

// Watchful reports whether something may become due before long.
func (d *Domain) Watchful() bool {
	return slices.ContainsFunc(d.Met, func(l *Limit) bool { return l.Wait > 0 || l.Blocked != 0 || l.auditAt != 0 })
}

// AuditNow has the attempts counted again of all limits that have some.
func (d *Domain) AuditNow(now time.Duration) {
	for _, l := range d.Met {
		if l.holding() > 0 {
			l.auditAt = now
		}
	}
}

// Restoring notes that other shards are asked for their entries of limits.
func (d *Domain) Restoring(refs []table.Ref, now time.Duration) {
	for _, ref := range refs {
		d.Limit(ref).restoreAt = now
	}
}

// Limits are those of all domains of a shard.
type Limits struct {
	catalog    Catalog
	partitions int
	// now is the time of the turn, nowMS the wall clock in Unix ms. Draining: the shard is given up.
	now      time.Duration
	nowMS    int64
	Draining bool
	Done     Counts
	// counted counts the counts of limits that count per group, aheadN the triggers read ahead.
	counted uint64
	aheadN  int
	// Slack are limits of which slots have become free, or the tables may count too many. Timed are those that are to be tried again, or
	// reported, at a time.
	Slack, Timed []*Limit
}

// Counts is what a turn has done: WouldWait counts attempts that limits in shadow would have held up, Audited slots that were freed since
// history did not know their attempts any more.
type Counts struct{ WouldWait, Audited int64 }

func New(catalog Catalog, partitions int) Limits {
	return Limits{catalog: catalog, partitions: partitions}
}

// Begin begins a turn.
func (s *Limits) Begin(now time.Duration, nowMS int64) {
	s.now, s.nowMS, s.Done = now, nowMS, Counts{}
}

// Meet takes up the limits of a domain that are new here. counted are those of which the attempts are to be counted; groups: one counts per group.
func (d *Domain) Meet(all []Setting) (counted []*Limit, groups bool) {
	for i := range all {
		if d.Limits[all[i].Ref] != nil {
			continue
		}
		l := &Limit{Setting: all[i], Domain: d, Usage: usage{Fullness: lasthour.Fullness{MetAt: d.shard.now}}}
		if l.PerGroup {
			l.ByGroup = &PerGroup{Limits: map[string]*Limit{}}
			groups = true
		}
		d.Limits[l.Ref] = l
		d.Met = append(d.Met, l)
		if l.rated() {
			l.Max = l.Rate.Burst
		}
		if l.counted() {
			l.Unknown, l.unsaid = d.shard.partitions, true
			counted = append(counted, l)
		}
	}
	d.paths = newPaths(d.Met)
	return counted, groups
}

// Recount forgets what is known of the attempts of the limits of a domain, and returns those limits.
func (d *Domain) Recount() (counted []*Limit) {
	for _, l := range d.Met {
		if l.Unknown == 0 && l.counted() {
			l.Unknown, l.unsaid = d.shard.partitions, true
			l.Domain.Unread(l)
			counted = append(counted, l)
		}
	}
	return counted
}

// Change takes over what operators have set of the limits that are known. gone are those that are no more, and had slots.
func (d *Domain) Change(all []Setting) (gone []table.Ref) {
	d.Met = slices.DeleteFunc(d.Met, func(l *Limit) bool {
		at, found := slices.BinarySearchFunc(all, l.Ref, func(a Setting, ref table.Ref) int { return strings.Compare(string(a.Ref), string(ref)) })
		if found && l.sameAs(&all[at]) {
			d.shard.resize(l, &all[at])
			return false
		}
		l.Domain.Unread(l)
		d.shard.unparkAll(l)
		l.InRing(ringOver, false)
		delete(d.Limits, l.Ref)
		if l.Paused {
			d.paused(l, d.shard.now)
		}
		if !found && l.counted() { // else its slots are those of the one that is met now
			gone = append(gone, l.Ref)
		}
		l.markWaiters()
		return true
	})
	return gone
}

// adopt counts a grab that is under way and that limits cover now. booked is what was booked for it.
func (l *List) AdoptGrab(at table.Column, m Member, booked []table.Ref) {
	for _, lim := range l.PathOf(at).limits {
		if !lim.Holds(m) {
			lim.hold(m, Holding{undecided: true, unbooked: !slices.Contains(booked, lim.Ref)})
		}
	}
}

// Restore has a limit set its entry, be it one of a group that is not known: the tables may think that the shard holds some.
func (d *Domain) Restore(ref table.Ref) {
	l := d.Limit(ref)
	if of, group, ok := ref.Group(); ok && l == nil && d.Limits[of] != nil {
		l = d.shard.groupLimit(d.Limits[of], group)
	}
	if l != nil {
		d.shard.ReportSoon(l)
	}
}

// Freed tries a limit again of which slots have become free.
func (d *Domain) Freed(ref table.Ref) {
	if l := d.Limit(ref); l != nil {
		d.shard.unblock(l)
	}
}

// End frees the slots of attempts of a type that are over: bookings of a path. Those that are not known hold none. The limit of the type
// may be newer than the attempts. Other limits that are find out by asking.
func (d *Domain) End(typ string, path []table.Ref, bookings []byte) {
	free := func(l *Limit) {
		for b := bookings; l != nil && len(b) > 0; b = b[len(Member{}):] {
			d.shard.release(l, Member(b[:len(Member{})]))
		}
	}
	byType := table.TypeRef(typ)
	free(d.Limits[byType])
	for _, ref := range path {
		if ref != byType {
			free(d.Limit(ref))
		}
	}
}

// Sweep has limits tried, or shown, again. It returns those of which the attempts are to be counted.
func (d *Domain) Sweep() (audit []*Limit) {
	s := d.shard
	for _, l := range d.Met {
		if l.Unknown > 0 {
			continue
		}
		s.sweepLimit(l)
		s.auditOverdue(l, l)
		if l.auditAt != 0 && s.now >= l.auditAt && l.auditLeft == 0 {
			audit = append(audit, l)
		}
	}
	return audit
}

// UnreadAll puts back what was read ahead in a domain.
func (d *Domain) UnreadAll() {
	for _, l := range d.Met {
		l.Domain.Unread(l)
	}
}

// Leave gives the shard up: what was read ahead goes back, and the tables learn of slots that are free.
func (d *Domain) Leave() {
	d.UnreadAll()
	for l := range d.each() {
		if l.Entry > len(l.Slots) {
			d.shard.ReportSoon(l)
		}
	}
}

// Wake is when something is due that no message brings about.
func (s *Limits) Wake(w time.Duration) time.Duration {
	for _, l := range s.Timed {
		w = min(w, l.at)
	}
	return w
}

// later has a limit tried again, or reported, at a time.
func (s *Limits) later(l *Limit, at time.Duration) {
	if l.at = at; !l.timed {
		l.timed = true
		s.Timed = append(s.Timed, l)
	}
}

// Ripen has rates tried again of which attempts may start now, and reports slots to the tables that have been free for a while.
func (s *Limits) Ripen() {
	s.Timed = slices.DeleteFunc(s.Timed, func(l *Limit) bool {
		due := l.known() && (l.rated() || l.Entry > len(l.Slots))
		if due && s.now < l.at {
			return false
		}
		switch l.timed = false; {
		case !due:
		case l.rated():
			s.unblock(l)
		default:
			s.ReportSoon(l)
		}
		return true
	})
}

// UsedSlots counts the slots of the attempts of a domain, what the tables know of them, and those for which nothing was booked.
func (d *Domain) UsedSlots() (slots, reported, unbooked int) {
	for _, l := range d.Met {
		slots += l.holding()
		reported += l.sum(func(one *Limit) int { return one.Entry })
		unbooked += l.notBooked()
	}
	return slots, reported, unbooked
}
