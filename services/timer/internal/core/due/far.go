package due

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

// Far are the tasks of a table that wait and are not near. It is valid until the next change.
type Far struct {
	near    *index
	entries *slab
	index   *far.Index
	recent  *recent
	buckets *buckets
	horizon *horizon
}

// Far are the tasks that are not near.
func (t *Table) Far() Far {
	return Far{near: &t.byID, entries: &t.entries, index: &t.far, recent: t.recent, buckets: &t.buckets, horizon: &t.horizon}
}

// ApproachMS is when Table.Approach has something to do next, Unix ms, unless buckets are being loaded or there is no room for their tasks.
func (f Far) ApproachMS() int64 { return f.horizon.approachMS() }

// Places are where a task may lie that is not near; nil = it is near or not here. All of them are to be read for Waits or Table.Bring.
func (f Far) Places(id ids.TaskID) []far.Place {
	if h, near := f.near.find(id); near && f.entries.at(h).place != placeLoading {
		return nil
	}
	return f.index.Places(id)
}

// Waits picks the record by which a task waits, of those at its places. It is false if it waits there no more, or is of another domain
// than the caller's, empty = a service of ours.
func (f Far) Waits(all []Reread, domain string) (Reread, bool) {
	picked, ok := f.picked(all)
	return picked, ok && (domain == "" || picked.Task.Group.Domain == domain)
}

// Has reports whether the record at a place is that of a task that waits.
func (f Far) Has(id ids.TaskID, at far.Place) bool {
	marked, ok := f.index.Has(id, at)
	return ok && !marked
}

// Lose forgets tasks that an early message names, since the store has no records of them.
func (f Far) Lose(m *Message) {
	for _, one := range m.Early {
		if f.index.Mark(one.ID, one.Place) {
			f.buckets.count(int32(m.Bucket), &Group{Domain: m.Domain, Tasklist: m.Tasklist}, -1, -int64(one.Bytes))
		}
	}
}

// picked is the last stay of a task, by its first record, if it waits.
func (f Far) picked(all []Reread) (best Reread, ok bool) {
	fired := false
	for _, a := range all {
		marked, here := f.index.Has(a.Task.ID, a.Place)
		switch {
		case !here || ok && a.Task.Parkings < best.Task.Parkings:
		case ok && a.Task.Parkings == best.Task.Parkings:
			fired = fired || marked
			if a.Seq < best.Seq || a.Seq == best.Seq && a.Index < best.Index {
				best = a
			}
		default:
			best, ok, fired = a, true, marked
		}
	}
	return best, ok && !fired && !f.recent.has(best.Task.ID, best.Task.Parkings)
}
