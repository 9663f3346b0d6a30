package due

import (
	"iter"
	"slices"
	"strings"

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
// task of another domain is unknown to it (R2). The Stay is empty where the
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
	if e.place == placeChosen {
		return Stay{}, Fired
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

// Waiting counts the waiting tasks of a tasklist, or of all tasklists of the
// domain where tasklist is empty.
func (t *Table) Waiting(domain, tasklist string) int {
	if tasklist != "" {
		if q := t.groups.queues[queueKey{domain, tasklist}]; q != nil {
			return q.waiting
		}
		return 0
	}
	if d := t.lines.domains.byName[domain]; d != nil {
		return int(d.total.Tasks)
	}
	return 0
}

// Domains is what waits of some domains, without those of which nothing does. It looks at no tasklist.
func (t *Table) Domains(names iter.Seq[string]) map[string]Total {
	all := map[string]Total{}
	for name := range names {
		if d := t.lines.domains.byName[name]; d != nil && d.total.Tasks > 0 {
			all[name] = d.total
		}
	}
	return all
}

// Count is how many tasks of a tasklist wait.
type Count struct {
	Tasklist string
	Waiting  int
}

// Tasklists are the first limit tasklists of a domain with waiting tasks whose names come behind after,
// sorted by name.
func (t *Table) Tasklists(domain, after string, limit int) []Count {
	var found []Count
	for key, q := range t.groups.queues {
		if key.domain == domain && key.tasklist > after && q.waiting > 0 {
			found = append(found, Count{key.tasklist, q.waiting})
		}
	}
	slices.SortFunc(found, func(a, b Count) int { return strings.Compare(a.Tasklist, b.Tasklist) })
	return found[:min(limit, len(found))]
}

// Slots is where a Scan begins.
func (t *Table) Slots() uint32 { return t.entries.size }

// Scan visits the waiting tasks in up to n slots below a position, about from the newest to the oldest, and returns where to go on, 0 at the end. Between two
// calls tasks may come and go: each that waits all the while is visited once.
func (t *Table) Scan(below uint32, n int, visit func(Stay)) (next uint32) {
	next = below - min(below, uint32(n))
	for h := handle(below); uint32(h) > next; h-- {
		if t.entries.at(h-1).place != placeFree {
			visit(t.stay(h - 1))
		}
	}
	return next
}
