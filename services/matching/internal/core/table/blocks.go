package table

import "slices"

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
