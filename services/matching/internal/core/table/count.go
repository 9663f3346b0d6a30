package table

import "slices"

// Columns is how many columns are known.
func (x *Index) Columns() int { return len(x.heads) }

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
	return n
}
