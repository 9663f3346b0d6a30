package table

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// pop is one Want under way.
type pop struct {
	w Want
	// left is how many it wants still, and ahead how many more may come without slots.
	left, ahead int
	columns     map[Column]*column
	stands      []stand
	// seen is how far the candidates were looked at; gone what left each.
	seen int
	gone []int
	// passed are the candidates that were not looked at: their path has no room, and one
	// before was left for that. They are taken for what they are said to hold.
	passed []bool
	got    Taken
}

func (p *pop) run() {
	for from := 0; from < len(p.w.Candidates) && p.left > 0; {
		to := from + 1
		for to < len(p.w.Candidates) && p.w.Candidates[to].Priority == p.w.Candidates[from].Priority {
			to++
		}
		p.priority(from, to)
		from = to
	}
	p.block()
	p.report()
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
			p.passed[next] = p.leftFor(p.full(next), next)
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

// leftFor tells whether a candidate before this one was left because a limit has no room.
func (p *pop) leftFor(by *stand, before int) bool {
	for i := 0; by != nil && i < before; i++ {
		if !p.passed[i] && p.column(i) != nil && p.full(i) == by {
			return true
		}
	}
	return false
}

// column returns the candidate's column if it holds anything.
func (p *pop) column(i int) *column {
	if c := p.columns[p.w.Candidates[i].Column]; c != nil && !c.empty() {
		return c
	}
	return nil
}

// live returns the candidate's column if it holds anything for which there is room.
func (p *pop) live(i int) *column {
	if p.full(i) != nil {
		return nil
	}
	return p.column(i)
}

// full is the first limit of a candidate's path that has no room.
func (p *pop) full(i int) *stand {
	for _, at := range p.w.Candidates[i].Path {
		if s := &p.stands[at]; s.room() == 0 {
			return s
		}
	}
	return nil
}

// take takes what it can of a live candidate's first chunk, and the slots that it needs.
func (p *pop) take(i int) {
	at := p.w.Candidates[i]
	head := p.columns[at.Column].head()
	n := min(p.left, head.Len(), p.columns[at.Column].inOrder())
	for _, s := range at.Path {
		n = min(n, p.stands[s].room())
	}
	for _, s := range at.Path {
		p.stands[s].met = true
		p.stands[s].grant(n)
	}
	batch := Batch{Column: at.Column, ReadyAt: head.ReadyAt, Rank: head.Rank, Step: head.Step, Booked: len(at.Path) > 0}
	over := 0
	if rest := head.Len() - n; rest <= p.ahead && p.full(i) != nil {
		over = rest
	}
	batch.Triggers = p.columns[at.Column].take(n + over)
	if over > 0 {
		at := n * ids.TriggerBytes
		batch.Triggers, batch.Ahead = batch.Triggers[:at:at], batch.Triggers[at:]
	}
	p.left -= n
	p.ahead -= over
	p.gone[i] += n + over
	p.got.Batches = append(p.got.Batches, batch)
}

// block notes the limits for which triggers were left, and how many slots the want lacks.
func (p *pop) block() {
	for i, at := range p.w.Candidates[:p.seen] {
		if p.column(i) == nil && !p.passed[i] {
			continue
		}
		for _, s := range at.Path {
			p.stands[s].met = true
		}
		s := p.full(i)
		if s == nil || slices.ContainsFunc(p.got.Blocked, func(b Blocked) bool { return b.By == s.Ref }) {
			continue
		}
		s.short += max(p.left, 1)
		p.got.Blocked = append(p.got.Blocked, Blocked{By: s.Ref, Why: s.why()})
	}
}

// report tells the columns looked at, and drops those that are empty.
func (p *pop) report() {
	for i, at := range p.w.Candidates[:p.seen] {
		head := Head{Column: at.Column, Empty: true, Gone: p.gone[i]}
		if p.passed[i] {
			head.Empty, head.ReadyAt = false, at.Head
		} else if c := p.column(i); c != nil {
			head.Empty, head.ReadyAt = false, c.head().ReadyAt
		} else {
			delete(p.columns, at.Column)
		}
		p.got.Heads = append(p.got.Heads, head)
	}
}
