package due

// fence is one that raised the epoch: a history owner has taken over, and what
// an earlier one writes from here on is void (I12).
type fence struct {
	seq, epoch uint64
}

// raise takes a fence in. One that raises nothing means nothing.
func (t *Table) raise(seq, epoch uint64) {
	if epoch > t.epoch() {
		t.fences = append(t.fences, fence{seq, epoch})
	}
}

// epoch is the one of the last fence; 0 where there is none. It never lowers.
func (t *Table) epoch() uint64 {
	if n := len(t.fences); n > 0 {
		return t.fences[n-1].epoch
	}
	return 0
}

// outdated reports whether m was written by a history owner that had been replaced. A message
// without an epoch is the timer's own.
func (t *Table) outdated(m *Message) bool { return m.Epoch != 0 && m.Epoch < t.epoch() }

// fencesPurgeable names the fences that no one needs: of each message in the store
// that is outdated, the fence before it stays, so that an owner that loads the store
// finds it outdated too. The last one always stays.
func (t *Table) fencesPurgeable() (Purge, bool) {
	first := ^uint64(0)
	for _, b := range t.buckets {
		if len(b.outdated) > 0 {
			first = min(first, b.outdated[0])
		}
	}
	n := 0
	for n+1 < len(t.fences) && t.fences[n+1].seq < first {
		n++
	}
	if n == 0 {
		return Purge{}, false
	}
	return Purge{Fences: true, UpTo: t.fences[n-1].seq}, true
}

// fencesPurged forgets fences that are gone.
func (t *Table) fencesPurged(upTo uint64) {
	n := 0
	for n < len(t.fences) && t.fences[n].seq <= upTo {
		n++
	}
	t.fences = append(t.fences[:0], t.fences[n:]...)
}
