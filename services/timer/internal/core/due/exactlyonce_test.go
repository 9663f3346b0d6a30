package due

import (
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
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
	savedMS    int64 // when the checkpoint was saved
	cursor     Cursor
	cursorSeq  uint64 // the history log ends with the cursor
	fired      map[stay]int
	written    map[stay]uint64 // sequence of the first copy
	dueOf      map[stay]int64
	tombstoned map[stay]bool
	answered   map[stay]bool // cancelled, and the canceller was informed so
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
	savedMS     int64
	asked       []Wanted // cancels that are not answered yet
}

const testMinute = 60_000

func (w *world) append(m Message) uint64 {
	m.Seq = uint64(len(w.store)) + 1
	w.outdated[m.Seq] = len(m.Tasks) > 0 && m.Epoch != 0 && m.Epoch < w.epoch
	w.store = append(w.store, m)
	return m.Seq
}

func (w *world) reload(o *owner, recentMost int) {
	w.epochs++
	*o = owner{table: New(Config{FiredKeepMS: 1 << 40, FiredMost: recentMost}), skew: w.random.Int64N(1000) - 500}
	if w.random.IntN(3) == 0 {
		o.skew = w.random.Int64N(2*testHour) - testHour
	}
	w.feed(o, len(w.store))
	o.known = w.cursorSeq
	o.table.Resume(w.cursor, w.epochs, w.now+o.skew)
}

func (w *world) feed(o *owner, n int) {
	for ; n > 0 && o.read < uint64(len(w.store)); n-- {
		m := w.store[o.read]
		o.read++
		if !w.purged[m.Seq] {
			o.table.Load(m)
		}
	}
}

func (w *world) write(t *rapid.T, epoch uint64, s stay, dueMS int64) {
	group := Group{
		Domain:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "domain"),
		Tasklist: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tasklist"),
		Priority: uint8(rapid.IntRange(1, 2).Draw(t, "priority")),
	}
	seq := w.append(Message{Bucket: dueMS / testMinute, Epoch: epoch, Tasks: []Task{{
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
			// A rival may have cancelled it, not informed anybody yet, and purged it.
			if w.purged[r.Seq] && !w.tombstoned[s] || task.ID != r.ID {
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
			if due := w.store[r.Seq-1].Tasks[r.Index].DueMS; due > w.now+o.skew {
				t.Fatalf("%v ms early", due-w.now-o.skew)
			}
		}
	}
	o.chunk = &chunk
	return true
}

// cancel writes the tombstone of a task that waits, and lets the table know. One that is void
// already needs none, no matter who wrote that; the answer waits for the cursor all the same.
func (w *world) cancel(o *owner, id ids.TaskID) {
	o.asked = append(o.asked, Wanted{ID: id})
	at, status := o.table.Find(id, "")
	if status != Waiting {
		return
	}
	w.append(Message{AtMS: w.now, Bucket: at.Bucket, Tombstones: voids(math.MaxUint32, id)})
	for other := range w.written {
		if other.id == id { // a tombstone names an id: it voids a later stay that this owner has not read
			w.tombstoned[other] = true
		}
	}
	if w.random.IntN(5) > 0 { // or this owner does not hear that it was stored
		o.table.Cancel(id)
	}
}

func (w *world) answer(t *rapid.T, o *owner) {
	if o.table.Unfenced() {
		if !w.swap(o, o.table.Cursor(), 0) {
			w.reload(o, 100)
			return
		}
		o.table.Fenced()
	}
	for _, one := range o.asked {
		got := o.table.Answer([]Wanted{one})
		if got.Undone || len(got.Cancelled) == 0 || len(got.Fired) > 0 {
			continue
		}
		ref := got.Cancelled[0]
		s := stay{one.ID, w.store[ref.Seq-1].Tasks[ref.Index].Parkings}
		w.answered[s] = true
		if w.fired[s] > 0 {
			t.Fatalf("%v was fired and is answered as cancelled", s)
		}
	}
	o.asked = nil
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

// exactlyOnceHistories is how many histories one run tries, about: some mistakes show in one of
// a thousand, and these are cheap. YARD_HISTORIES is another number: mutation tests
// run few for each mutant.
const exactlyOnceHistories = 2000

func TestI10_EachStayFiresExactlyOnce(t *testing.T) {
	histories := exactlyOnceHistories
	if testkit.Quick() {
		histories /= 10
	}
	if s := os.Getenv("YARD_HISTORIES"); s != "" {
		var err error
		histories, err = strconv.Atoi(s)
		testkit.NoError(t, err)
	}
	for n := 0; n < histories; n += 100 { // which is what rapid tries by itself
		rapid.Check(t, exactlyOnce)
	}
}

func exactlyOnce(t *rapid.T) {
	w := &world{
		now: 100 * testMinute, epoch: 1, outdated: map[uint64]bool{}, purged: map[uint64]bool{}, fired: map[stay]int{}, written: map[stay]uint64{},
		dueOf: map[stay]int64{}, tombstoned: map[stay]bool{}, answered: map[stay]bool{},
		limits: Limits{
			Tasks: rapid.IntRange(1, 6).Draw(t, "tasks"), Bytes: 200, Messages: rapid.IntRange(1, 4).Draw(t, "messages"),
			MessageTasks: 2, MessageBytes: 80,
		},
		random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
	}
	for i := range w.owners {
		w.owners[i] = &owner{}
		w.reload(w.owners[i], 100)
	}
	t.Repeat(w.actions())

	// R23: whatever the clocks before, an owner with the right time fires what is due.
	o := w.owners[0]
	_, room := w.cursor.rewound(w.now)
	w.now += rewindAboveMS
	w.rest(t, o)
	for s := range w.written {
		if room && w.dueOf[s] <= w.now && w.fired[s] == 0 && !w.tombstoned[s] && !w.replaced(s) {
			t.Fatalf("%v is %d ms late", s, w.now-w.dueOf[s])
		}
	}
	w.now += 2 * testHour
	w.rest(t, o)
	for s := range w.written {
		switch n := w.fired[s]; {
		case n > 1, n == 0 && !w.tombstoned[s] && !w.replaced(s):
			t.Fatalf("%v fired %d times", s, n)
		case n > 0 && w.answered[s]:
			t.Fatalf("%v was cancelled and fired", s)
		}
	}
}

// rest has an owner with the right time fire all that is due.
func (w *world) rest(t *rapid.T, o *owner) {
	w.reload(o, 100)
	o.skew = 0
	for w.take(t, o) {
		w.commit(t, o)
	}
}

// replaced tells that a later stay of the task has been written, which voids this one.
func (w *world) replaced(s stay) bool {
	for other := range w.written {
		if other.id == s.id && other.parkings > s.parkings {
			return true
		}
	}
	return false
}

// matches compares an owner's table, if it has seen all, with one loaded from
// what is left of the store.
func (w *world) matches(t *rapid.T) {
	o := w.idle(t)
	w.feed(o, len(w.store))
	if o.known != w.cursorSeq {
		t.Skip("overtaken")
	}
	loaded := &owner{}
	w.reload(loaded, 100)
	lived, fresh := waitingOf(o.table), waitingOf(loaded.table)
	if !maps.Equal(lived, fresh) {
		t.Fatalf("lived: %v\nloaded: %v", lived, fresh)
	}
	if o.table.epoch() != loaded.table.epoch() {
		t.Fatalf("the epochs are %d and %d", o.table.epoch(), loaded.table.epoch())
	}
}

// waitingOf is what waits in a table: where each lies and which stay it is.
func waitingOf(t *Table) map[Ref]uint32 {
	all := map[Ref]uint32{}
	for h := handle(0); uint32(h) < t.entries.size; h++ {
		if e := t.entries.at(h); e.live() {
			all[Ref{Seq: e.seq, Index: e.index, ID: e.id}] = e.parkings
		}
	}
	return all
}

// someEpoch is mostly the last owner's, or that of none.
func (w *world) someEpoch() uint64 {
	if w.random.IntN(3) == 0 {
		return 0
	}
	return w.epoch
}

// actions are those of time and of the timer's owners, and history's.
func (w *world) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"time": func(t *rapid.T) {
			w.now += rapid.SampledFrom([]int64{100, 1000, 4000, 2 * testMinute}).Draw(t, "ms")
		},
		"read":   func(t *rapid.T) { w.feed(w.idle(t), rapid.IntRange(1, 4).Draw(t, "messages")) },
		"take":   func(t *rapid.T) { w.take(t, w.idle(t)) },
		"crash":  func(t *rapid.T) { w.reload(w.pick(t), 100) },
		"cancel": func(t *rapid.T) { w.cancel(w.idle(t), w.someStay(t).id) },
		"fire ahead": func(t *rapid.T) { // one chunk, by a node of which the clock is an hour ahead
			o := w.pick(t)
			w.reload(o, 100)
			if o.skew = testHour; w.take(t, o) {
				w.commit(t, o)
			}
		},
		"commit": func(t *rapid.T) {
			if o := w.pick(t); o.chunk != nil {
				w.commit(t, o)
			}
		},
		"abort": func(t *rapid.T) {
			if o := w.pick(t); o.chunk != nil {
				o.table.Abort()
				o.chunk = nil
			}
		},
		"answer": func(t *rapid.T) {
			if o := w.idle(t); len(o.asked) > 0 {
				w.answer(t, o)
			}
		},
		"checkpoint": func(t *rapid.T) {
			w.checkpoint, w.savedMS = uint64(rapid.IntRange(int(w.checkpoint), len(w.store)).Draw(t, "upTo")), w.now
		},
		"begin a purge": func(t *rapid.T) {
			o := w.pick(t)
			o.parked, o.savedMS, o.end = w.checkpoint, w.savedMS, uint64(len(w.store))
		},
		"find purgeable": func(t *rapid.T) {
			o := w.idle(t)
			o.purge = o.table.Purgeable(o.parked, o.end, o.savedMS)
		},
		"purge":          func(t *rapid.T) { w.purge(w.pick(t)) },
		"load elsewhere": w.matches,
		"":               w.check,
	}
	maps.Copy(all, w.historyActions())
	return all
}

// historyActions are those of the history owners, the last one and replaced ones.
func (w *world) historyActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			for range rapid.IntRange(1, 5).Draw(t, "n") {
				w.write(t, w.someEpoch(), stay{ids.NewTaskID(testTime, 0, w.random.Uint64()), 1}, w.now+rapid.Int64Range(-3000, 5000).Draw(t, "due"))
			}
		},
		"write it twice": func(t *rapid.T) {
			s := w.someStay(t)
			if w.written[s] <= w.checkpoint {
				t.Skip("history knows that it is parked")
			}
			w.write(t, w.someEpoch(), s, w.dueOf[s])
		},
		"park again": func(t *rapid.T) {
			s := w.someStay(t)
			next := stay{s.id, s.parkings + 1}
			if _, ok := w.written[next]; ok || w.fired[s] == 0 {
				t.Skip("still here")
			}
			w.write(t, w.someEpoch(), next, w.now+rapid.Int64Range(0, 5000).Draw(t, "due"))
		},
		"fence": func(*rapid.T) {
			w.epoch++
			w.append(Message{Fence: true, Epoch: w.epoch})
		},
		"write by a replaced owner": func(t *rapid.T) {
			epoch := rapid.Uint64Range(1, w.epoch).Draw(t, "epoch")
			if epoch == w.epoch {
				t.Skip("not replaced")
			}
			s := w.someStay(t) // a copy, or the next stay, whatever history remembers by now
			s.parkings += uint32(rapid.IntRange(0, 1).Draw(t, "parkings"))
			w.write(t, epoch, s, w.now+rapid.Int64Range(-3000, 5000).Draw(t, "due"))
		},
	}
}

func (w *world) check(t *rapid.T) {
	for _, o := range w.owners {
		if o.chunk == nil {
			o.table.check(t)
		}
	}
	for s, n := range w.fired {
		if n > 1 {
			t.Fatalf("%v fired %d times", s, n)
		}
	}
}

func (w *world) pick(t *rapid.T) *owner { return w.owners[rapid.IntRange(0, 1).Draw(t, "owner")] }

func (w *world) idle(t *rapid.T) *owner {
	o := w.pick(t)
	if o.chunk != nil {
		t.Skip("is storing a chunk")
	}
	return o
}

func (w *world) someStay(t *rapid.T) stay {
	if len(w.store) == 0 {
		t.Skip("nothing written")
	}
	m := w.store[rapid.IntRange(0, len(w.store)-1).Draw(t, "message")]
	if len(m.Tasks) == 0 || w.outdated[m.Seq] {
		t.Skip("no task of history's")
	}
	return stay{m.Tasks[0].ID, m.Tasks[0].Parkings}
}
