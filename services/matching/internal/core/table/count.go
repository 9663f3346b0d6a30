package table

import "slices"

// Columns is how many columns are known.
func (x *Index) Columns() int {
	n := len(x.heads)
	for _, g := range x.groups {
		n += len(g.byName)
	}
	return n
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

// TriggersOf is how many triggers of some types the table holds, as far as is known. Types are sorted. It looks at all columns.
func (x *Index) TriggersOf(types []string) int {
	n := 0
	for _, block := range x.blocks {
		for i := range block {
			if _, named := slices.BinarySearch(types, block[i].Type); named {
				n += block[i].triggers
			}
		}
	}
	for at, g := range x.groups {
		if _, named := slices.BinarySearch(types, at.Type); named {
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
