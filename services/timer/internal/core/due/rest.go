package due

// firstMost is how many buckets are loaded before an owner fires, at most. With more, all of the store is.
const firstMost = 1000

// rest is what is loaded last, while the owner fires: the messages of all buckets but some.
type rest struct {
	// end is the last sequence of it.
	end uint64
	// first are the buckets that were loaded before.
	first map[int64]bool
}

// NearFirst chooses the buckets that are loaded before the owner fires, those of a store that has some buckets and ends at a sequence: the near ones, and
// those that the early messages from Cursor.EarlyFrom to the end are in. It comes after Resume. With ok the messages of first and the fences go to Load, the
// others up to the end go to LoadRest after Loaded, both in order. Until Whole no early message goes to Load that is behind the end. Without ok all
// messages go to Load.
func (t *Table) NearFirst(buckets, early []int64, end uint64) (first []int64, ok bool) {
	wanted := map[int64]bool{}
	for _, number := range early {
		wanted[number] = true
	}
	for _, number := range buckets {
		if wanted[number] = wanted[number] || !t.horizon.isFar(number); wanted[number] {
			first = append(first, number)
		}
	}
	if t.lines.cursor.EarlyFrom == 0 || len(first) == len(buckets) || len(first) > firstMost {
		return nil, false
	}
	t.rest = &rest{end: end, first: wanted}
	return first, true
}

// LoadRest adds what a message holds that was not loaded first, and returns how many of its tasks are void. Its early messages have fired what they name,
// or count for nothing.
func (t *Table) LoadRest(m Message) (outdated int) {
	t.mustNotBeFiring()
	if m.Fence || m.Seq > t.rest.end || t.rest.first[m.Bucket] {
		return 0
	}
	t.earlyFar(&m)
	if t.file(&m) {
		return len(m.Tasks)
	}
	t.addTasks(&m)
	return 0
}

// Whole says that all that was in the store went to LoadRest.
func (t *Table) Whole() { t.rest = nil }

// earlyFrom is the first sequence from which on early messages may be unknown to a cursor: it covers neither of the two keys of what they fire.
func (t *Table) earlyFrom(c *Cursor) uint64 {
	from := t.lastSeq + 1
	for h, x := range t.early {
		domain := t.lines.domainOf(t.entries.at(h)).name
		if !c.Fired(domain, x.at) && !c.Fired(domain, x.record) {
			from = min(from, x.at.Seq)
		}
	}
	return from
}
