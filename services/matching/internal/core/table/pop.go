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
	// seen is how far the candidates were looked at; gone what left each. live are those seen of which more may be taken.
	seen int
	gone []int
	live []int
	// named counts the candidates that need each limit.
	named []int
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
	p.live = p.live[:0]
	for p.left > 0 {
		best := -1
		alive := p.live[:0]
		for _, i := range p.live {
			if p.column(i) == nil || p.full(i) >= 0 || p.spent(i) {
				continue
			}
			if alive = append(alive, i); best < 0 || p.age(i) < p.age(best) {
				best = i
			}
		}
		p.live = alive
		// A candidate further on is looked at only when it may be older.
		if next < to && (best < 0 || p.before(next, best)) {
			p.passed[next] = p.leftFor(p.full(next), next)
			p.live = append(p.live, next)
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

// before tells whether a candidate that was not looked at may come before the best one that was.
func (p *pop) before(next, best int) bool {
	hint, age := p.w.Candidates[next].Head, p.age(best)
	return hint < age || hint == age && (p.w.Candidates[next].Most == 0 || p.w.Candidates[best].Most == 0)
}

// age is that by which a candidate that holds something takes its turn.
func (p *pop) age(i int) int64 {
	if p.w.Candidates[i].Most > 0 {
		return p.w.Candidates[i].Head
	}
	return p.column(i).head().ReadyAt
}

// cost is how many starts of a rate the first trigger needs of a candidate that holds something, as far as it was looked at.
func (p *pop) cost(i int) int {
	if p.passed[i] {
		return 1
	}
	return p.column(i).head().Starts()
}

// spent tells whether as many were taken of a candidate as may be.
func (p *pop) spent(i int) bool {
	return p.w.Candidates[i].Most > 0 && p.gone[i] >= p.w.Candidates[i].Most
}

// leftFor tells whether a candidate before this one was left because a limit has no room; by is its stance, -1 = none.
func (p *pop) leftFor(by, before int) bool {
	if by < 0 || p.named[by] == 1 {
		return false
	}
	for i := range before {
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

// full is the first stance of a candidate's path that has no room, or -1.
func (p *pop) full(i int) int {
	for _, at := range p.w.Candidates[i].Path {
		if p.stands[at].room() == 0 {
			return at
		}
	}
	return -1
}

// take takes what it can of a live candidate's first chunk, and the slots that it needs. If it needs more starts of a rate than there are,
// it waits for them, and so does what comes after it.
func (p *pop) take(i int) {
	at := p.w.Candidates[i]
	head := p.columns[at.Column].head()
	cost := head.Starts()
	n := min(p.left, head.Len(), p.columns[at.Column].inOrder())
	if at.Most > 0 {
		n = min(n, at.Most-p.gone[i])
	}
	for _, s := range at.Path {
		fits := p.stands[s].fits(cost)
		if fits == 0 {
			p.stands[s].rated.keep(cost)
			return
		}
		n = min(n, fits)
	}
	for _, s := range at.Path {
		p.stands[s].met = true
		p.stands[s].book(n, cost)
	}
	batch := Batch{Chunk: *head, From: i, Booked: len(at.Path) > 0}
	over := 0
	if rest := head.Len() - n; rest <= p.ahead && p.full(i) >= 0 {
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
		by := p.full(i)
		if by < 0 || p.named[by] > 1 && slices.ContainsFunc(p.got.Blocked, func(b Blocked) bool { return b.At == by }) {
			continue
		}
		s := &p.stands[by]
		s.short += max(p.left, 1)
		if s.rated != nil {
			s.rated.lack(p.cost(i))
		}
		p.got.Blocked = append(p.got.Blocked, Blocked{At: by, By: s.Ref, Why: s.why()})
	}
}

// report tells the columns looked at, and drops those that are empty.
func (p *pop) report() {
	for i, at := range p.w.Candidates[:p.seen] {
		head := Head{Column: at.Column, Empty: true, Gone: p.gone[i]}
		if p.passed[i] {
			head.Empty, head.ReadyAt = false, at.Head
		} else if c := p.column(i); c != nil {
			head.Empty, head.ReadyAt, head.Rank = false, c.head().ReadyAt, c.head().Rank
		} else {
			delete(p.columns, at.Column)
		}
		p.got.Heads = append(p.got.Heads, head)
	}
}
