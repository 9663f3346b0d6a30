package archive

import (
	"encoding/binary"
	"math"
)

// run is a table in a reader's memory. A span gets a page each time the index follows, so one that many tasks were
// created in has hundreds; merged as they are read, in runs of which each is at least twice as long as the next, it has
// a few.
type run struct {
	Table
	last uint64 // the last message that it names
}

func newRun(t Table) run {
	r := run{Table: t}
	for i := range t.entries() {
		r.last = max(r.last, t.message(i))
	}
	return r
}

// appendRun adds the table of a later page; one that is not well-formed finds nothing.
func appendRun(runs []run, t Table) []run {
	if !t.WellFormed() || t.entries() == 0 {
		return runs
	}
	last := newRun(t)
	for n := len(runs); n > 0; n-- {
		before := runs[n-1]
		if before.entries() >= 2*last.entries() || before.reach(last) > math.MaxUint16 {
			break
		}
		last, runs = before.merge(last), runs[:n-1]
	}
	return append(runs, last)
}

// reach is from the first message of two runs to the last; an offset must hold it.
func (r run) reach(o run) uint64 { return max(r.last, o.last) - min(r.Base, o.Base) }

// merge makes one run of two. Where both have a fingerprint, the places ascend.
func (r run) merge(o run) run {
	n := r.entries() + o.entries()
	m := run{last: max(r.last, o.last), Table: Table{
		Base:         min(r.Base, o.Base),
		Fingerprints: make([]byte, 0, n*fingerprintBytes),
		Offsets:      make([]byte, 0, n*offsetBytes),
	}}
	for i, k := 0, 0; i+k < n; {
		from, at := &r, &i
		if i == r.entries() || k < o.entries() && o.before(k, r, i) {
			from, at = &o, &k
		}
		m.Fingerprints = binary.BigEndian.AppendUint64(m.Fingerprints, from.at(*at))
		m.Offsets = binary.BigEndian.AppendUint16(m.Offsets, uint16(from.message(*at)-m.Base))
		*at++
	}
	return m
}

// before tells whether entry k of r belongs before entry i of o.
func (r run) before(k int, o run, i int) bool {
	a, b := r.at(k), o.at(i)
	return a < b || a == b && r.message(k) < o.message(i)
}
