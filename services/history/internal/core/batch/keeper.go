package batch

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/deadline"
	"github.com/yardmaster-io/yardmaster/shared/fair"
)

// Name names a batch: Made is when it was created, Unix ms, since another one may have its id later.
type Name struct {
	Domain, ID string
	Made       int64
}

// Home is what the log says of a batch.
type Home struct {
	Name
	Closed, Over bool
	// ExpiresAt is when it is over unless it is completed, Unix ms.
	ExpiresAt int64
}

const (
	// LookEveryMS is how soon a closed batch is looked at again of which no one says that something has changed, LookPerBatchMS how much it is at least for each
	// batch of its domain: a look reads the stores, and thousands of batches that wait for a day cost no more than a hundred do.
	LookEveryMS    = 5000
	LookPerBatchMS = 50
	// HintEveryMS is how soon if someone does: while its tasks end, that is said all the time.
	HintEveryMS = 100
)

// Keeper knows the batches of a partition that are not over, and which are to be looked at. It is not safe for concurrent use.
type Keeper struct {
	known map[Name]*kept
	// of is how many of these each domain has.
	of    map[string]int64
	times deadline.Heap[*kept]
	due   fair.Queue[*kept]
}

type kept struct {
	Home
	deadline.Entry
	// due: it is in the queue. looking: a look is under way. again: something has changed since that began.
	due, looking, again bool
	// lookedAt is when the last look ended, Unix ms.
	lookedAt int64
}

// NewKeeper makes one that knows of no batch.
func NewKeeper() *Keeper {
	k := &Keeper{known: map[Name]*kept{}, of: map[string]int64{}}
	k.times.Entry = func(b *kept) *deadline.Entry { return &b.Entry }
	return k
}

// Knows tells whether a batch is not over.
func (k *Keeper) Knows(n Name) bool { return k.known[n] != nil }

// Seen takes in what the log says of a batch now.
func (k *Keeper) Seen(h Home) {
	b := k.known[h.Name]
	if h.Over {
		if b != nil {
			delete(k.known, h.Name)
			if k.of[h.Domain]--; k.of[h.Domain] == 0 {
				delete(k.of, h.Domain)
			}
			k.times.Remove(b)
			b.Over = true // it may be in the queue
		}
		return
	}
	if b == nil {
		b = &kept{}
		k.known[h.Name] = b
		k.of[h.Domain]++
	}
	changed := h.Closed && !b.Closed
	b.Home = h
	switch {
	case changed:
		k.want(b)
	case !b.due && !b.looking && !k.times.Has(b):
		k.rest(b, 0)
	}
}

// Hint takes in that more tasks of a batch may have ended.
func (k *Keeper) Hint(n Name, nowMS int64) {
	b := k.known[n]
	switch {
	case b == nil || !b.Closed || b.due:
	case b.looking:
		b.again = true
	default:
		k.times.Set(b, max(nowMS, b.lookedAt+HintEveryMS))
	}
}

// Take are up to most batches that are to be looked at, domains in turn. Each look ends with Looked.
func (k *Keeper) Take(nowMS int64, most int) (all []Name) {
	for b, ok := k.times.PopDue(nowMS); ok; b, ok = k.times.PopDue(nowMS) {
		k.want(b)
	}
	for len(all) < most && k.due.Len() > 0 {
		for _, b := range k.due.Cut(most - len(all)) {
			b.due = false
			if !b.Over {
				b.looking = true
				all = append(all, b.Name)
			}
		}
	}
	return all
}

// Looked ends a look at a batch.
func (k *Keeper) Looked(n Name, nowMS int64) {
	b := k.known[n]
	if b == nil {
		return
	}
	again := b.again
	b.looking, b.again, b.lookedAt = false, false, nowMS
	k.rest(b, nowMS)
	if again {
		k.times.Set(b, nowMS+HintEveryMS)
	}
}

// Next is when there is something to be looked at without a change, Unix ms; ok is false where nothing is.
func (k *Keeper) Next() (at int64, ok bool) {
	if k.due.Len() > 0 {
		return 0, true
	}
	return k.times.Next()
}

func (k *Keeper) want(b *kept) {
	switch {
	case b.looking:
		b.again = true
	case !b.due:
		k.times.Remove(b)
		b.due = true
		k.due.Add(b.Domain, b, 1)
	}
}

// rest leaves b alone until it expires or, if it is closed, is to be looked at again.
func (k *Keeper) rest(b *kept, nowMS int64) {
	at := max(b.ExpiresAt, 1)
	again := nowMS + max(LookEveryMS, k.of[b.Domain]*LookPerBatchMS)
	if b.Closed {
		at = min(at, again)
	}
	if nowMS >= b.ExpiresAt { // it is to be over, and that was not stored
		at = again
	}
	k.times.Set(b, at)
}

// Found is what a look has found.
type Found struct {
	Home
	// Tasks is how many the batch has, if it is closed; Ends how they ended. Counted: no task is missing.
	Tasks   int64
	Ends    Ends
	Counted bool
}

// The step after a look.
const (
	// Wait: nothing.
	Wait = iota
	// Complete: all its tasks have ended.
	Complete
	// Expire: its time is over.
	Expire
)

// Conclude is what follows.
func (f *Found) Conclude(nowMS int64) int {
	switch {
	case f.Over:
		return Wait
	case f.Closed && f.Counted && f.Ends.Total() >= f.Tasks:
		return Complete
	case nowMS >= f.ExpiresAt:
		return Expire
	}
	return Wait
}
