package table

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// pop is one Pop under way.
type pop struct {
	w        Want
	left     int
	columns  map[Column]*column
	bookings *domain
	// free slots of the limited types met so far.
	free map[string]int
	// order of the types in free, so that the outcome does not depend on a map's.
	met []string
	// seen is how far the candidates were looked at; gone what left each.
	seen int
	gone []int
	got  Taken
}

// priority takes from the candidates [from, to), which are of one priority: always
// from the one with the oldest head, the first of equals.
func (p *pop) priority(from, to int) {
	next := from
	for p.left > 0 {
		best := -1
		for i := from; i < next; i++ {
			if c := p.live(i); c != nil && (best < 0 || c.head().ReadyAt < p.live(best).head().ReadyAt) {
				best = i
			}
		}
		// A candidate further on is looked at only when it may be older.
		if next < to && (best < 0 || p.w.Candidates[next].Head <= p.live(best).head().ReadyAt) {
			next++
			continue
		}
		if best < 0 {
			break
		}
		p.take(best)
	}
	p.seen = next
}

// live returns the candidate's column if it has a head and its limit has room.
func (p *pop) live(i int) *column {
	c := p.columns[p.w.Candidates[i].Column]
	if c == nil || c.empty() || p.full(p.w.Candidates[i]) {
		return nil
	}
	return c
}

func (p *pop) full(c Candidate) bool {
	free, met := p.free[c.Type]
	return c.Limit > 0 && met && free <= 0
}

// take takes what it can of the candidate's first chunk.
func (p *pop) take(i int) {
	at := p.w.Candidates[i]
	c := p.columns[at.Column]
	head := c.head()
	n := min(p.left, head.Len())
	batch := Batch{Column: at.Column, ReadyAt: head.ReadyAt}
	if at.Limit == 0 {
		batch.Triggers = c.take(n)
		p.left -= n
	} else {
		n = min(n, p.room(at))
		if n <= 0 {
			return // full from now on, which live sees
		}
		batch.Triggers, batch.Booked = p.book(at.Type, c.take(n)), true
		booked := len(batch.Triggers) / ids.TriggerBytes
		p.left -= booked
		p.free[at.Type] -= booked
	}
	p.gone[i] += n
	if len(batch.Triggers) > 0 {
		p.got.Batches = append(p.got.Batches, batch)
	}
}

// room is how many slots of a limited type are free.
func (p *pop) room(at Candidate) int {
	free, met := p.free[at.Type]
	if !met {
		s := p.bookings.limit(at.Type)
		s.purge(p.w.Now)
		free = at.Limit - len(s.until)
		p.free[at.Type] = free
		p.met = append(p.met, at.Type)
	}
	return free
}

// book books each trigger and returns them without the doubles.
func (p *pop) book(typ string, triggers []byte) []byte {
	s := p.bookings.limit(typ)
	kept := make([]byte, 0, len(triggers))
	for ; len(triggers) > 0; triggers = triggers[ids.TriggerBytes:] {
		member := string(triggers[:ids.BookingBytes])
		if s.has(member) {
			continue
		}
		s.book(member, p.w.Until)
		kept = append(kept, triggers[:ids.TriggerBytes]...)
	}
	return kept
}

// report tells the columns looked at and the limits that are full, and drops the
// columns that are empty.
func (p *pop) report() {
	for i, at := range p.w.Candidates[:p.seen] {
		head := Head{Column: at.Column, Empty: true, Gone: p.gone[i]}
		if c := p.columns[at.Column]; c != nil && !c.empty() {
			head.Empty, head.ReadyAt = false, c.head().ReadyAt
		} else {
			delete(p.columns, at.Column)
		}
		p.got.Heads = append(p.got.Heads, head)
	}
	for _, typ := range p.met {
		if p.free[typ] <= 0 {
			p.got.Full = append(p.got.Full, typ)
		}
	}
}
