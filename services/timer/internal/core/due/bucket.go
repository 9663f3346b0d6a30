package due

import (
	"cmp"
	"math"
	"slices"
)

// bucket counts what the messages of one bucket of the store still hold.
type bucket struct {
	// live tasks are near and still to be fired.
	live int
	// far counts those that are not near, by kind, waiting how many. isFar: records of it are to be read when it comes near.
	far     map[groupHandle]farCount
	waiting int
	isFar   bool
	// lastSeq is its last message, lastTasks the last one with tasks.
	lastSeq, lastTasks uint64
	// outdated are the sequences of its messages of replaced history owners, in order.
	outdated []uint64
}

// farCount is how many tasks of a bucket wait that are not near, those of one kind. The bytes are right for a domain as a whole.
type farCount struct {
	tasks int
	bytes int64
}

// buckets are those of which the store has messages.
type buckets struct {
	groups *groups
	all    map[int32]*bucket
	// last is the highest number that a bucket has had.
	last int32
	// waiting is how many tasks wait that are not near.
	waiting int
}

func (bs *buckets) at(number int32) *bucket {
	b := bs.all[number]
	if b == nil {
		b = &bucket{}
		bs.all[number], bs.last = b, max(bs.last, number)
	}
	return b
}

// file counts a message.
func (bs *buckets) file(m *Message, void bool) {
	b := bs.at(int32(m.Bucket))
	b.lastSeq = max(b.lastSeq, m.Seq)
	if len(m.Tasks) > 0 {
		b.lastTasks = max(b.lastTasks, m.Seq)
	}
	if void {
		at, _ := slices.BinarySearch(b.outdated, m.Seq)
		b.outdated = slices.Insert(b.outdated, at, m.Seq)
	}
}

// count counts tasks of a bucket that are not near, or are no longer.
func (bs *buckets) count(number int32, of *Group, tasks int, bytes int64) {
	b := bs.at(number)
	b.waiting, bs.waiting = b.waiting+tasks, bs.waiting+tasks
	var kind Group
	if tasks > 0 {
		kind = bs.kindFor(of)
	} else {
		kind = bs.kindOf(b, of)
	}
	g := bs.groups.take(kind)
	c, known := b.far[g]
	if known {
		bs.groups.drop(g)
	} else {
		bs.begin(b, g)
	}
	c = farCount{c.tasks + tasks, c.bytes + bytes}
	b.far[g] = c
	if bs.groups.at(g).queue.count(tasks, bytes); c == (farCount{}) {
		bs.drop(b, g)
	}
}

// begin has a bucket count a kind.
func (bs *buckets) begin(b *bucket, g groupHandle) {
	if b.far == nil {
		b.far = map[groupHandle]farCount{}
	}
	d := bs.groups.at(g).queue.domain
	if d.kinds == nil {
		d.kinds, d.tasklists = map[groupHandle]int{}, map[string]int{}
	}
	if d.kinds[g]++; d.kinds[g] == 1 {
		d.tasklists[bs.groups.at(g).Tasklist]++
	}
}

// drop forgets what a bucket counts of a kind.
func (bs *buckets) drop(b *bucket, g groupHandle) {
	c, q := b.far[g], bs.groups.at(g).queue
	delete(b.far, g)
	q.count(-c.tasks, -c.bytes)
	d, tasklist := q.domain, bs.groups.at(g).Tasklist
	if d.kinds[g]--; d.kinds[g] == 0 {
		delete(d.kinds, g)
		if d.tasklists[tasklist]--; d.tasklists[tasklist] == 0 {
			delete(d.tasklists, tasklist)
		}
	}
	bs.groups.drop(g)
}

// nearUpTo has no bucket far up to one. It returns the next one that is, and how many tasks of the others the store did not have.
func (bs *buckets) nearUpTo(last int32) (next int32, lost int) {
	next = math.MaxInt32
	for number, b := range bs.all {
		switch {
		case !b.isFar:
		case number > last:
			next = min(next, number)
		default:
			lost += b.waiting
			for g := range b.far {
				bs.drop(b, g)
			}
			b.isFar, b.waiting, b.far = false, 0, nil
		}
	}
	bs.waiting -= lost
	return next, lost
}

// fitting are the first far buckets up to one that come near, as many as fit beside what is near, and one at least if nothing fires before that. Most is how
// many tasks may be near up to a bucket.
func (bs *buckets) fitting(upTo int32, near int, most func(bucket int32) int, fires bool) (numbers []int64) {
	for number, b := range bs.all {
		if b.isFar && number <= upTo {
			numbers = append(numbers, int64(number))
		}
	}
	slices.Sort(numbers)
	before := near
	for i, number := range numbers {
		near += bs.all[int32(number)].waiting
		most := most(int32(number))
		if near > most/4*3 && (i > 0 || fires && before > most/2) || i == bucketsTogether {
			return numbers[:i]
		}
	}
	return numbers
}

// firstOutdated is the first message of a replaced history owner.
func (bs *buckets) firstOutdated() uint64 {
	first := ^uint64(0)
	for _, b := range bs.all {
		if len(b.outdated) > 0 {
			first = min(first, b.outdated[0])
		}
	}
	return first
}

// Purge names messages that no one needs: those of a bucket up to a sequence, or
// the fences up to there.
type Purge struct {
	Bucket int64
	UpTo   uint64
	Fences bool
}

// Purgeable returns the buckets of which everything was fired or is void, and
// whose last message with tasks is not above parked, which is how far history is known to
// remember what it parked. End is the store's last sequence, asked for after
// parked: nothing is purgeable until all up to there has been loaded.
//
// A second copy of a record is written only by who cannot know of the first,
// that is, while the first is above parked; so all copies are loaded by then. A
// bucket goes as a whole: an early message must not go before the record that it fires, nor
// a fired record before its copy.
//
// The newest message of the store always stays, so that the store remembers how
// far its sequences have come; a cursor would otherwise cover tasks yet to be written.
//
// Fences go when Purged has reported that the messages they void are gone.
func (t *Table) Purgeable(parked, end uint64) []Purge {
	if t.lastSeq < end || t.rest != nil {
		return nil
	}
	var all []Purge
	for number, b := range t.buckets.all {
		if b.live == 0 && !b.isFar && b.lastTasks <= parked && b.lastSeq < t.lastSeq {
			all = append(all, Purge{Bucket: int64(number), UpTo: b.lastSeq})
		}
	}
	slices.SortFunc(all, func(a, b Purge) int { return cmp.Compare(a.Bucket, b.Bucket) })
	if p, ok := t.fences.purgeable(t.buckets.firstOutdated()); ok {
		all = append(all, p)
	}
	return all
}

// Purged forgets what messages held that are gone.
func (t *Table) Purged(p Purge) {
	if p.Fences {
		t.fences.purged(p.UpTo)
		return
	}
	b, ok := t.buckets.all[int32(p.Bucket)]
	if !ok {
		return
	}
	for len(b.outdated) > 0 && b.outdated[0] <= p.UpTo {
		b.outdated = b.outdated[1:]
	}
	if b.live == 0 && b.lastSeq <= p.UpTo {
		delete(t.buckets.all, int32(p.Bucket))
	}
}
