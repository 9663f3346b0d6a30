// Package caps keeps tasklists near the cap of their queue (max_queued).
//
// Owns: what this frontend believes is queued of each such tasklist: what the owners of the partitions reported last, what this
// frontend has stored behind that, and what it has on its way to the log.
//
// Never does: refuse what is below the cap as of the last reports, and what this frontend has sent since. What is on its way to the
// log may be counted twice, until its acknowledgement comes.
//
// On failure: what it does not know of is missing, so more are admitted than the cap says, at most what all other frontends
// have sent since the last report. A frontend that has just started knows nothing before each owner has reported once.
package caps

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Tasklist is one with a cap.
type Tasklist struct{ Domain, Name string }

// Tasks are some of a tasklist, on their way to the log. Most is its cap.
type Tasks struct {
	Of   Tasklist
	N    int64
	Most int64
}

// Book is what is known. It is not safe for concurrent use.
type Book struct {
	lists map[Tasklist]*list
	// counted is what the last report of each partition contains, by lane.
	counted map[int][]uint64
}

// list is what is known of one tasklist.
type list struct {
	underWay int64
	parts    map[int]*part
}

// part is what a partition has: as reported, and stored by this frontend behind what was reported.
type part struct {
	reported int64
	stored   []stored
	sum      int64 // of stored
}

// stored is some tasks, up to a message of a lane.
type stored struct {
	lane  ids.Lane
	seq   uint64
	tasks int64
}

// storedMax bounds what is remembered of a tasklist and partition: past it, neighbours become one.
const storedMax = 128

// NewBook makes an empty one.
func NewBook() *Book { return &Book{lists: make(map[Tasklist]*list), counted: make(map[int][]uint64)} }

// Queued is how many tasks of a tasklist are queued, or on their way.
func (b *Book) Queued(of Tasklist) int64 {
	l := b.lists[of]
	if l == nil {
		return 0
	}
	n := l.underWay
	for _, p := range l.parts {
		n += p.reported + p.sum
	}
	return n
}

// Admit counts the tasks of a request as on their way, or none of them: full is the first of those that would exceed
// their cap, -1 = there is none. Who is admitted calls Stored or Dropped for each.
func (b *Book) Admit(all []Tasks) (full int) {
	for i, t := range all {
		if b.Queued(t.Of)+t.N > t.Most {
			return i
		}
	}
	for _, t := range all {
		l := b.lists[t.Of]
		if l == nil {
			l = &list{parts: make(map[int]*part)}
			b.lists[t.Of] = l
		}
		l.underWay += t.N
	}
	return -1
}

// Dropped tells that tasks that were admitted are not in the log, as far as is known. If they are, the owner will say so.
func (b *Book) Dropped(t Tasks) {
	l := b.lists[t.Of]
	l.underWay -= t.N
	b.tidy(t.Of, l)
}

// Stored tells that tasks that were admitted are in message seq of a lane of partition p.
func (b *Book) Stored(t Tasks, p int, lane ids.Lane, seq uint64) {
	l := b.lists[t.Of]
	l.underWay -= t.N
	if counted := b.counted[p]; int(lane) < len(counted) && seq <= counted[lane] {
		b.tidy(t.Of, l) // a report has overtaken the acknowledgement
		return
	}
	at := l.part(p)
	at.sum += t.N
	if n := len(at.stored); n > 0 && at.stored[n-1].lane == lane && at.stored[n-1].seq == seq {
		at.stored[n-1].tasks += t.N
		return
	}
	if len(at.stored) >= storedMax {
		at.halve()
	}
	at.stored = append(at.stored, stored{lane, seq, t.N})
}

func (l *list) part(p int) *part {
	at := l.parts[p]
	if at == nil {
		at = &part{}
		l.parts[p] = at
	}
	return at
}

// halve makes one of two of a lane. They are remembered until the later of them is reported.
func (p *part) halve() {
	var single [ids.Lanes]bool
	var last [ids.Lanes]int
	kept := p.stored[:0]
	for _, s := range p.stored {
		if single[s.lane] {
			k := &kept[last[s.lane]]
			k.seq, k.tasks = max(k.seq, s.seq), k.tasks+s.tasks
		} else {
			last[s.lane], kept = len(kept), append(kept, s)
		}
		single[s.lane] = !single[s.lane]
	}
	p.stored = kept
}

// Report takes in what the owner of partition p says: what is queued there of tasklists, none of those that it does not
// name; of each lane, up to where this is all that was submitted.
func (b *Book) Report(p int, queued map[Tasklist]int64, counted []uint64) {
	if b.counted[p] = counted; len(counted) == 0 {
		delete(b.counted, p)
	}
	for of, n := range queued {
		l := b.lists[of]
		if l == nil && n > 0 {
			l = &list{parts: make(map[int]*part)}
			b.lists[of] = l
		}
		if l != nil {
			l.part(p).reported = max(0, n)
		}
	}
	for of, l := range b.lists {
		at := l.parts[p]
		if at == nil {
			continue
		}
		if _, named := queued[of]; !named {
			at.reported = 0
		}
		at.forget(counted)
		if at.reported == 0 && len(at.stored) == 0 {
			delete(l.parts, p)
		}
		b.tidy(of, l)
	}
}

// forget drops what is contained in a report. An owner that does not say up to where it has counted counts nothing.
func (p *part) forget(counted []uint64) {
	kept := p.stored[:0]
	for _, s := range p.stored {
		if int(s.lane) < len(counted) && s.seq > counted[s.lane] {
			kept = append(kept, s)
		} else {
			p.sum -= s.tasks
		}
	}
	p.stored = kept
}

// tidy forgets a tasklist of which nothing is known.
func (b *Book) tidy(of Tasklist, l *list) {
	if l.underWay == 0 && len(l.parts) == 0 {
		delete(b.lists, of)
	}
}
