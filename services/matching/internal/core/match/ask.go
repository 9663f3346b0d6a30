package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// subject is what a question is about.
type subject struct {
	// types and holders are asked for.
	types   []string
	holders []HoldersQuery
	// limits are those of AskRunning, rounds which count of each it is for; adopt: what is not known here is counted.
	limits []*limit
	rounds []int
	adopt  bool
	// after is the last batch of grabs that must be decided before: it may hold tasks of groups that are not known.
	after uint64
	// round is that of AskHolders.
	round *round
}

type asked = question.Question[subject]

// retrigger has all triggers of a domain sent again, or of all domains.
func (s *Shard) retrigger(partition int, domain string) {
	s.questions.AddOnce(asked{Kind: AskRetrigger, Partition: partition, Domain: domain})
}

// pointless tells whether all limits are no more that a count is for, or are counted again since.
func (a *subject) pointless() bool {
	for i := range a.limits {
		if a.about(i) {
			return false
		}
	}
	return true
}

// about tells whether a question is still about the i-th of its limits.
func (a *subject) about(i int) bool { return a.limits[i].known() && a.limits[i].round == a.rounds[i] }

// ask asks what is due. Counts must be asked for behind the fence.
func (s *Shard) ask() {
	for _, q := range s.questions.Due(s.now.Mono, func(q *asked) (drop, ready bool) {
		lane := s.lanes[q.Partition]
		return q.Kind == AskRunning && q.About.pointless(), lane.open && !lane.grabbedUpTo(q.About.after)
	}) {
		s.fx.Asks = append(s.fx.Asks, Ask{
			ID: q.ID, Kind: q.Kind, Partition: q.Partition, Domain: q.Domain, Types: q.About.types, Holders: q.About.holders,
		})
	}
}

// answered takes in what history answered.
func (s *Shard) answered(o *AskOutcome) {
	q := s.questions.Open(o.Ask.ID)
	if q == nil {
		return
	}
	if o.Overtaken {
		s.overtaken = true
		return
	}
	if !s.questions.End(q, o.Failed, s.now.Mono) {
		return
	}
	switch q.Kind {
	case AskBookings:
		s.booked(o.Held)
	case AskUndelivered:
		s.start.undelivered(o.Undelivered, s.lanes)
	case AskRunning:
		s.running(q, o.Held)
	case AskHolders:
		s.heldBy(q, o.Holders)
	}
}

// booked learns of the domains in which owners before this have booked: the entries of their limits are
// this owner's now.
func (s *Shard) booked(held []Held) {
	seen := map[string]bool{}
	for i := range held {
		name := held[i].Domain
		if seen[name] {
			continue
		}
		if seen[name] = true; s.domains[name] == nil && len(s.catalog.Limits(name)) > 0 {
			s.domain(name)
		}
	}
}

// audit asks which attempts run that limits cover. If adopt is set, those that are not
// known here are counted.
func (s *Shard) audit(d *domain, limits []*limit, adopt bool) {
	limits = slices.DeleteFunc(slices.Clone(limits), func(l *limit) bool { return !l.counted() })
	if len(limits) == 0 {
		return
	}
	var types []string
	var full []table.Ref
	var rounds []int
	wide := false
	perGroup := false
	for _, l := range limits {
		perGroup = perGroup || l.PerGroup
		l.round++
		rounds = append(rounds, l.round)
		types = append(types, l.Types...)
		wide = wide || len(l.Types) == 0
		l.auditing, l.auditLeft = true, len(s.lanes)
		if l.blocked == table.Full && !adopt {
			full = append(full, l.Ref)
		}
		if !adopt {
			full = append(full, l.heldUp()...)
		}
	}
	if wide { // of all types
		types = nil
	}
	slices.Sort(types)
	types = slices.Compact(types)
	s.askForEntries(d, full) // other shards' may be too high
	for p, lane := range s.lanes {
		about := subject{types: types, limits: limits, rounds: rounds, adopt: adopt}
		if adopt && perGroup {
			about.after = lane.number
		}
		s.questions.Add(asked{Kind: AskRunning, Partition: p, Domain: d.name, About: about})
	}
}

// auditAll looks for slots whose release may have been lost.
func (s *Shard) auditAll() {
	for _, d := range s.inOrder {
		for _, l := range d.met {
			if l.holding() > 0 {
				l.auditAt = s.now.Mono
			}
		}
	}
	s.sweepAt = s.now.Mono
}

// auditOverdue looks for the slots of a limit whose attempts must all be over: a release was lost, and no one waits for a slot, which
// would find it. They are those of a limit that is asked for, which is the same, or counts per group.
func (s *Shard) auditOverdue(l, of *limit) {
	if of.auditAt == 0 && len(l.held) > 0 && l.deadline > 0 && s.now.MS > l.deadline {
		of.auditAt = s.now.Mono + auditEvery
	}
}

// running compares what runs in a partition with what is counted here.
func (s *Shard) running(q *asked, held []Held) {
	runs := make(map[*limit]map[member]bool, len(q.About.limits))
	var still []*limit
	for i, l := range q.About.limits {
		if q.About.about(i) {
			runs[l], still = map[member]bool{}, append(still, l)
		}
	}
	limits := newPaths(still)
	for i := range held {
		h := &held[i]
		if len(h.Member) != ids.BookingBytes {
			s.fx.Counts.Malformed++
			continue
		}
		m := member([]byte(h.Member))
		for l := range limits.covering(h.Tasklist, h.Type) {
			if l.PerGroup && h.Group == "" {
				continue
			}
			runs[l][m] = true
			if l.holds(m) { // an update may have moved it
				l.deadline = max(l.deadline, h.DeadlineMS)
			}
			if q.About.adopt && l.PerGroup {
				s.groupLimit(l, h.Group).adopt(h, m, s.now.Mono)
			} else if q.About.adopt {
				l.adopt(h, m, s.now.Mono)
			}
		}
	}
	for _, l := range still {
		s.reclaim(l, q, runs[l])
		for one := range l.groups() {
			s.reclaim(one, q, runs[l])
		}
		s.audited(l, q.About.adopt)
	}
}

// reclaim frees the slots of attempts that are not among those that run.
func (s *Shard) reclaim(l *limit, q *asked, runs map[member]bool) {
	for m, h := range l.held {
		if m.partition() == q.Partition && !h.undecided && h.since < q.AskedAt && !runs[m] {
			s.fx.Counts.Audited++
			if !h.unbooked { // of the end of others nothing tells
				l.usage.reclaimed++
			}
			s.release(l, m)
		}
	}
}

// adopt counts an attempt that this owner has not granted.
func (l *limit) adopt(h *Held, m member, now time.Duration) {
	l.deadline = max(l.deadline, h.DeadlineMS)
	if one, ok := l.held[m]; !ok {
		l.hold(m, holding{since: now, unbooked: !slices.Contains(h.Path, l.Ref)})
	} else if one.undecided { // it runs, whatever becomes of the grab
		one.since, one.undecided = now, false
		l.held[m] = one
	}
}

// audited notes that a partition has reported about a limit.
func (s *Shard) audited(l *limit, adopt bool) {
	l.auditLeft--
	l.unknown = min(l.unknown, l.auditLeft)
	if l.auditLeft > 0 {
		return
	}
	l.auditing = false
	if adopt {
		s.tellGroups(l)
		s.dueLimit(l) // the entry of the owner before may be too high, and what was found is not in it
	}
	switch {
	case adopt && l.holding() > 0, l.notBooked() > 0:
		l.auditAt = s.now.Mono + auditSoon
	case l.full && len(l.held) > 0 || l.blocked != 0 || l.anyBlocked():
		l.auditAt = s.now.Mono + auditEvery
	default:
		l.auditAt = 0
	}
}
