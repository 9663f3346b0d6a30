package due

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// A cancel goes in this order: Tombstones are stored; Cancel, for each of those
// that were; the cursor, while Unfenced; Answer. The cursor proves two things about
// a tombstone that is older than it. If another owner has fired since this one read
// the cursor, the log refuses it, and this owner answers nothing. If the log takes it, who
// has not read the tombstone starts again before it fires, and reads the store after the
// cursor. So it has to follow the tombstones of other owners, too: an owner that was
// overtaken reads them like any other, and does not know what was fired.

// Wanted is a task that somebody wants cancelled.
type Wanted struct {
	ID ids.TaskID
	// Domain is the caller's; empty = a service of ours. A task of another domain
	// is left alone and not reported.
	Domain string
	// UpTo: only a stay that the store has up to this sequence; 0 = any. A task that was taken out may be parked again,
	// and a call that comes late must not find that.
	UpTo uint64
	// Epoch is that of the history owner that asks; 0 = not known. One that has been replaced takes nothing out.
	Epoch uint64
}

// Tombstones voids tasks of one bucket.
type Tombstones struct {
	Bucket int64
	All    []Tombstone
}

// Answer tells what became of the tasks of a cancel. A task that the table does
// not know, or that is another domain's, is in neither list.
type Answer struct {
	// Cancelled are void, now or since before; their records are still stored.
	Cancelled []Ref
	// Fired recently. A task that is in Cancelled too was void before: another owner may have fired it before it knew that, or
	// what came of it when it was taken out.
	Fired []Fate
	// Undone: a task still waits, or its cancel is not final.
	Undone bool
}

// Fate is where a fired task went.
type Fate struct {
	ID ids.TaskID
	// LogSeq is its place in the history log; 0 = not known.
	LogSeq uint64
}

// Tombstones returns what must be stored to cancel those of all that wait.
func (t *Table) Tombstones(all []Wanted) []Tombstones {
	var want []Tombstones
	seen := make(map[ids.TaskID]bool, len(all))
	at := map[int64]int{}
	for _, w := range all {
		stay, status := t.FindWanted(w)
		if seen[w.ID] || status != Waiting || t.Replaced(w) {
			continue
		}
		seen[w.ID] = true
		i, ok := at[stay.Bucket]
		if !ok {
			i = len(want)
			at[stay.Bucket] = i
			want = append(want, Tombstones{Bucket: stay.Bucket})
		}
		want[i].All = append(want[i].All, Tombstone{ID: w.ID, UpTo: stay.Parkings})
	}
	slices.SortFunc(want, func(a, b Tombstones) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return want
}

// Replaced tells whether a newer history owner than the one that asks has fenced the store.
func (t *Table) Replaced(w Wanted) bool { return w.Epoch != 0 && w.Epoch < t.epoch() }

// FindWanted is Find for what somebody wants cancelled.
func (t *Table) FindWanted(w Wanted) (Stay, Status) {
	stay, status := t.Find(w.ID, w.Domain)
	if w.UpTo > 0 && stay.Seq > w.UpTo && (status == Waiting || status == Cancelled) {
		return Stay{}, Unknown
	}
	return stay, status
}

// Cancel makes a waiting task void; its tombstone has been stored. Of any
// other task it does nothing.
func (t *Table) Cancel(id ids.TaskID) {
	t.mustNotBeFiring()
	if h, ok := t.byID.find(id); ok && t.entries.at(h).live() {
		t.void(h)
		t.entries.at(h).place = placeTaken
		t.bucket(t.entries.at(h).bucket).unread = true
	}
}

// Unfenced tells that there are tombstones, of whichever owner, that this one has stored no
// cursor after, or that there may be.
func (t *Table) Unfenced() bool { return t.unfenced }

// Fenced says that the cursor as it stands was stored.
func (t *Table) Fenced() { t.unfenced = false }

// Answer tells what became of a cancel, at its end.
func (t *Table) Answer(all []Wanted) Answer {
	var a Answer
	seen := make(map[Wanted]bool, len(all))
	for _, w := range all {
		if seen[w] {
			continue
		}
		seen[w] = true
		if t.Replaced(w) {
			a.Undone = true
			continue
		}
		switch stay, status := t.FindWanted(w); status {
		case Waiting:
			a.Undone = true
		case Cancelled:
			a.Cancelled = append(a.Cancelled, stay.Ref)
			if t.taken(w.ID) == nil {
				a.Fired = append(a.Fired, Fate{ID: w.ID})
			}
			a.Undone = a.Undone || t.unfenced
		case Fired:
			a.Fired = append(a.Fired, Fate{ID: w.ID, LogSeq: stay.LogSeq})
		}
	}
	if !a.Undone {
		for _, ref := range a.Cancelled {
			if e := t.taken(ref.ID); e != nil {
				e.place = placeVoid
			}
		}
	}
	return a
}

// taken is the entry of a task that a call has made void, if none was answered so; else nil.
func (t *Table) taken(id ids.TaskID) *entry {
	h, ok := t.byID.find(id)
	if !ok || t.entries.at(h).place != placeTaken {
		return nil
	}
	return t.entries.at(h)
}
