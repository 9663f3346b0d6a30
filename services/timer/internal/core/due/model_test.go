package due

import (
	"maps"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// The model: one store, one history log with the cursor, history owners of which
// all but the last have been replaced, and two timer owners, with clocks of their
// own, that both believe to be the one. Everything that a real owner does in several steps
// is cut into those steps, so that the other may come between any two.

type stay struct {
	id       ids.TaskID
	parkings uint32
}

type world struct {
	now        int64
	store      []Message       // by sequence - 1
	epoch      uint64          // of the last history owner
	outdated   map[uint64]bool // sequences of messages of replaced ones
	purged     map[uint64]bool
	checkpoint uint64
	cursor     Cursor
	cursorSeq  uint64 // the history log ends with the cursor
	before     Cursor // the one before the last, at beforeSeq
	beforeSeq  uint64
	fired      map[stay]int
	written    map[stay]uint64 // sequence of the first copy
	dueOf      map[stay]int64
	earlyAt    map[stay]int64 // since when it fires, though it is not due
	owners     [2]*owner
	epochs     uint64
	limits     Limits
	random     *rand.Rand
}

type owner struct {
	table *Table
	skew  int64
	read  uint64 // messages read
	known uint64 // sequence of the cursor it builds upon
	chunk *Chunk
	purge []Purge
	// checkpoint and end of the store, as read by a purge that is under way
	parked, end uint64
	// near are the buckets that are being loaded, up to a sequence, from one on.
	near       []int64
	upTo, from uint64
	// rest is the first sequence of what is loaded last, to restEnd; 0 = all is loaded.
	rest, restEnd uint64
}

const testMinute = 60_000

// testBucket is the width of the model's buckets: most tasks are not near when they are written. testNear of them are.
const (
	testBucket = 1000
	testNear   = 8
)

// testDomains is how many domains tasks are of, by their ids.
const testDomains = 4

func (w *world) append(m Message) uint64 {
	m.Seq = uint64(len(w.store)) + 1
	w.outdated[m.Seq] = len(m.Tasks) > 0 && m.Epoch != 0 && m.Epoch < w.epoch
	w.store = append(w.store, m)
	return m.Seq
}

func (w *world) reload(o *owner, recentMost int) {
	w.epochs++
	*o = owner{
		table: New(Config{FiredKeepMS: 1 << 40, FiredMost: recentMost, BucketMS: testBucket, HorizonMS: 2 * testBucket, NearMost: testNear}),
		skew:  w.random.Int64N(1000) - 500,
	}
	if w.random.IntN(3) == 0 {
		o.skew = w.random.Int64N(2*testHour) - testHour
	}
	cursor := w.cursor
	if o.known = w.cursorSeq; w.random.IntN(8) == 0 { // another one fires while this one loads
		cursor, o.known = w.before, w.beforeSeq
	}
	o.table.Resume(cursor, w.epochs, w.now+o.skew)
	w.load(o, cursor.EarlyFrom)
	o.table.Loaded()
}

// load loads what an owner is to know before it fires.
func (w *world) load(o *owner, earlyFrom uint64) {
	all, end := map[int64]bool{}, uint64(len(w.store))
	var early []int64
	for _, m := range w.store {
		if w.purged[m.Seq] || m.Fence {
			continue
		}
		if all[m.Bucket] = true; m.Seq >= earlyFrom && len(m.Early) > 0 {
			early = append(early, m.Bucket)
		}
	}
	first, ok := Rest{o.table}.NearFirst(slices.Sorted(maps.Keys(all)), early, end)
	if !ok {
		w.feed(o, len(w.store))
		return
	}
	for _, m := range w.store {
		if !w.purged[m.Seq] && (m.Fence || slices.Contains(first, m.Bucket)) {
			w.arrive(o, m)
		}
	}
	o.read, o.rest, o.restEnd = end, 1, end
}

// loadRest loads up to n messages of what is loaded last.
func (w *world) loadRest(o *owner, n int) bool {
	if o.rest == 0 {
		return false
	}
	for ; n > 0 && o.rest <= o.restEnd; o.rest++ {
		if m := w.store[o.rest-1]; !w.purged[m.Seq] {
			Rest{o.table}.Load(m)
			n--
		}
	}
	if o.rest > o.restEnd {
		Rest{o.table}.Whole()
		o.rest = 0
	}
	return true
}

func (w *world) feed(o *owner, n int) {
	for ; n > 0 && o.read < uint64(len(w.store)); n-- {
		m := w.store[o.read]
		if o.rest > 0 && len(m.Early) > 0 {
			return // it waits
		}
		o.read++
		if !w.purged[m.Seq] {
			w.arrive(o, m)
		}
	}
}

func (w *world) arrive(o *owner, m Message) {
	for _, r := range o.table.EarlyFar(&m) {
		if w.bring(o, r.ID); w.purged[r.Seq] {
			o.table.Far().Lose(&m)
		}
	}
	o.table.Load(m)
}

// again reads the records where a task may lie that is not near.
func (w *world) again(o *owner, id ids.TaskID) (all []Reread) {
	for _, at := range o.table.Far().Places(id) {
		m := w.store[at.Seq-1]
		if !w.purged[at.Seq] && m.Tasks[at.Index].ID == id {
			all = append(all, Reread{Place: at, Task: m.Tasks[at.Index]})
		}
	}
	return all
}

func (w *world) bring(o *owner, id ids.TaskID) {
	if all := w.again(o, id); len(all) > 0 {
		o.table.Bring(all)
	}
}

// approach has buckets come near, and reads up to n of their messages.
func (w *world) approach(o *owner, n int) bool {
	if o.near == nil {
		if o.near, o.upTo = o.table.Approach(w.now + o.skew); o.near == nil {
			return false
		}
		o.from = 1
	}
	for ; n > 0 && o.from <= o.upTo; o.from++ {
		if m := w.store[o.from-1]; !w.purged[m.Seq] && !m.Fence && slices.Contains(o.near, m.Bucket) {
			o.table.LoadBucket(m)
			n--
		}
	}
	if o.from > o.upTo {
		if lost := o.table.Loaded(); lost > 0 && o.known == w.cursorSeq {
			panic("tasks that wait are not in the store")
		}
		o.near = nil
	}
	return true
}

func (w *world) write(t *rapid.T, epoch uint64, s stay, dueMS int64) {
	group := Group{
		Domain:   string('a' + rune(s.id[len(s.id)-1]%testDomains)),
		Tasklist: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tasklist"),
		Priority: uint8(rapid.IntRange(1, 2).Draw(t, "priority")),
	}
	seq := w.append(Message{Bucket: dueMS / testBucket, Epoch: epoch, Tasks: []Task{{
		ID: s.id, DueMS: dueMS, Parkings: s.parkings, Bytes: uint32(rapid.IntRange(1, 50).Draw(t, "bytes")), Group: group,
	}}})
	if _, ok := w.written[s]; !ok && !w.outdated[seq] {
		w.written[s], w.dueOf[s] = seq, dueMS
	}
}

// store commits what an owner wants to append behind the cursor it knows.
func (w *world) swap(o *owner, c Cursor, messages int) bool {
	if o.known != w.cursorSeq {
		return false
	}
	w.before, w.beforeSeq = w.cursor, w.cursorSeq
	w.cursorSeq += uint64(messages) + 1
	o.known, w.cursor = w.cursorSeq, c
	return true
}

func (w *world) commit(t *rapid.T, o *owner) {
	first := w.cursorSeq + 1
	if !w.swap(o, o.chunk.Cursor, len(o.chunk.Messages)) {
		w.reload(o, 100)
		return
	}
	n := 0
	places := map[stay]uint64{}
	for i, m := range o.chunk.Messages {
		for _, r := range m.Records {
			task := w.store[r.Seq-1].Tasks[r.Index]
			s := stay{task.ID, task.Parkings}
			if w.purged[r.Seq] || task.ID != r.ID {
				t.Fatalf("task %v fires from a message that is gone", r)
			}
			if w.outdated[r.Seq] {
				t.Fatalf("task %v fires and is of a replaced owner", r)
			}
			places[s] = first + uint64(i)
			w.fired[s]++
			n++
		}
	}
	if n != o.chunk.Tasks {
		t.Fatalf("a chunk of %d tasks holds %d", o.chunk.Tasks, n)
	}
	o.table.Commit(w.now+o.skew, w.cursorSeq)
	o.chunk = nil
	for s, place := range places {
		if got := o.table.recent.find(s.id); got == nil || got.parkings != s.parkings || got.logSeq != place {
			t.Fatalf("%v lies at %d, not at %+v", s, place, got)
		}
	}
}

func (w *world) take(t *rapid.T, o *owner) bool {
	chunk, ok := o.table.NextChunk(w.now+o.skew, w.limits)
	if !ok {
		return false
	}
	for _, m := range chunk.Messages {
		for _, r := range m.Records {
			task := w.store[r.Seq-1].Tasks[r.Index]
			if s := (stay{task.ID, task.Parkings}); w.firesAt(s, task.DueMS) > w.now+o.skew || task.DueMS > w.now+o.skew && m.Lane != ids.LaneLater {
				t.Fatalf("%v fires to %v %v ms before it is due", s, m.Lane, task.DueMS-w.now-o.skew)
			}
		}
	}
	o.chunk = &chunk
	return true
}

// firesAt is when a stay fires that is due at some time.
func (w *world) firesAt(s stay, dueMS int64) int64 {
	if at, ok := w.earlyAt[s]; ok {
		return min(at, dueMS)
	}
	return dueMS
}

// fireEarly has a task fire, as an owner sees it that may have been overtaken. The message may get lost, and be stored twice.
func (w *world) fireEarly(t *rapid.T, o *owner, id ids.TaskID) {
	if o.rest > 0 {
		t.Skip("callers wait until all is loaded")
	}
	w.bring(o, id)
	needed, a := o.table.FireEarly([]Wanted{{ID: id}}, w.now+o.skew)
	messages := EarlyMessages(needed)
	if n := len(a.Coming) + len(a.Fired); n > 1 || len(messages) > len(a.Coming) {
		t.Fatalf("%+v, %+v", messages, a)
	}
	for range w.random.IntN(3) {
		for _, m := range messages {
			w.early(m.Bucket, m.All[0])
			if place := w.store[m.All[0].Place.Seq-1]; place.Tasks[m.All[0].Place.Index].ID != id {
				t.Fatalf("%+v does not lie there", m.All[0])
			}
		}
	}
}

// early writes an early message. The clock of the store may be wrong.
func (w *world) early(bucket int64, one Early) {
	atMS := w.now
	if w.random.IntN(6) == 0 {
		atMS += w.random.Int64N(2*testMinute) - testMinute
	}
	m := Message{AtMS: atMS, Bucket: bucket, Early: []Early{{}, one}}
	if one.Place.Seq > 0 {
		group := w.store[one.Place.Seq-1].Tasks[one.Place.Index].Group
		m.Domain, m.Tasklist = group.Domain, group.Tasklist
	}
	w.append(m)
	s := stay{one.ID, one.Generation}
	if _, known := w.earlyAt[s]; !known && w.written[s] > 0 && bucket == w.dueOf[s]/testBucket && atMS < w.dueOf[s] {
		w.earlyAt[s] = atMS
	}
}

func (w *world) purge(o *owner) {
	n := w.random.IntN(len(o.purge) + 1) // it may be stopped in between
	for _, p := range o.purge[:n] {
		for _, m := range w.store {
			if m.Fence == p.Fences && m.Bucket == p.Bucket && m.Seq <= p.UpTo {
				w.purged[m.Seq] = true
			}
		}
		if o.chunk == nil {
			o.table.Purged(p)
		}
	}
	o.purge = nil
}
