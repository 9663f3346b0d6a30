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
	columns  []indexed
	triggers int
}

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
	i := x.find(at)
	if i < 0 {
		x.insert(indexed{Column: at, head: readyAt, triggers: n})
		return
	}
	x.columns[i].triggers += n
	if readyAt < x.columns[i].head {
		x.move(i, readyAt)
	}
}

// Seen notes what a Pop told of a column.
func (x *Index) Seen(h Head) {
	i := x.find(h.Column)
	if i < 0 {
		if !h.Empty { // another owner's: it counts itself
			x.insert(indexed{Column: h.Column, head: h.ReadyAt})
		}
		return
	}
	gone := h.Gone
	if h.Empty || gone > x.columns[i].triggers {
		gone = x.columns[i].triggers
	}
	x.triggers -= gone
	x.columns[i].triggers -= gone
	if h.Empty {
		x.columns = slices.Delete(x.columns, i, i+1)
	} else if h.ReadyAt != x.columns[i].head {
		x.move(i, h.ReadyAt)
	}
}

// Candidates appends to dst up to limit columns in order, leaving out those for
// which skip is true.
func (x *Index) Candidates(dst []Candidate, limit int, skip func(typ string) bool) []Candidate {
	for _, c := range x.columns {
		if limit == 0 {
			break
		}
		if !skip(c.Type) {
			dst = append(dst, Candidate{Column: c.Column, Head: c.head})
			limit--
		}
	}
	return dst
}

// Any tells whether a column is left for which skip is false.
func (x *Index) Any(skip func(typ string) bool) bool {
	return slices.ContainsFunc(x.columns, func(c indexed) bool { return !skip(c.Type) })
}

// Triggers is how many triggers the table holds, as far as is known.
func (x *Index) Triggers() int { return x.triggers }

// Empty tells whether no column is known.
func (x *Index) Empty() bool { return len(x.columns) == 0 }

func (x *Index) find(at Column) int {
	return slices.IndexFunc(x.columns, func(c indexed) bool { return c.Column == at })
}

func (x *Index) insert(c indexed) {
	i, _ := slices.BinarySearchFunc(x.columns, c, compareIndexed)
	x.columns = slices.Insert(x.columns, i, c)
}

func (x *Index) move(i int, head int64) {
	c := x.columns[i]
	c.head = head
	x.columns = slices.Delete(x.columns, i, i+1)
	x.insert(c)
}
