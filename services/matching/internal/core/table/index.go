package table

import (
	"cmp"
	"iter"
	"maps"
	"math"
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
	// groups are the columns that have a group, by what stands for them in the order (AnyGroup), while one of them is ready.
	groups map[Column]*groups
	// asides counts how often one was set aside.
	asides uint64
	// turn is that of the priorities, after the one behind that of the call under way.
	turn, after Turn
}

type indexed struct {
	Column
	head     int64
	triggers int
	// without: of those that it stands for only that of tasks without a group is asked for.
	without bool
}

func compareIndexed(a, b indexed) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.head, b.head), strings.Compare(a.Type, b.Type), strings.Compare(a.Group, b.Group))
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
	if h.Group != "" {
		x.seenGroup(h)
		return
	}
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

// All are the columns that are known, by priority, type and group.
func (x *Index) All() iter.Seq[Column] {
	return func(yield func(Column) bool) {
		all := slices.Collect(maps.Keys(x.heads))
		all = slices.DeleteFunc(all, func(at Column) bool { return at.Group == AnyGroup })
		for of, g := range x.groups {
			for group := range g.byName {
				all = append(all, Column{of.Priority, of.Type, group})
			}
		}
		slices.SortFunc(all, Column.compare)
		slices.Values(all)(yield)
	}
}

// columns are all, those of one priority before the others; 0 = of none.
func (x *Index) columns(first int) iter.Seq[indexed] {
	return func(yield func(indexed) bool) {
		for c := range x.from(first) {
			if c.Priority != first {
				break
			}
			if !yield(c) {
				return
			}
		}
		for c := range x.from(PriorityFirst) {
			if c.Priority != first && !yield(c) {
				return
			}
		}
	}
}

// from are the columns of a priority and all behind them.
func (x *Index) from(priority int) iter.Seq[indexed] {
	return func(yield func(indexed) bool) {
		if len(x.blocks) == 0 {
			return
		}
		block, i := x.place(indexed{Column: Column{Priority: priority}, head: math.MinInt64})
		for ; block < len(x.blocks); block, i = block+1, 0 {
			for _, c := range x.blocks[block][i:] {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Candidates are up to limit columns in order, of some types, sorted, each once, or of all if there are none. Those of the priority first come before
// the others; 0 = of none. It leaves out those for which skip is true. Of those with a group that is asked for
// all of a type first (AnyGroup), then for each; or, where that is true, for the one of tasks without a group. It may set aside
// the column that it is asked for. The cost is that of the types, or of the columns where those are fewer.
func (x *Index) Candidates(types []string, first, limit int, skip func(at Column) bool) []Candidate {
	if len(types) == 0 {
		return x.candidates(limit, skip, x.columns(first))
	}
	if len(types)*(PriorityIdle-PriorityFirst+1) >= len(x.heads) {
		return x.candidates(limit, func(at Column) bool {
			_, named := slices.BinarySearch(types, at.Type)
			return !named || skip(at)
		}, x.columns(first))
	}
	return x.candidates(limit, skip, func(yield func(indexed) bool) {
		var found []indexed
		for _, typ := range types {
			for p := PriorityFirst; p <= PriorityIdle; p++ {
				for _, group := range [...]string{"", AnyGroup} {
					at := Column{Priority: p, Type: typ, Group: group}
					if head, ok := x.heads[at]; ok {
						found = append(found, indexed{Column: at, head: head})
					}
				}
			}
		}
		rank := func(c indexed) int {
			if c.Priority == first {
				return 0
			}
			return c.Priority
		}
		slices.SortFunc(found, func(a, b indexed) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), compareIndexed(a, b)) })
		slices.Values(found)(yield)
	})
}

// candidates are those of columns in order, and of the groups that these stand for.
func (x *Index) candidates(limit int, skip func(at Column) bool, columns iter.Seq[indexed]) []Candidate {
	for {
		asides := x.asides
		var found []indexed
		for c := range columns {
			if len(found) >= limit {
				break
			}
			if skipped := skip(c.Column); !skipped || c.Group == AnyGroup && x.groups[c.Column].readyWithout() {
				c.without = skipped
				found = append(found, c)
			}
		}
		var all []Candidate
		for _, c := range found {
			if c.Group == AnyGroup {
				all = x.groups[c.Column].append(all, c, limit, skip)
			} else if len(all) < limit {
				all = append(all, Candidate{Column: c.Column, Head: c.head})
			}
		}
		if len(all) >= limit || x.asides == asides { // else those behind were not looked at
			return all
		}
	}
}

// Any tells whether a column is left for which skip is false.
func (x *Index) Any(skip func(at Column) bool) bool {
	for _, block := range x.blocks {
		if slices.ContainsFunc(block, func(c indexed) bool { return !skip(c.Column) }) {
			return true
		}
	}
	return false
}

// Triggers is how many triggers the table holds, as far as is known.
func (x *Index) Triggers() int { return x.triggers }

// Empty tells whether no column is known.
func (x *Index) Empty() bool { return len(x.blocks) == 0 && len(x.groups) == 0 }

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
func (x *Index) place(c indexed) (block, i int) { return placeIn(x.blocks, c, compareIndexed) }

func (x *Index) insert(c indexed) {
	if x.heads == nil {
		x.heads = map[Column]int64{}
	}
	x.heads[c.Column] = c.head
	x.blocks = insertIn(x.blocks, c, compareIndexed)
}

// remove takes out a column that is known.
func (x *Index) remove(c indexed) {
	delete(x.heads, c.Column)
	x.blocks = removeFrom(x.blocks, c, compareIndexed)
	if len(x.blocks) == 0 {
		x.heads = nil // and the memory of many
	}
}

func (x *Index) move(c indexed, head int64) {
	x.remove(c)
	c.head = head
	x.insert(c)
}

// TriggersIn is how many triggers a column holds, as far as is known.
func (x *Index) TriggersIn(at Column) int {
	if _, g := x.grouped(at); g != nil {
		return g.triggers
	}
	if c := x.find(at); c != nil {
		return c.triggers
	}
	return 0
}

// TriggersOfType is how many triggers of a type the table holds, as far as is known. It looks at a column of each priority.
func (x *Index) TriggersOfType(typ string) int {
	n := 0
	for p := PriorityFirst; p <= PriorityIdle; p++ {
		n += x.TriggersIn(Column{Priority: p, Type: typ})
		if g := x.groups[Column{Priority: p, Type: typ, Group: AnyGroup}]; g != nil {
			n += g.triggers
		}
	}
	return n
}

// Types are up to limit types of which the table holds something, as far as is known, sorted.
func (x *Index) Types(limit int) []string {
	var all []string
	for at := range x.groups {
		all = append(all, at.Type) // those set aside, too
	}
	slices.Sort(all)
	all = all[:min(len(all), limit)]
	for _, block := range x.blocks {
		for i := 0; i < len(block) && len(all) < 2*limit; i++ {
			all = append(all, block[i].Type)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), limit)]
}

// Holds tells whether the table holds something of some types, sorted, as far as is known; none = of any.
func (x *Index) Holds(types []string) bool {
	if len(types) == 0 {
		return !x.Empty()
	}
	named := func(at Column) bool {
		_, ok := slices.BinarySearch(types, at.Type)
		return ok
	}
	for at := range x.groups {
		if named(at) {
			return true
		}
	}
	return x.Any(func(at Column) bool { return !named(at) })
}

// Groups tells whether a column with a group is known.
func (x *Index) Groups() bool { return len(x.groups) > 0 }

// blockMax is how many elements one block of an order has at most.
const blockMax = 512

// placeIn is where c is in an order that is kept in blocks, or where it would come: a block, and a place there.
func placeIn[T any](blocks [][]T, c T, compare func(a, b T) int) (block, i int) {
	block, found := slices.BinarySearchFunc(blocks, c, func(b []T, c T) int { return compare(b[0], c) })
	if !found && block > 0 {
		block--
	}
	if block < len(blocks) {
		i, _ = slices.BinarySearchFunc(blocks[block], c, compare)
	}
	return block, i
}

func insertIn[T any](blocks [][]T, c T, compare func(a, b T) int) [][]T {
	b, i := placeIn(blocks, c, compare)
	if b == len(blocks) {
		return append(blocks, []T{c})
	}
	block := blocks[b]
	if len(block) < blockMax {
		blocks[b] = slices.Insert(block, i, c)
		return blocks
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
	blocks[b] = block
	return slices.Insert(blocks, b+1, rest)
}

// removeFrom takes out an element that is there.
func removeFrom[T any](blocks [][]T, c T, compare func(a, b T) int) [][]T {
	b, i := placeIn(blocks, c, compare)
	blocks[b] = slices.Delete(blocks[b], i, i+1)
	if len(blocks[b]) == 0 {
		blocks = slices.Delete(blocks, b, b+1)
	}
	return blocks
}

// BeginTurn finds out which priority goes first in a call that takes triggers; 0 = the most urgent does: no other has anything
// ready, or it is to be strict.
func (x *Index) BeginTurn(strict func() bool) (first int) {
	x.after = x.turn
	if x.mixed() && !strict() {
		first, x.after = x.turn.Next(x.has)
	}
	return first
}

// EndTurn notes that the call has taken some triggers, of whatever priority: those of the one whose turn it was may be
// paused, or of a limit that is full.
func (x *Index) EndTurn() { x.turn = x.after }

// has tells whether the table holds something of a priority.
func (x *Index) has(priority int) bool {
	for c := range x.from(priority) {
		return c.Priority == priority
	}
	return false
}

// mixed tells whether it holds something of several priorities. PriorityIdle does not count: it waits for all others.
func (x *Index) mixed() bool {
	if len(x.blocks) == 0 {
		return false
	}
	for c := range x.from(x.blocks[0][0].Priority + 1) {
		return c.Priority <= PriorityLast
	}
	return false
}
