// Package caps keeps tasklists, and what they have of one group, near the cap of their queue (max_queued, max_queued_per_group), and order keys near
// theirs.
//
// Owns: what this frontend believes is queued of each such tasklist or group: what the owners of the partitions reported last, what this
// frontend has stored behind that, and what it has on its way to the log; and which order keys were full as of the last reports.
//
// Never does: refuse what is below the cap as of the last reports, and what this frontend has sent since. A task on its way to the
// log may be counted twice, until its acknowledgement comes.
//
// On failure: what it does not know of is missing, so more are admitted than the cap says, at most what all other frontends
// have sent since the last report. A frontend that has just started knows nothing before each owner has reported once. Of groups
// it remembers a bounded number; others are admitted uncounted.
package caps

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Queue is a tasklist with a cap, or what it has of one group.
type Queue struct {
	Domain, Tasklist string
	// Group is empty where it is the whole tasklist.
	Group string
}

// Tasks are some of a queue, on their way to the log. Most is its cap.
type Tasks struct {
	Of   Queue
	N    int64
	Most int64
}

// Book is what is known. It is not safe for concurrent use.
type Book struct {
	lists map[Queue]*list
	// parts is what each partition has of them.
	parts map[int]map[Queue]*part
	// counted is what the last report of each partition contains, by lane.
	counted map[int][]uint64
	// groups counts the queues of one group, groupsOf those of each domain.
	groups   int
	groupsOf map[string]int
}

// list is what is known of one queue.
type list struct {
	// queued is all that it has, underWay what of it is on its way.
	queued, underWay int64
	// parts counts the partitions that have some.
	parts int
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

const (
	// storedMax bounds what is remembered of a queue and partition: past it, neighbours become one.
	storedMax = 128
	// groupsMax bounds the groups of which something is remembered, some 300 bytes each. The last quarter is for domains that have
	// few of them, groupsFew at most: one with many leaves the others theirs (I14).
	groupsMax = 100_000
	groupsFew = groupsMax / 16
)

// NewBook makes an empty one.
func NewBook() *Book {
	return &Book{lists: make(map[Queue]*list), parts: make(map[int]map[Queue]*part), counted: make(map[int][]uint64), groupsOf: make(map[string]int)}
}

// Queued is how many tasks of a queue are queued, or on their way.
func (b *Book) Queued(of Queue) int64 {
	if l := b.lists[of]; l != nil {
		return l.queued
	}
	return 0
}

// Admit counts the tasks of a request as on their way, or none of them: full is the first of those that would exceed
// their cap, -1 = there is none. The caller of an admitted request calls Stored or Dropped for each. A tasklist that cannot be remembered loses its number.
func (b *Book) Admit(all []Tasks) (full int) {
	for i, t := range all {
		if b.Queued(t.Of)+t.N > t.Most {
			return i
		}
	}
	for i, t := range all {
		l := b.list(t.Of)
		if l == nil {
			all[i].N = 0
			continue
		}
		l.underWay += t.N
		l.queued += t.N
	}
	return -1
}

// list finds or makes the one of a queue; nil = there is no room for one more group.
func (b *Book) list(of Queue) *list {
	l := b.lists[of]
	if l != nil {
		return l
	}
	if of.Group != "" {
		if b.groups >= groupsMax || b.groups >= groupsMax-groupsMax/4 && b.groupsOf[of.Domain] >= groupsFew {
			return nil
		}
		b.groups++
		b.groupsOf[of.Domain]++
	}
	l = &list{}
	b.lists[of] = l
	return l
}

// Dropped tells that tasks that were admitted are not in the log, as far as is known. If they are, the owner will say so.
func (b *Book) Dropped(t Tasks) {
	if t.N == 0 {
		return
	}
	l := b.lists[t.Of]
	l.underWay -= t.N
	l.queued -= t.N
	b.tidy(t.Of, l)
}

// Stored tells that tasks that were admitted are in message seq of a lane of partition p.
func (b *Book) Stored(t Tasks, p int, lane ids.Lane, seq uint64) {
	if t.N == 0 {
		return
	}
	if counted := b.counted[p]; int(lane) < len(counted) && seq <= counted[lane] {
		b.Dropped(t) // a report has overtaken the acknowledgement
		return
	}
	l := b.lists[t.Of]
	l.underWay -= t.N
	at := b.part(p, t.Of, l)
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

// part finds or makes what partition p has of a queue.
func (b *Book) part(p int, of Queue, l *list) *part {
	at := b.parts[p][of]
	if at == nil {
		if b.parts[p] == nil {
			b.parts[p] = make(map[Queue]*part)
		}
		at = &part{}
		b.parts[p][of] = at
		l.parts++
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

// Report takes in what the owner of partition p says: what is queued there of tasklists and groups, none of those that it does not
// name; of each lane, up to where this is all that was submitted.
func (b *Book) Report(p int, queued map[Queue]int64, counted []uint64) {
	if b.counted[p] = counted; len(counted) == 0 {
		delete(b.counted, p)
	}
	for of, n := range queued {
		if n <= 0 {
			continue
		}
		if l := b.list(of); l != nil {
			b.part(p, of, l)
		}
	}
	for of, at := range b.parts[p] {
		l, before := b.lists[of], at.reported+at.sum
		at.reported = max(0, queued[of])
		at.forget(counted)
		l.queued += at.reported + at.sum - before
		if at.reported == 0 && len(at.stored) == 0 {
			delete(b.parts[p], of)
			l.parts--
			b.tidy(of, l)
		}
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

// tidy forgets a queue of which nothing is known.
func (b *Book) tidy(of Queue, l *list) {
	if l.underWay != 0 || l.parts != 0 {
		return
	}
	if delete(b.lists, of); of.Group == "" {
		return
	}
	b.groups--
	if b.groupsOf[of.Domain]--; b.groupsOf[of.Domain] == 0 {
		delete(b.groupsOf, of.Domain)
	}
}

// Counts are the tasks of a request by their queues.
type Counts struct {
	All []Tasks
	// Firsts is of each of All its first task in the request.
	Firsts []int
	at     map[Queue]int
	last   int // the one that was counted last
}

// Add counts one more task, the i-th.
func (c *Counts) Add(of Queue, most int64, i int) {
	if c.last < len(c.All) && c.All[c.last].Of == of {
		c.All[c.last].N++
		return
	}
	at, known := c.at[of]
	if !known {
		if at = len(c.All); c.at == nil {
			c.at = make(map[Queue]int)
		}
		c.at[of] = at
		c.All, c.Firsts = append(c.All, Tasks{Of: of, Most: most}), append(c.Firsts, i)
	}
	c.All[at].N++
	c.last = at
}

// Key is an order key of a domain.
type Key struct{ Domain, Name string }

// Keys are the order keys that have as many tasks as they may, by partition, as its owner reported last. The zero value knows of none.
type Keys struct{ full map[int]map[Key]int64 }

// Report takes in how many tasks the full keys of a partition have; any other key has room.
func (k *Keys) Report(partition int, full map[Key]int64) {
	if len(full) == 0 {
		delete(k.full, partition)
		return
	}
	if k.full == nil {
		k.full = make(map[int]map[Key]int64)
	}
	k.full[partition] = full
}

// Full is how many tasks a key has, if it is full; 0 = it is not.
func (k *Keys) Full(of Key) int64 {
	for _, full := range k.full {
		if n := full[of]; n > 0 {
			return n
		}
	}
	return 0
}
