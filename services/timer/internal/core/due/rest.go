package due

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

// firstMost is how many buckets are loaded before an owner fires, at most. With more, all of the store is.
const firstMost = 1000

// rest is what is loaded last, while the owner fires: the messages of all buckets but some.
type rest struct {
	// end is the last sequence of it.
	end uint64
	// first are the buckets that were loaded before.
	first map[int64]bool
}

// Rest has a table load what is due soon first, and the rest while it fires.
type Rest struct{ *Table }

// NearFirst chooses the buckets that are loaded before the owner fires, those of a store that has some buckets and ends at a sequence: the near ones, and
// those that the early messages from Cursor.EarlyFrom to the end are in. It comes after Resume. With ok the messages of first and the fences go to Load, the
// others up to the end go to Rest.Load after Loaded, both in order. Until Whole no early message goes to Load that is behind the end. Without ok all
// messages go to Load.
func (t Rest) NearFirst(buckets, early []int64, end uint64) (first []int64, ok bool) {
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

// Load adds what a message holds that was not loaded first, and returns how many of its tasks are void. Its early messages have fired what they name,
// or count for nothing. Those are older than all that fired since, and put none of it out of memory.
func (t Rest) Load(m Message) (outdated int) {
	t.mustNotBeFiring()
	if m.Fence || m.Seq > t.rest.end || t.rest.first[m.Bucket] {
		return 0
	}
	t.earlyFar(&m, false)
	return t.addAll(&m)
}

// addAll adds the tasks of a message, and returns how many of them are void.
func (t Rest) addAll(m *Message) (void int) {
	outdated := t.fences.outdated(m)
	if t.buckets.file(m, outdated); outdated {
		return len(m.Tasks)
	}
	isFar := t.horizon.isFar(m.Bucket)
	for i := range m.Tasks {
		task, at := &m.Tasks[i], far.Place{Seq: m.Seq, Index: uint32(i)}
		switch {
		case task.ID == (ids.TaskID{}):
		case isFar:
			t.addFar(at, int32(m.Bucket), task)
		default:
			t.add(at, int32(m.Bucket), task)
		}
	}
	return 0
}

// Whole says that all that was in the store went to Load.
func (t Rest) Whole() { t.rest = nil }

// earlyFar notes which tasks that are not near an early message has fired, by the cursor, and names the others. Those that have fired are
// among the recent ones, in place of others only with always.
func (t Rest) earlyFar(m *Message, always bool) (needed []Ref) {
	for i, one := range m.Early {
		if h, near := t.byID.find(one.ID); near && t.entries.at(h).parkings == one.Generation {
			continue
		}
		marked, ok := t.far.Has(one.ID, one.Place)
		if !ok || marked {
			continue
		}
		at := Key{DueMS: m.AtMS, Seq: m.Seq, Index: uint32(i)}
		if t.lines.cursor.Fired(m.Domain, at) {
			t.far.Mark(one.ID, one.Place)
			of := Group{Domain: m.Domain, Tasklist: m.Tasklist}
			t.buckets.count(int32(m.Bucket), &of, -1, -int64(one.Bytes))
			if always || t.recent.hasRoom() {
				t.recent.remember(one.ID, one.Generation, of, t.nowMS)
			}
			continue
		}
		needed = append(needed, Ref{Seq: one.Place.Seq, Index: one.Place.Index, ID: one.ID})
	}
	return needed
}

// Renew returns the cursor of a chunk without tasks, which speaks of all early messages up to now. It is stored as other chunks are, and ends with Commit.
func (t Rest) Renew() Cursor {
	t.mustNotBeFiring()
	t.next = t.lines.cursor
	t.next.EarlyFrom = t.earlyFrom(&t.next)
	return t.next
}

// earlyFrom is the first sequence from which on early messages may be unknown to a cursor: it covers neither of the two keys of what they fire.
func (t Rest) earlyFrom(c *Cursor) uint64 {
	from := t.lastSeq + 1
	for h, x := range t.early {
		domain := t.lines.domainOf(t.entries.at(h)).name
		if !c.Fired(domain, x.at) && !c.Fired(domain, x.record) {
			from = min(from, x.at.Seq)
		}
	}
	return from
}
