package table

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// limit is how the slots of one limit are shared out among the shards.
type limit struct {
	// entries by shard.
	entries map[int]entry
	// line are the shards that wait, in no order.
	line []waiter
	// turns counts the places given in the line.
	turns uint64
}

func newLimit() *limit { return &limit{entries: map[int]entry{}} }

// entry is what one shard holds of a limit.
type entry struct {
	// seq is that of the call; of the limit of a group, the owner's count (PerGroup).
	seq  Seq
	held int
	// until is when what is held counts no more, Unix ms.
	until int64
}

// waiter is a shard in the line of a limit.
type waiter struct {
	shard, priority int
	// turn orders those of one priority: who came first, or was served longest ago.
	turn uint64
	// seen is when the shard last showed itself, Unix ms.
	seen int64
	// short is how many slots it lacked then, at least 1.
	short int
}

func (w waiter) compare(o waiter) int {
	return cmp.Or(cmp.Compare(w.priority, o.priority), cmp.Compare(w.turn, o.turn))
}

func (s Seq) compare(o Seq) int {
	return cmp.Or(cmp.Compare(s.Epoch, o.Epoch), cmp.Compare(s.Call, o.Call))
}

// used is how many slots all shards hold at an instant, Unix ms.
func (l *limit) used(now int64) int {
	n := 0
	for _, e := range l.entries {
		if e.until > now {
			n += e.held
		}
	}
	return n
}

// place is the index of a shard in the line, or -1.
func (l *limit) place(shard int) int {
	return slices.IndexFunc(l.line, func(w waiter) bool { return w.shard == shard })
}

// leave takes a shard out of the line.
func (l *limit) leave(shard int) {
	l.line = slices.DeleteFunc(l.line, func(w waiter) bool { return w.shard == shard })
}

// stand is one Stance while its call is carried out.
type stand struct {
	Stance
	limit *limit
	// groups: it counts per group, and has no limit; or it is that of one of its groups.
	groups        *perGroup
	shard, shards int
	// used are the slots of all shards, this one's included; ahead those that are
	// kept for shards before this one in the line.
	used, ahead int
	restoring   bool
	// met: a trigger needed a slot here. granted counts those that got one, short those that
	// did not.
	met            bool
	granted, short int
	// rated is all that there is of a rate, besides short; nil = it is none.
	rated *rated
}

// leaveStale takes out who has not shown itself for long.
func (l *limit) leaveStale(now int64) {
	l.line = slices.DeleteFunc(l.line, func(w waiter) bool { return now-w.seen >= LineStale.Milliseconds() })
}

// take sets the shard's entry and its place in the line.
func (l *limit) take(c *Call, s Stance, seq Seq, now int64) stand {
	l.entries[c.Shard] = entry{seq: seq, held: s.Held, until: max(l.entries[c.Shard].until, now+Expiry(s.TTL))}
	l.leaveStale(now)
	if s.Wait == 0 {
		l.leave(c.Shard)
	} else if i := l.place(c.Shard); i >= 0 {
		l.line[i].priority, l.line[i].seen = s.Wait, now
	} else {
		l.turns++
		l.line = append(l.line, waiter{shard: c.Shard, priority: s.Wait, turn: l.turns, seen: now, short: 1})
	}
	return stand{
		Stance: s, limit: l, shard: c.Shard, shards: c.Shards,
		used: l.used(now), ahead: l.ahead(c.Shard),
	}
}

// Expiry is for how long an entry counts whose slots may be used for ttl, in ms.
func Expiry(ttl time.Duration) int64 {
	return max(ttl, 0).Milliseconds() + ExpiryAfter.Milliseconds()
}

// ahead is how many slots those before a shard in the line lack: all others where it does
// not stand in it.
func (l *limit) ahead(shard int) int {
	mine, n := l.place(shard), 0
	for _, w := range l.line {
		if w.shard != shard && (mine < 0 || w.compare(l.line[mine]) < 0) {
			n += w.short
		}
	}
	return n
}

// room is how many slots the shard may be granted.
func (s *stand) room() int {
	switch {
	case s.Shadow:
		return math.MaxInt
	case s.rated != nil:
		return s.rated.room()
	case s.restoring:
		return 0
	case s.PerGroup.Count > 0:
		return math.MaxInt
	}
	return max(0, s.Max-s.used-s.ahead)
}

// fits is how many triggers of a cost the room is enough for.
func (s *stand) fits(cost int) int {
	if s.Shadow || s.rated == nil {
		return s.room()
	}
	return s.rated.fits(cost)
}

// why there is no room.
func (s *stand) why() BlockedWhy {
	switch {
	case s.rated != nil:
		return Rated
	case s.restoring:
		return Restoring
	case s.used >= s.Max:
		return Full
	}
	return InLine
}

// book adds the slots of n triggers to the shard's entry, or the starts that each of them costs.
func (s *stand) book(n, cost int) {
	if s.rated != nil {
		s.rated.start(n, cost)
		return
	}
	if s.PerGroup.Count > 0 {
		return
	}
	s.used += n
	s.granted += n
	e := s.limit.entries[s.shard]
	e.held += n
	s.limit.entries[s.shard] = e
}

// finish gives the shard its place in the line by what it got, leases what it asks for, and tells
// how the limit stands.
func (s *stand) finish() LimitState {
	if s.rated != nil {
		return s.rated.finish(s.short > 0)
	}
	if s.PerGroup.Count > 0 {
		return LimitState{Restoring: s.restoring}
	}
	l := s.limit
	if i := l.place(s.shard); i >= 0 {
		switch {
		case s.short > 0:
			l.line[i].short = s.short
			if s.granted > 0 {
				l.turns++
				l.line[i].turn = l.turns
			}
		case s.met:
			l.leave(s.shard)
		}
	}
	others := slices.ContainsFunc(l.line, func(w waiter) bool { return w.shard != s.shard })
	leased, beyond := 0, 0
	if s.Shadow {
		beyond = max(0, min(s.granted, s.used-s.Max))
	}
	if !others && !s.restoring {
		leased = max(0, min(s.Ask, (s.Max-s.used)/s.shards))
		s.book(leased, 1)
	}
	if s.Of > 0 {
		s.groups.drop(s.Ref)
	}
	return LimitState{Used: s.used, Leased: leased, Restoring: s.restoring && !s.Shadow, Others: others && !s.restoring, Beyond: beyond}
}

// presence is what one shard has said about a limit that counts per group.
type presence struct {
	// seq is that of its last call.
	seq Seq
	// counted is the count with which it became complete; zero = it is not. Its entries of older ones are void.
	counted Seq
}

// perGroup is a limit that counts per group, of which nothing is kept but who is complete, and the limits of groups that are
// in use.
type perGroup struct {
	shards map[int]presence
	groups map[Ref]*limit
}

func newPerGroup() *perGroup { return &perGroup{shards: map[int]presence{}, groups: map[Ref]*limit{}} }

// overtaken tells whether a later call has named it.
func (p *perGroup) overtaken(c *Call) bool { return c.Seq.compare(p.shards[c.Shard].seq) <= 0 }

// say takes in what a shard says.
func (p *perGroup) say(c *Call, s Stance) stand {
	at := p.shards[c.Shard]
	at.seq = c.Seq
	if s.PerGroup.Complete {
		at.counted = Seq{c.Seq.Epoch, s.PerGroup.Count}
	}
	p.shards[c.Shard] = at
	complete := 0
	for _, one := range p.shards {
		if one.counted != (Seq{}) {
			complete++
		}
	}
	return stand{Stance: s, groups: p, restoring: complete < c.Shards}
}

// limit finds or makes that of one group, without what is void or over.
func (p *perGroup) limit(ref Ref, now int64) *limit {
	l := findOrMake(p.groups, ref, newLimit)
	maps.DeleteFunc(l.entries, func(shard int, e entry) bool {
		return e.held == 0 || e.until <= now || e.seq.compare(p.shards[shard].counted) < 0
	})
	return l
}

// drop forgets the limit of a group of which no shard holds a slot, or waits for one.
func (p *perGroup) drop(ref Ref) {
	l := p.groups[ref]
	for _, e := range l.entries {
		if e.held > 0 {
			return
		}
	}
	if len(l.line) == 0 {
		delete(p.groups, ref)
	}
}
