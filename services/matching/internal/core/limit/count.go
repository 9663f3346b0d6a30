package limit

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Audit is a question which attempts run that limits cover.
type Audit struct {
	shard *Limits
	// limits are those that it is for, rounds which count of each it is; adopt: what is not known here is counted.
	limits []*Limit
	rounds []int
	adopt  bool
}

// Pointless reports whether all limits are no more that a count is for, or are counted again since.
func (c *Audit) Pointless() bool {
	for i := range c.limits {
		if c.about(i) {
			return false
		}
	}
	return true
}

// about reports whether a count is still about the i-th of its limits.
func (c *Audit) about(i int) bool { return c.limits[i].known() && c.limits[i].round == c.rounds[i] }

// Empty reports whether a count is about no limit.
func (c *Audit) Empty() bool { return len(c.limits) == 0 }

// CountsGroups reports whether a count needs to know the groups of attempts.
func (c *Audit) CountsGroups() bool {
	return slices.ContainsFunc(c.limits, func(l *Limit) bool { return l.PerGroup })
}

// BeginCount begins to count some limits again in all partitions. types are those of the attempts; none = all. restore are limits of which
// other shards are to set their entries.
func (s *Limits) BeginCount(all []*Limit, adopt bool) (c *Audit, types []string, restore []table.Ref) {
	c = &Audit{shard: s, adopt: adopt}
	wide := false
	for _, l := range all {
		if !l.counted() {
			continue
		}
		l.round++
		c.limits, c.rounds = append(c.limits, l), append(c.rounds, l.round)
		types = append(types, l.Types...)
		wide = wide || len(l.Types) == 0
		l.auditLeft = s.partitions
		if l.Blocked == table.Full && !adopt { // other shards' may be too high
			restore = append(restore, l.Ref)
		}
		if !adopt {
			restore = append(restore, l.blockedByOthers()...)
		}
	}
	if wide {
		return c, nil, restore
	}
	slices.Sort(types)
	return c, slices.Compact(types), restore
}

// Learn compares what runs in a partition, asked for at an instant, with what is counted here. malformed counts attempts without a name.
func (c *Audit) Learn(partition int, askedAt time.Duration, held []Running) (malformed int64) {
	s := c.shard
	runs := make(map[*Limit]map[Member]bool, len(c.limits))
	var still []*Limit
	for i, l := range c.limits {
		if c.about(i) {
			runs[l], still = map[Member]bool{}, append(still, l)
		}
	}
	covers := newPaths(still)
	for i := range held {
		h := &held[i]
		if len(h.Member) != ids.BookingBytes {
			malformed++
			continue
		}
		m := Member([]byte(h.Member))
		for l := range covers.covering(h.Tasklist, h.Type) {
			if l.PerGroup && h.Group == "" {
				continue
			}
			runs[l][m] = true
			if l.Holds(m) { // an update may have moved it
				l.deadline = max(l.deadline, h.DeadlineMS)
			}
			if c.adopt && l.PerGroup {
				s.groupLimit(l, h.Group).adopt(h, m, s.now)
			} else if c.adopt {
				l.adopt(h, m, s.now)
			}
		}
	}
	for _, l := range still {
		c.reclaim(l, partition, askedAt, runs[l])
		for one := range l.groups() {
			c.reclaim(one, partition, askedAt, runs[l])
		}
		c.audited(l)
	}
	return malformed
}

// reclaim frees the slots of attempts that are not among those that run.
func (c *Audit) reclaim(l *Limit, partition int, askedAt time.Duration, runs map[Member]bool) {
	for m, h := range l.Slots {
		if m.partition() == partition && !h.undecided && h.since < askedAt && !runs[m] {
			c.shard.Done.Audited++
			if !h.unbooked { // of the end of others nothing tells
				l.Usage.reclaimed++
			}
			c.shard.release(l, m)
		}
	}
}

// adopt counts an attempt that this owner has not granted.
func (l *Limit) adopt(h *Running, m Member, now time.Duration) {
	l.deadline = max(l.deadline, h.DeadlineMS)
	if one, ok := l.Slots[m]; !ok {
		l.hold(m, Holding{since: now, unbooked: !slices.Contains(h.Path, l.Ref)})
	} else if one.undecided { // it runs, whatever becomes of the grab
		one.since, one.undecided = now, false
		l.Slots[m] = one
	}
}

// audited notes that a partition has reported about a limit.
func (c *Audit) audited(l *Limit) {
	s := c.shard
	l.auditLeft--
	l.Unknown = min(l.Unknown, l.auditLeft)
	if l.auditLeft > 0 {
		return
	}
	if c.adopt {
		s.reportGroups(l)
		s.ReportSoon(l) // the entry of the owner before may be too high, and what was found is not in it
	}
	switch {
	case c.adopt && l.holding() > 0, l.notBooked() > 0:
		l.auditAt = s.now + AuditSoon
	case l.full && len(l.Slots) > 0 || l.Blocked != 0 || l.anyBlocked():
		l.auditAt = s.now + AuditEvery
	default:
		l.auditAt = 0
	}
}
