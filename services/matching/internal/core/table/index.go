package table

import (
	"cmp"
	"slices"
	"strings"
)

// Index is what the owner of a shard remembers of one tasklist's table: its
// columns, in the order in which they are taken. It spares asking Redis about
// columns that hold nothing, which costs microseconds each. It may be wrong where
// two owners overlap; then a column is looked at in vain, or a while later.
type Index struct {
	// blocks are the columns in order, in blocks that are neither empty nor longer than blockMax: a
	// tenant may have tens of thousands of types, and a change must not move them all.
	blocks [][]indexed
	// heads tell where in the order a column stands.
	heads    map[Column]int64
	triggers int
}

// blockMax is how many columns one block of an Index has at most.
const blockMax = 512

type indexed struct {
	Column
	head     int64
	triggers int
}

func compareIndexed(a, b indexed) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.head, b.head), strings.Compare(a.Type, b.Type))
}

// Put notes n triggers added to a column, the first ready at readyAt.
func (x *Index) Put(at Column, readyAt int64, n int) {
	x.triggers += n
	c := x.find(at)
	if c == nil {
		x.insert(indexed{Column: at, head: readyAt, triggers: n})
		return
	}
	c.triggers += n
	if readyAt < c.head {
		x.move(*c, readyAt)
	}
}

// Seen notes what a Pop reported of a column.
func (x *Index) Seen(h Head) {
	c := x.find(h.Column)
	if c == nil {
		if !h.Empty { // another owner's: it counts itself
			x.insert(indexed{Column: h.Column, head: h.ReadyAt})
		}
		return
	}
	gone := h.Gone
	if h.Empty || gone > c.triggers {
		gone = c.triggers
	}
	x.triggers -= gone
	c.triggers -= gone
	if h.Empty {
		x.remove(*c)
	} else if h.ReadyAt != c.head {
		x.move(*c, h.ReadyAt)
	}
}

// Candidates appends to dst up to limit columns in order, leaving out those for
// which skip is true.
func (x *Index) Candidates(dst []Candidate, limit int, skip func(at Column) bool) []Candidate {
	for _, block := range x.blocks {
		for _, c := range block {
			if limit == 0 {
				return dst
			}
			if !skip(c.Column) {
				dst = append(dst, Candidate{Column: c.Column, Head: c.head})
				limit--
			}
		}
	}
	return dst
}

// Any tells whether a column is left for which skip is false.
func (x *Index) Any(skip func(typ string) bool) bool {
	for _, block := range x.blocks {
		if slices.ContainsFunc(block, func(c indexed) bool { return !skip(c.Type) }) {
			return true
		}
	}
	return false
}

// CandidatesOf is Candidates of some types only, sorted, each once; none = of all. Its cost is that of the types, or of
// the columns where those are fewer.
func (x *Index) CandidatesOf(types []string, limit int, skip func(at Column) bool) []Candidate {
	if len(types) == 0 {
		return x.Candidates(nil, limit, skip)
	}
	if !x.few(types) {
		return x.Candidates(nil, limit, func(at Column) bool {
			_, named := slices.BinarySearch(types, at.Type)
			return !named || skip(at)
		})
	}
	var found []indexed
	for _, typ := range types {
		for p := PriorityFirst; p <= PriorityLast; p++ {
			at := Column{Priority: p, Type: typ}
			if head, ok := x.heads[at]; ok && !skip(at) {
				found = append(found, indexed{Column: at, head: head})
			}
		}
	}
	slices.SortFunc(found, compareIndexed)
	var all []Candidate
	for _, c := range found[:min(limit, len(found))] {
		all = append(all, Candidate{Column: c.Column, Head: c.head})
	}
	return all
}

// few tells whether looking for types costs less than looking at all columns.
func (x *Index) few(types []string) bool {
	return len(types)*(PriorityLast-PriorityFirst+1) < len(x.heads)
}

// Head is the age of a column's oldest chunk; false if it is not known to hold anything.
func (x *Index) Head(at Column) (readyAt int64, ok bool) {
	readyAt, ok = x.heads[at]
	return readyAt, ok
}

// Triggers is how many triggers the table holds, as far as is known.
func (x *Index) Triggers() int { return x.triggers }

// Empty tells whether no column is known.
func (x *Index) Empty() bool { return len(x.blocks) == 0 }

// find returns a column that is known, or nil. It is good until the next change.
func (x *Index) find(at Column) *indexed {
	head, ok := x.heads[at]
	if !ok {
		return nil
	}
	b, i := x.place(indexed{Column: at, head: head})
	return &x.blocks[b][i]
}

// place is where c is, or where it would come: a block, and a place there.
func (x *Index) place(c indexed) (block, i int) {
	block, found := slices.BinarySearchFunc(x.blocks, c, func(b []indexed, c indexed) int { return compareIndexed(b[0], c) })
	if !found && block > 0 {
		block--
	}
	if block < len(x.blocks) {
		i, _ = slices.BinarySearchFunc(x.blocks[block], c, compareIndexed)
	}
	return block, i
}

func (x *Index) insert(c indexed) {
	if x.heads == nil {
		x.heads = map[Column]int64{}
	}
	x.heads[c.Column] = c.head
	b, i := x.place(c)
	if b == len(x.blocks) {
		x.blocks = append(x.blocks, []indexed{c})
		return
	}
	block := x.blocks[b]
	if len(block) < blockMax {
		x.blocks[b] = slices.Insert(block, i, c)
		return
	}
	at := blockMax / 2
	if i == blockMax { // most come last: full blocks are left behind
		at = i
	}
	rest := slices.Clone(block[at:])
	clear(block[at:])
	block = block[:at]
	if i < at {
		block = slices.Insert(block, i, c)
	} else {
		rest = slices.Insert(rest, i-at, c)
	}
	x.blocks[b] = block
	x.blocks = slices.Insert(x.blocks, b+1, rest)
}

// remove takes out a column that is known.
func (x *Index) remove(c indexed) {
	delete(x.heads, c.Column)
	b, i := x.place(c)
	x.blocks[b] = slices.Delete(x.blocks[b], i, i+1)
	if len(x.blocks[b]) == 0 {
		x.blocks = slices.Delete(x.blocks, b, b+1)
	}
	if x.Empty() {
		x.heads = nil // and the memory of many
	}
}

func (x *Index) move(c indexed, head int64) {
	x.remove(c)
	c.head = head
	x.insert(c)
}
