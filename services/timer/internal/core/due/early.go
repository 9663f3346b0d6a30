package due

// early is a stay that fires before it is due.
type early struct {
	// record is its key by its record, and so where that lies. at is its key by the early message, and before that.
	record, at Key
}

// byRecord tells whether it fires under the key of its record all the same: the round under way fires that one, and began without the early message.
func (x early) byRecord(l *Line) bool { return l.Round.spans(x.record) && !l.Round.spans(x.at) }

// record is the key of an entry by its record, and so where that lies.
func (t *Table) record(h handle) (k Key, isEarly bool) {
	if x, ok := t.early[h]; ok {
		return x.record, true
	}
	return t.entries.at(h).key(), false
}
