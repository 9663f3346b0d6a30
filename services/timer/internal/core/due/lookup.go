package due

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Status is what the table knows of a task.
type Status uint8

const (
	// Unknown: it is not here, or was purged.
	Unknown Status = iota
	// Waiting: it will fire when due.
	Waiting
	// Fired: it was fired recently, or is about to be and cannot be stopped.
	Fired
	// Loading: it is known as soon as its bucket is near.
	Loading
)

// Stay is one task in the store.
type Stay struct {
	Ref
	// DueMS is when it is due, Unix ms. With Early it fires before that.
	DueMS  int64
	Early  bool
	Bucket int64
	Group  Group
	// Bytes is the size of its record, Parkings its number among those of its task.
	Bytes    int
	Parkings uint32
	// LogSeq is, of a fired one, its place in the history log; 0 = not known.
	LogSeq uint64
}

// Find tells about a task to a caller of a domain, empty = a service of ours: a
// task of another domain is unknown to it (R2). If it is not Waiting, it may wait at its Places. The Stay is empty where the
// status is Unknown, and has only LogSeq where it is Fired.
func (t *Table) Find(id ids.TaskID, domain string) (Stay, Status) {
	h, ok := t.byID.find(id)
	if !ok {
		fired := t.recent.find(id)
		if fired == nil || !t.ofDomain(fired.group, domain) {
			return Stay{}, Unknown
		}
		return Stay{LogSeq: fired.logSeq}, Fired
	}
	e := t.entries.at(h)
	if !t.ofDomain(e.group, domain) {
		return Stay{}, Unknown
	}
	switch e.place {
	case placeChosen:
		return Stay{}, Fired
	case placeLoading:
		return Stay{}, Loading
	}
	return t.stay(h), Waiting
}

func (t *Table) ofDomain(h groupHandle, domain string) bool {
	return domain == "" || t.groups.at(h).Domain == domain
}

func (t *Table) stay(h handle) Stay {
	e := t.entries.at(h)
	record, isEarly := t.record(h)
	return Stay{
		Ref: Ref{Seq: record.Seq, Index: record.Index, ID: e.id}, DueMS: record.DueMS, Early: isEarly, Bucket: int64(e.bucket),
		Group: t.groups.at(e.group).Group, Bytes: int(e.bytes), Parkings: e.parkings,
	}
}

// Lose forgets a waiting task whose record is no longer in the store.
func (t *Table) Lose(id ids.TaskID) {
	t.mustNotBeFiring()
	if h, ok := t.byID.find(id); ok {
		t.remove(h)
		t.lines.endRounds()
	}
}

// Slots is where a Scan begins.
func (t *Table) Slots() uint32 { return t.entries.size }

// Scan visits the waiting tasks in up to n slots below a position, about from the newest to the oldest, and returns where to go on, 0 at the end. Between two
// calls tasks may come and go: each that waits all the while is visited once.
func (t *Table) Scan(below uint32, n int, visit func(Stay)) (next uint32) {
	next = below - min(below, uint32(n))
	for h := handle(below); uint32(h) > next; h-- {
		if p := t.entries.at(h - 1).place; p != placeFree && p != placeLoading {
			visit(t.stay(h - 1))
		}
	}
	return next
}
