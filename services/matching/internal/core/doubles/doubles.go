// Package doubles is the grabs that were asked for last. History decides each trigger once, so one that comes again is of no use.
//
// Owns: a table of prints in buckets of one cache line, the newest first: a lookup costs one miss.
// Two triggers with the same print count as one. This is as rare as 64 random bits that repeat
// among eight; the second one is granted when history sends it after the first is forgotten.
//
// Never does: decide what is done about a double. On failure: nothing can fail.
package doubles

import (
	"encoding/binary"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Max is how many grabs are remembered, or a little less.
const Max = 65_536

// Set remembers the last grabs. The zero value is empty.
type Set struct {
	buckets [][bucketPrints]uint64
}

const bucketPrints = 8

// Print is 64 bits of a packed trigger, never 0.
func Print(packed []byte) uint64 {
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
func (d *Set) bucket(print uint64) *[bucketPrints]uint64 {
	if d.buckets == nil {
		d.buckets = make([][bucketPrints]uint64, Max/bucketPrints)
	}
	return &d.buckets[print>>32%uint64(len(d.buckets))]
}

// Add notes a grab; false if it was noted already.
func (d *Set) Add(print uint64) bool {
	if d.Has(print) {
		return false
	}
	b := d.bucket(print)
	copy(b[1:], b[:bucketPrints-1])
	b[0] = print
	return true
}

// Has tells whether a grab is noted.
func (d *Set) Has(print uint64) bool { return slices.Contains(d.bucket(print)[:], print) }

// Forget makes way for a grab that may yet be granted.
func (d *Set) Forget(t ids.Trigger) {
	print := Print(ids.AppendTrigger(make([]byte, 0, ids.TriggerBytes), t))
	b := d.bucket(print)
	if i := slices.Index(b[:], print); i >= 0 {
		copy(b[i:], b[i+1:])
		b[bucketPrints-1] = 0
	}
}
