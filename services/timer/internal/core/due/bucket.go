package due

import (
	"cmp"
	"slices"
)

// bucket counts what the messages of one bucket of the store still hold.
type bucket struct {
	// live tasks are still to be fired.
	live int
	// lastSeq is its last message.
	lastSeq uint64
	// void are its cancelled entries. A slot here may have been freed since.
	void []handle
	// voidMS is when the last tombstone was stored, by the store's clock.
	voidMS int64
	// unread: one of Cancel has not come back from the store.
	unread bool
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

// Purgeable returns the buckets of which everything was fired or is void and
// whose last message is not above parked, which is how far history is known to
// remember what it parked. End is the store's last sequence, asked for after
// parked: nothing is purgeable until that has been loaded.
//
// A second copy of a record is written only by who cannot know of the first,
// that is, while the first is above parked; so all copies are loaded by then. A
// bucket goes as a whole: a tombstone must not go before the records it voids, nor a
// fired record before its copy.
//
// SavedMS is when the checkpoint that tells parked was saved, 0 = never. A bucket with
// a cancelled task waits until that is later than the cancel by more than
// Config.VoidKeepMS. No clock of the timer counts here: while history is down no one
// archives what was cancelled, and the void record is the only copy.
//
// The newest message of the store always stays, so that the store remembers how
// far its sequences have come; a cursor would otherwise cover tasks yet to be written.
//
// Fences go when Purged has reported that the messages they void are gone.
func (t *Table) Purgeable(parked, end uint64, savedMS int64) []Purge {
	if t.lastSeq < end {
		return nil
	}
	var all []Purge
	for number, b := range t.buckets {
		kept := len(b.void) > 0 && (b.unread || savedMS <= b.voidMS+t.cfg.VoidKeepMS)
		if b.live == 0 && b.lastSeq <= parked && b.lastSeq < t.lastSeq && !kept {
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
	kept := b.void[:0]
	for _, h := range b.void {
		e := t.entries.at(h)
		if e.place != placeVoid && e.place != placeTaken || e.bucket != int32(p.Bucket) {
			continue
		}
		if e.seq > p.UpTo {
			kept = append(kept, h)
			continue
		}
		t.remove(h)
	}
	b.void = kept
	for len(b.outdated) > 0 && b.outdated[0] <= p.UpTo {
		b.outdated = b.outdated[1:]
	}
	if b.live == 0 && b.lastSeq <= p.UpTo {
		delete(t.buckets, int32(p.Bucket))
	}
}
