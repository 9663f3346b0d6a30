package due

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

const (
	// indexParts is how many tables an index is cut into, so that growing moves a
	// small part of the entries at a time and firing never waits for all of them.
	indexParts = 1 << indexPartBits
	// indexPartBits are taken from the top of a hash, the slot from its bottom.
	indexPartBits = 10
	// indexSlotsFirst is the size of a table at first; sizes are powers of two.
	indexSlotsFirst = 8
)

// index finds what has an id. It holds handles only, about 8 bytes for each id,
// and a map would hold the id again: hashing with linear probing, full
// to three quarters at most.
type index struct {
	of    identified
	parts [indexParts]indexPart
	size  int
}

// identified are things with ids, each known by a handle.
type identified interface{ idOf(h handle) ids.TaskID }

// indexPart is one table. A slot holds a handle plus one; 0 is empty.
type indexPart struct {
	slots []handle
	used  int
}

func (x *index) part(hash uint64) *indexPart { return &x.parts[hash>>(64-indexPartBits)] }

// find returns the handle of an id.
func (x *index) find(id ids.TaskID) (handle, bool) {
	hash := far.Hash(id)
	p := x.part(hash)
	if p.used == 0 {
		return 0, false
	}
	mask := uint64(len(p.slots) - 1)
	for i := hash & mask; p.slots[i] != 0; i = (i + 1) & mask {
		if h := p.slots[i] - 1; x.of.idOf(h) == id {
			return h, true
		}
	}
	return 0, false
}

// add files a handle whose id is not there.
func (x *index) add(h handle) {
	hash := far.Hash(x.of.idOf(h))
	p := x.part(hash)
	if 4*(p.used+1) > 3*len(p.slots) {
		x.grow(p)
	}
	p.put(hash, h)
	p.used++
	x.size++
}

func (p *indexPart) put(hash uint64, h handle) {
	mask := uint64(len(p.slots) - 1)
	i := hash & mask
	for p.slots[i] != 0 {
		i = (i + 1) & mask
	}
	p.slots[i] = h + 1
}

func (x *index) grow(p *indexPart) {
	old := p.slots
	p.slots = make([]handle, max(2*len(old), indexSlotsFirst))
	for _, h := range old {
		if h != 0 {
			p.put(far.Hash(x.of.idOf(h-1)), h-1)
		}
	}
}

// remove takes out a handle that is there, and closes the gap: later ones of the
// same run move up, so that no mark of the removed one has to stay.
func (x *index) remove(h handle) {
	hash := far.Hash(x.of.idOf(h))
	p := x.part(hash)
	mask := uint64(len(p.slots) - 1)
	gap := hash & mask
	for p.slots[gap] != h+1 {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; p.slots[i] != 0; i = (i + 1) & mask {
		home := far.Hash(x.of.idOf(p.slots[i]-1)) & mask
		if (i-home)&mask >= (i-gap)&mask {
			p.slots[gap] = p.slots[i]
			gap = i
		}
	}
	p.slots[gap] = 0
	p.used--
	x.size--
	if p.used == 0 {
		p.slots = nil // what a flood made large is given back after it
	}
}
