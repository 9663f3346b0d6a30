package due

import (
	"cmp"
	"slices"
)

// bucket counts what the messages of one bucket of the store still hold.
type bucket struct {
	// live tasks are still to be fired.
	live int
	// lastSeq is its last message, lastTasks the last one with tasks.
	lastSeq, lastTasks uint64
	// outdated are the sequences of its messages of replaced history owners, in order.
	outdated []uint64
}

func (t *Table) bucket(number int32) *bucket {
	b := t.buckets[number]
	if b == nil {
		b = &bucket{}
		t.buckets[number] = b
	}
	return b
}

// Purge names messages that no one needs: those of a bucket up to a sequence, or
// the fences up to there.
type Purge struct {
	Bucket int64
	UpTo   uint64
	Fences bool
}

// Purgeable returns the buckets of which everything was fired or is void, and
// whose last message with tasks is not above parked, which is how far history is known to
// remember what it parked. End is the store's last sequence, asked for after
// parked: nothing is purgeable until that has been loaded.
//
// A second copy of a record is written only by who cannot know of the first,
// that is, while the first is above parked; so all copies are loaded by then. A
// bucket goes as a whole: an early message must not go before the record that it fires, nor
// a fired record before its copy.
//
// The newest message of the store always stays, so that the store remembers how
// far its sequences have come; a cursor would otherwise cover tasks yet to be written.
//
// Fences go when Purged has reported that the messages they void are gone.
func (t *Table) Purgeable(parked, end uint64) []Purge {
	if t.lastSeq < end {
		return nil
	}
	var all []Purge
	for number, b := range t.buckets {
		if b.live == 0 && b.lastTasks <= parked && b.lastSeq < t.lastSeq {
			all = append(all, Purge{Bucket: int64(number), UpTo: b.lastSeq})
		}
	}
	slices.SortFunc(all, func(a, b Purge) int { return cmp.Compare(a.Bucket, b.Bucket) })
	if p, ok := t.fencesPurgeable(); ok {
		all = append(all, p)
	}
	return all
}

// Purged forgets what messages held that are gone.
func (t *Table) Purged(p Purge) {
	if p.Fences {
		t.fencesPurged(p.UpTo)
		return
	}
	b, ok := t.buckets[int32(p.Bucket)]
	if !ok {
		return
	}
	for len(b.outdated) > 0 && b.outdated[0] <= p.UpTo {
		b.outdated = b.outdated[1:]
	}
	if b.live == 0 && b.lastSeq <= p.UpTo {
		delete(t.buckets, int32(p.Bucket))
	}
}
