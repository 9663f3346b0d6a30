package duelist

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// task is one that waits, by its minute and its place in its partition.
type task struct {
	minute    int64
	partition int
	seq       uint64
	bytes     int
}

// store is the tasks of all partitions, each in the order of its minutes.
type store struct {
	parts  [][]task
	random *rand.Rand
	limit  int
	// answer is how many bytes an answer has room for.
	answer int
}

func newStore(r *rand.Rand) *store {
	s := &store{random: r, limit: 1 + r.IntN(8), answer: 10 + r.IntN(40), parts: make([][]task, 1+r.IntN(3))}
	for p := range s.parts {
		at := int64(0)
		for seq := range uint64(r.IntN(25)) {
			at += int64(r.IntN(3) * r.IntN(3))
			s.parts[p] = append(s.parts[p], task{at, p, seq + 1, 1 + r.IntN(9)})
		}
	}
	return s
}

func (s *store) fit(all []task) bool {
	n := 0
	for _, t := range all {
		n += t.bytes
	}
	return n <= s.answer
}

// counts are the first minutes with tasks, from one on.
func (s *store) counts(from, until int64) (all []Minute) {
	n := map[int64]int64{}
	for _, t := range slices.Concat(s.parts...) {
		if t.minute >= from && t.minute < until {
			n[t.minute]++
		}
	}
	for minute, tasks := range n {
		all = append(all, Minute{minute, tasks})
	}
	slices.SortFunc(all, func(a, b Minute) int { return int(a.Minute - b.Minute) })
	return all[:min(len(all), s.limit)]
}

// whole are the tasks of some minutes, or of fewer if that is too much to read.
func (s *store) whole(from, until int64) (all []task, before int64) {
	if before = until; s.random.IntN(4) == 0 {
		before = from + s.random.Int64N(until-from+1)
	}
	for _, t := range slices.Concat(s.parts...) {
		if t.minute >= from && t.minute < before {
			all = append(all, t)
		}
	}
	return all, before
}

// part is up to limit tasks of the minute of a place, which fit into an answer.
func (s *store) part(at Place, limit int) (all []task, goesOn *Place) {
	for _, t := range s.parts[at.Partition] {
		if t.minute != at.Minute || t.seq < at.Seq {
			continue
		}
		if len(all) == limit || len(all) > 0 && !s.fit(append(slices.Clone(all), t)) {
			return all, &Place{Seq: t.seq}
		}
		all = append(all, t)
	}
	return all, nil
}

// page is what a shell does with a page.
func (s *store) page(cursor string, until int64) (page []task, next string) {
	from, _ := Parse(cursor)
	for p := Begin(from, until, s.limit, len(s.parts)); ; {
		switch step := p.Step(); step.Ask {
		case Count:
			p.Counted(s.counts(step.From, step.Until))
		case Whole:
			found, before := s.whole(step.From, step.Until)
			if p.WholeRead(len(found), before, s.fit(found)) {
				page = found
			}
		case Part:
			found, goesOn := s.part(step.At, step.Limit)
			if all := slices.Concat(page, found); p.PartRead(len(found), s.fit(all), goesOn) {
				page = all
			}
		case End:
			return page, step.Next
		}
	}
}

// TestAListHasEachTaskOnce, minute by minute, in pages that have no more tasks than asked for, and fit into an answer unless one task does not.
func TestAListHasEachTaskOnce(t *testing.T) {
	for seed := range uint64(3000) {
		s := newStore(rand.New(rand.NewPCG(seed, 0)))
		until := int64(40)
		var got []task
		cursor := ""
		for pages := 0; ; pages++ {
			page, next := s.page(cursor, until)
			if len(page) > s.limit || len(page) > 1 && !s.fit(page) {
				t.Fatalf("seed %d: a page has %d tasks, %d are asked for; they fit: %t", seed, len(page), s.limit, s.fit(page))
			}
			slices.SortStableFunc(page, func(a, b task) int { return int(a.minute - b.minute) })
			if len(page) > 0 && len(got) > 0 && page[0].minute < got[len(got)-1].minute {
				t.Fatalf("seed %d: minute %d comes behind minute %d", seed, page[0].minute, got[len(got)-1].minute)
			}
			got = append(got, page...)
			if cursor = next; next == "" {
				break
			}
			if pages > 1000 {
				t.Fatalf("seed %d: the list does not end", seed)
			}
		}
		seen := map[task]bool{}
		for _, one := range got {
			if seen[one] {
				t.Fatalf("seed %d: %+v is there twice", seed, one)
			}
			seen[one] = true
		}
		for _, one := range slices.Concat(s.parts...) {
			if one.minute < until && !seen[one] {
				t.Fatalf("seed %d: %+v is missing", seed, one)
			}
		}
	}
}
