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
	b := d.bucket(print)
	for _, p := range b {
		if p == print {
			return false
		}
	}
	copy(b[1:], b[:bucketPrints-1])
	b[0] = print
	return true
}

func (d *doubles) has(print uint64) bool {
	for _, p := range d.bucket(print) {
		if p == print {
			return true
		}
	}
	return false
}

// forget makes way for a grab that may yet be granted.
func (d *doubles) forget(t ids.Trigger) {
	print := printOf(ids.AppendTrigger(make([]byte, 0, ids.TriggerBytes), t))
	b := d.bucket(print)
	for i, p := range b {
		if p == print {
			copy(b[i:], b[i+1:])
			b[bucketPrints-1] = 0
			return
		}
	}
}

// remove takes those out of a chunk that are noted, and returns how many these were. Memory that the chunk shares with others stays as
// it is.
func (d *doubles) remove(a *arrival) int {
	n, all := 0, *a
	for i := range all.Len() {
		one := all.Triggers[i*ids.TriggerBytes : (i+1)*ids.TriggerBytes]
		switch double := d.has(printOf(one)); {
		case double && n == 0:
			n++
			a.Triggers = append(make([]byte, 0, len(all.Triggers)), all.Triggers[:i*ids.TriggerBytes]...)
			a.groups, a.ranks = slices.Clip(head(all.groups, i)), slices.Clip(head(all.ranks, i))
		case double:
			n++
		case n > 0:
			a.Triggers = append(a.Triggers, one...)
			if all.groups != nil {
				a.groups = append(a.groups, all.groups[i])
			}
			if all.ranks != nil {
				a.ranks = append(a.ranks, all.ranks[i])
			}
		}
	}
	return n
}

// head is the first n of a slice that there may not be.
func head[T any](all []T, n int) []T {
	if all == nil {
		return nil
	}
	return all[:n]
}
