package dealing

import (
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// Tasklist is a tasklist L as polls and tables see it.
type Tasklist[L any] interface {
	tablecall.List
	waiting.Tasklist[L]
}

// Config of Dealing.
type Config[L Tasklist[L]] struct {
	// AnswerBytesMax bounds the tasks of one answer, in encoded bytes.
	AnswerBytesMax int
	// Find is the tasklist of a name, Source is a tasklist as calls see it, and Tables are those of its domain.
	Find   func(name table.Tasklist) L
	Source func(l L) *tablecall.Source[L]
	Tables func(l L) *tablecall.Tables[L]
	// Retrigger has a partition send all triggers again.
	Retrigger func(partition int)
}

// Rooms are those that triggers go through.
type Rooms[L Tasklist[L]] struct {
	Grabs    *grab.Lanes[L]
	Arrivals *arrival.Arrivals[L]
	Limits   *limit.Limits
	Waiting  *waiting.Waiting[L]
	Calls    *tablecall.Calls[L]
}

// Dealing is how triggers meet polls. Use New.
type Dealing[L Tasklist[L]] struct {
	cfg    Config[L]
	rooms  Rooms[L]
	now    time.Duration
	counts *DealCounts
	// leaving: the shard is given up, so no trigger goes to a poll any more.
	leaving bool
}

// DealCounts is what a turn has done with triggers, for metrics.
type DealCounts struct {
	// Duplicates counts triggers that were asked for before, SyncMatches those that met a poll without passing the tables.
	Duplicates, SyncMatches int64
	// Rejected counts tasks that were, Displaced attempts that were asked to make room.
	Rejected, Displaced int64
	// Malformed counts invalid input.
	Malformed int64
}

// New returns the dealing of a shard.
func New[L Tasklist[L]](cfg Config[L], rooms Rooms[L]) Dealing[L] {
	return Dealing[L]{cfg: cfg, rooms: rooms}
}

// Begin begins a turn, which is counted by counts.
func (s *Dealing[L]) Begin(now time.Duration, counts *DealCounts) { s.now, s.counts = now, counts }

// Match pairs triggers with polls: those taken from the tables, then new ones where nothing older or more urgent stands before them in the table.
func (s *Dealing[L]) Match() {
	for i := range s.rooms.Calls.Taken {
		s.matchTaken(&s.rooms.Calls.Taken[i])
	}
	clear(s.rooms.Calls.Taken)
	s.rooms.Calls.Taken = s.rooms.Calls.Taken[:0]
	s.rooms.Limits.TakeUpSlack()
	s.rooms.Arrivals.Sort()
	for i := range s.rooms.Arrivals.All {
		s.matchArrival(&s.rooms.Arrivals.All[i])
	}
	clear(s.rooms.Arrivals.All)
	s.rooms.Arrivals.All = s.rooms.Arrivals.All[:0]
}

// matchTaken assigns what was taken from a table to polls. A trigger that no poll wants any more, or that has
// no slot of a limit that is new, goes back.
func (s *Dealing[L]) matchTaken(t *tablecall.Taken[L]) {
	l, rates := s.cfg.Source(t.List), t.Path.Rates
	left := t.Chunk.Triggers
	if p := l.PathOf(t.Chunk.Column); !s.leaving && p.Pause == nil && p.Within(t.Path) {
		left, _ = s.Pair(t.List, t.Chunk, p, rates)
	}
	if len(left) > 0 {
		t.Chunk.Drop(t.Chunk.Len() - len(left)/ids.TriggerBytes)
		s.rooms.Limits.Unstart(rates, t.Chunk.Len()*t.Chunk.Starts(), s.now)
		s.rooms.Arrivals.PutBack(t.List, t.Chunk)
	}
}

// matchArrival assigns a chunk to polls, or stores it.
func (s *Dealing[L]) matchArrival(a *arrival.Arrival[L]) {
	if p, n := s.direct(a.List, a.Column); n > 0 {
		part := a.Chunk
		part.Triggers = a.Triggers[:min(n, a.Len())*ids.TriggerBytes]
		left, paired := s.Pair(a.List, part, p, nil)
		s.counts.SyncMatches += int64(paired)
		s.rooms.Limits.Use(p, paired)
		a.Drop((len(part.Triggers) - len(left)) / ids.TriggerBytes)
	}
	if len(a.Triggers) > 0 {
		s.counts.Duplicates += int64(s.cfg.Tables(a.List).Put(a, s.rooms.Grabs.Made))
		return
	}
	s.rooms.Arrivals.Done(a)
}

// direct returns how many triggers of a column may go to polls without passing the table, and which limits
// they need slots of. Limited ones need some that are spare, else they are booked in the table.
func (s *Dealing[L]) direct(of L, at table.Column) (*limit.Path, int) {
	l, n := s.cfg.Source(of), math.MaxInt
	if !l.TypePath(at.Type).HasGroup(at) {
		return nil, 0
	}
	p := l.PathOf(at)
	if p.Contended() {
		n = 0
	}
	n = s.rooms.Limits.Spare(p, n)
	switch {
	case n == 0 || l.Polls.Len() == 0 || s.leaving:
		return nil, 0
	case p == limit.Unlimited && l.Down():
		return p, n // overtaking beats standing still
	case l.Open() && l.Passable():
		return p, n
	}
	return nil, 0
}

// Pair assigns the triggers of a chunk to waiting polls, first come first served. It returns those
// for which there is none, and how many grabs it made. Starts of rates were taken for all of them.
func (s *Dealing[L]) Pair(l L, c table.Chunk, path *limit.Path, rates []*limit.Limit) (left []byte, n int) {
	polls := s.cfg.Source(l).Polls
	if !polls.Names(c.Type) {
		return c.Triggers, 0
	}
	from := &grab.Origin[L]{List: l, Chunk: c, Rates: rates, At: s.now, Life: s.cfg.Tables(l).Life, Limits: s.cfg.Source(l).List}
	from.Step, from.Triggers = 0, nil
	from.Path, from.Scarce = path.Refs, path.Find((*limit.Limit).Scarce) != nil
	p, room := polls.Taker(c.Type, s.cfg.AnswerBytesMax)
	for i := 0; i < len(c.Triggers); i += ids.TriggerBytes {
		if p != nil && room == 0 {
			p, room = polls.Taker(c.Type, s.cfg.AnswerBytesMax)
		}
		if p == nil {
			return c.Triggers[i:], n
		}
		if s.ask(p, from, path, c.Triggers[i:i+ids.TriggerBytes]) {
			n++
			if room--; room == 0 {
				p.LeaveLine()
			}
		} else {
			s.rooms.Limits.Unstart(rates, c.Starts(), s.now)
		}
	}
	return nil, n
}

// ask has history asked for a trigger. It returns false where it is of no use, or its partition is silent.
func (s *Dealing[L]) ask(p *grab.Poll[L], from *grab.Origin[L], path *limit.Path, packed []byte) bool {
	t := ids.TriggerAt(packed, 0)
	if path.Holds(limit.MemberOf(t)) { // it runs: an owner before has grabbed it
		s.counts.Duplicates++
		return false
	}
	switch s.rooms.Grabs.Ask(grab.Request[L]{Trigger: t, Poll: p, From: from}, packed) {
	case grab.Gathered:
		path.Hold(limit.MemberOf(t))
		p.Pending++
		p.Asked++
		s.cfg.Source(from.List).Undecided++
		return true
	case grab.Malformed:
		s.counts.Malformed++
	case grab.Duplicate:
		s.counts.Duplicates++
	case grab.SetAside:
		s.cfg.Source(from.List).Ranks.Aside(from.Column, from.Rank)
	}
	return false
}
