package match

import (
	"encoding/binary"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// doubles remembers the last grabs, doublesMax of them or a little less. History decides each
// trigger once, so one that comes again is of no use to anybody.
//
// It is a table of prints in buckets of one cache line, the newest first: a lookup costs one miss.
// Two triggers with the same print count as one. This is as rare as 64 random bits that repeat
// among eight; the second one is granted when history sends it after the first is forgotten.
type doubles struct {
	buckets [][bucketPrints]uint64
}

const bucketPrints = 8

// printOf is 64 bits of a packed trigger, never 0.
func printOf(packed []byte) uint64 {
	h := uint64(0)
	for i := 0; i+8 <= ids.TriggerBytes; i += 8 {
		h = mix(h ^ binary.BigEndian.Uint64(packed[i:]))
	}
	return mix(h^uint64(binary.BigEndian.Uint32(packed[ids.TriggerBytes-4:]))) | 1
}

// mix is a step of splitmix64: each bit of x changes about half of the result's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// bucket is where a print may be.
func (d *doubles) bucket(print uint64) *[bucketPrints]uint64 {
	if d.buckets == nil {
		d.buckets = make([][bucketPrints]uint64, doublesMax/bucketPrints)
	}
	return &d.buckets[print>>32%uint64(len(d.buckets))]
}

// add notes a grab; false if it was noted already.
func (d *doubles) add(print uint64) bool {
	if d.has(print) {
		return false
	}
	b := d.bucket(print)
	copy(b[1:], b[:bucketPrints-1])
	b[0] = print
	return true
}

func (d *doubles) has(print uint64) bool { return slices.Contains(d.bucket(print)[:], print) }

// forget makes way for a grab that may yet be granted.
func (d *doubles) forget(t ids.Trigger) {
	print := printOf(ids.AppendTrigger(make([]byte, 0, ids.TriggerBytes), t))
	b := d.bucket(print)
	if i := slices.Index(b[:], print); i >= 0 {
		copy(b[i:], b[i+1:])
		b[bucketPrints-1] = 0
	}
}

// remove takes those out of a chunk that are noted, and returns how many these were.
func (d *doubles) remove(a *arrival) int {
	return a.keep(func(i int) bool { return !d.has(printOf(a.Trigger(i))) })
}
