// Package far finds the tasks that wait for long, of which only the store has more.
//
// Owns: an index of 8 bytes a task, 10 with the free slots: where the record of a task may lie. The caller reads the record, which has the id.
//
// Never does: I/O, and to know what lies at a place. It is not safe for concurrent use.
//
// On failure: a lookup may name places of other tasks, about one in twenty lookups among ten million. It never misses a place that was added.
package far

import (
	"encoding/binary"
	"math/bits"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Place is where a record lies: the sequence of its message, and its number in it.
type Place struct {
	Seq   uint64
	Index uint32
}

// IndexMost is the last number in a message that a place may have.
const IndexMost = 1<<indexBits - 2

// A slot of the index has, from the top: bits of the hash of the id, the end of the sequence, the number in the message plus one, and a mark. The empty slot
// is 0.
const (
	indexBits = 13
	seqBits   = 32
	hashBits  = 64 - seqBits - indexBits - 1
	mark      = 1
)

const (
	// partBits are the bits of a hash that choose a part: growing moves a small part of the slots at a time.
	partBits = 10
	parts    = 1 << partBits
	// slotsFirst is the size of a part at first. A part grows by an eighth.
	slotsFirst = 8
)

// Index says where tasks may lie. The zero Index is empty.
type Index struct {
	parts [parts]part
	// newest is the last sequence that was added: the others are not 2^32 below it.
	newest uint64
}

type part struct {
	slots []uint64
	used  int
}

// Hash mixes the random half of an id with the rest, so that ids made by other means, as in tests, spread as well.
func Hash(id ids.TaskID) uint64 {
	hi, lo := bits.Mul64(binary.LittleEndian.Uint64(id[8:])^0x9e3779b97f4a7c15, binary.LittleEndian.Uint64(id[:8])^0xd6e8feb86659fd93)
	return (hi ^ lo) * 0x9e3779b97f4a7c15
}

// Add files a place of a task. It must not be there.
func (x *Index) Add(id ids.TaskID, at Place, marked bool) {
	x.newest = max(x.newest, at.Seq)
	hash := Hash(id)
	p := x.part(hash)
	if 8*(p.used+1) > 7*len(p.slots) {
		p.grow()
	}
	s := slot(hash, at)
	if marked {
		s |= mark
	}
	p.put(s)
	p.used++
}

// Has reports whether a place of a task is there, and whether it has a mark.
func (x *Index) Has(id ids.TaskID, at Place) (marked, ok bool) {
	p, i := x.find(id, at)
	return i >= 0 && p.slots[i]&mark != 0, i >= 0
}

// Mark marks a place of a task: the task waits there no more. It reports whether the place is there and had no mark.
func (x *Index) Mark(id ids.TaskID, at Place) bool {
	p, i := x.find(id, at)
	if i < 0 || p.slots[i]&mark != 0 {
		return false
	}
	p.slots[i] |= mark
	return true
}

// Remove takes out a place of a task, and reports whether it was there without a mark.
func (x *Index) Remove(id ids.TaskID, at Place) (waited bool) {
	p, i := x.find(id, at)
	if i < 0 {
		return false
	}
	waited = p.slots[i]&mark == 0
	p.removeAt(uint64(i))
	return waited
}

// Places are those where a task may lie, marked ones too, if one of them has no mark.
func (x *Index) Places(id ids.TaskID) (all []Place) {
	hash := Hash(id)
	p := x.part(hash)
	waits := false
	for i, n := p.home(slot(hash, Place{})), len(p.slots); n > 0 && p.slots[i] != 0; i = p.next(i) {
		if s := p.slots[i]; s>>(64-hashBits) == hash&(1<<hashBits-1) {
			all = append(all, x.place(s))
			waits = waits || s&mark == 0
		}
	}
	if !waits {
		return nil
	}
	return all
}

// place is where a slot says that a record lies.
func (x *Index) place(s uint64) Place {
	below := uint32(x.newest) - uint32(s>>(indexBits+1))
	return Place{Seq: x.newest - uint64(below), Index: uint32(s>>1)&(1<<indexBits-1) - 1}
}

func (x *Index) part(hash uint64) *part { return &x.parts[hash>>(64-partBits)] }

// find is the slot of a place; -1 = it is not there.
func (x *Index) find(id ids.TaskID, at Place) (*part, int) {
	hash := Hash(id)
	p := x.part(hash)
	if p.used == 0 || at.Index > IndexMost {
		return p, -1
	}
	want := slot(hash, at)
	for i := p.home(want); p.slots[i] != 0; i = p.next(i) {
		if p.slots[i]&^mark == want {
			return p, int(i)
		}
	}
	return p, -1
}

func slot(hash uint64, at Place) uint64 {
	return hash<<(64-hashBits) | uint64(uint32(at.Seq))<<(indexBits+1) | uint64(at.Index+1)<<1
}

// home is where a slot belongs: slots are in the order of their hashes, but for those that found their places taken.
func (p *part) home(s uint64) uint64 { return s >> (64 - hashBits) * uint64(len(p.slots)) >> hashBits }

func (p *part) next(i uint64) uint64 {
	if i++; i == uint64(len(p.slots)) {
		return 0
	}
	return i
}

// distance is how many slots i lies behind from.
func (p *part) distance(from, i uint64) uint64 {
	if i >= from {
		return i - from
	}
	return i + uint64(len(p.slots)) - from
}

func (p *part) put(s uint64) {
	i := p.home(s)
	for p.slots[i] != 0 {
		i = p.next(i)
	}
	p.slots[i] = s
}

func (p *part) grow() {
	old := p.slots
	p.slots = make([]uint64, max(slotsFirst, len(old)+len(old)/8))
	for _, s := range old {
		if s != 0 {
			p.put(s)
		}
	}
}

// removeAt empties a slot and closes the gap: later ones of the same run move up.
func (p *part) removeAt(gap uint64) {
	for i := p.next(gap); p.slots[i] != 0; i = p.next(i) {
		if p.distance(p.home(p.slots[i]), i) >= p.distance(gap, i) {
			p.slots[gap] = p.slots[i]
			gap = i
		}
	}
	p.slots[gap] = 0
	if p.used--; p.used == 0 {
		p.slots = nil // what a flood made large is free after it
	}
}
