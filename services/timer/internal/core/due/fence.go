package due

import "sort"

// fence is one that raised the epoch: a history owner has taken over, and what
// an earlier one writes from here on is void (I12).
type fence struct {
	seq, epoch uint64
}

// fences are those that are in the store and raised the epoch, in order.
type fences []fence

// raise takes a fence in. One that raises nothing means nothing.
func (f *fences) raise(seq, epoch uint64) {
	if epoch > f.epoch() {
		*f = append(*f, fence{seq, epoch})
	}
}

// epoch is the one of the last fence; 0 where there is none. It never lowers.
func (f *fences) epoch() uint64 {
	if n := len(*f); n > 0 {
		return (*f)[n-1].epoch
	}
	return 0
}

// outdated reports whether m was written by a history owner that had been replaced. A message
// without an epoch is the timer's own.
func (f *fences) outdated(m *Message) bool {
	if m.Epoch == 0 {
		return false
	}
	before := sort.Search(len(*f), func(i int) bool { return (*f)[i].seq > m.Seq })
	return before > 0 && m.Epoch < (*f)[before-1].epoch
}

// purgeable names the fences that no one needs: of each message in the store
// that is outdated, of which first is the first one, the fence before it stays, so that an owner that loads the store
// finds it outdated too. The last one always stays.
func (f *fences) purgeable(first uint64) (Purge, bool) {
	n := 0
	for n+1 < len(*f) && (*f)[n+1].seq < first {
		n++
	}
	if n == 0 {
		return Purge{}, false
	}
	return Purge{Fences: true, UpTo: (*f)[n-1].seq}, true
}

// purged forgets fences that are gone.
func (f *fences) purged(upTo uint64) {
	n := 0
	for n < len(*f) && (*f)[n].seq <= upTo {
		n++
	}
	*f = append((*f)[:0], (*f)[n:]...)
}
