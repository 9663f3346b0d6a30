package due

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// The model: one store, one history log with the cursor, and two owners that
// both believe to be the one. Everything that a real owner does in several steps
// is cut into those steps, so that the other may come between any two.

type stay struct {
	id       ids.TaskID
	parkings uint32
}

type world struct {
	now        int64
	store      []Message // by sequence - 1
	purged     map[uint64]bool
	checkpoint uint64
	cursor     Cursor
	cursorSeq  uint64
	fired      map[stay]int
	written    map[stay]uint64 // sequence of the first copy
	dueOf      map[stay]int64
	tombstoned map[stay]bool
	answered   map[stay]bool // cancelled, and the canceller was told so
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
	fence       []stay // tombstones written, cursor not yet fenced
}

const testMinute = 60_000

func (w *world) append(m Message) uint64 {
	m.Seq = uint64(len(w.store)) + 1
	w.store = append(w.store, m)
	return m.Seq
}

func (w *world) reload(o *owner, recentMost int) {
	w.epochs++
	*o = owner{table: New(Config{FiredKeepMS: 1 << 40, FiredMost: recentMost}), skew: o.skew}
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

func (w *world) write(t *rapid.T, s stay, dueMS int64) {
	group := Group{
		Domain:   rapid.SampledFrom([]string{"a", "b"}).Draw(t, "domain"),
		Tasklist: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tasklist"),
		Priority: uint8(rapid.IntRange(1, 2).Draw(t, "priority")),
	}
	seq := w.append(Message{Bucket: dueMS / testMinute, Tasks: []Task{{
		ID: s.id, DueMS: dueMS, Parkings: s.parkings, Bytes: uint32(rapid.IntRange(1, 50).Draw(t, "bytes")), Group: group,
	}}})
	if _, ok := w.written[s]; !ok {
		w.written[s], w.dueOf[s] = seq, dueMS
	}
}

// store commits what an owner wants to append behind the cursor it knows.
func (w *world) swap(o *owner, c Cursor) bool {
	if o.known != w.cursorSeq {
		return false
	}
	w.cursorSeq++
	o.known, w.cursor = w.cursorSeq, c
	return true
}

func (w *world) commit(t *rapid.T, o *owner) {
	if !w.swap(o, o.chunk.Cursor) {
		w.reload(o, 100)
		return
	}
	n := 0
	for _, m := range o.chunk.Messages {
		for _, r := range m.Records {
			task := w.store[r.Seq-1].Tasks[r.Index]
			s := stay{task.ID, task.Parkings}
			// A rival may have cancelled it, not told anybody yet, and purged it.
			if w.purged[r.Seq] && !w.tombstoned[s] || task.ID != r.ID {
				t.Fatalf("task %v fires from a message that is gone", r)
			}
			w.fired[s]++
			n++
		}
	}
	if n != o.chunk.Tasks {
		t.Fatalf("a chunk of %d tasks holds %d", o.chunk.Tasks, n)
	}
	o.table.Commit(w.now + o.skew)
	o.chunk = nil
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

// cancel writes the tombstone and lets the table know; the answer waits for the fence.
func (w *world) cancel(o *owner, s stay) {
	at, status := o.table.Find(s.id)
	if status != Waiting {
		return
	}
	s.parkings = w.store[at.Seq-1].Tasks[at.Index].Parkings // the stay that waits now
	w.append(Message{Bucket: at.Bucket, Tombstones: []ids.TaskID{s.id}})
	for other := range w.written {
		if other.id == s.id { // a tombstone names an id: it voids a later stay that this owner has not read
			w.tombstoned[other] = true
		}
	}
	o.table.Cancel(s.id, w.now)
	o.fence = append(o.fence, s)
}

func (w *world) answer(o *owner) {
	if !w.swap(o, o.table.Cursor()) {
		w.reload(o, 100)
		return
	}
	for _, s := range o.fence {
		w.answered[s] = true
		if w.fired[s] > 0 {
			panic(fmt.Sprintf("%v was fired and is answered as cancelled", s))
		}
	}
	o.fence = nil
}

func (w *world) purge(o *owner) {
	for _, p := range o.purge {
		for _, m := range w.store {
			if m.Bucket == p.Bucket && m.Seq <= p.UpTo {
				w.purged[m.Seq] = true
			}
		}
		if o.chunk == nil {
			o.table.Purged(p)
		}
	}
	o.purge = nil
}

func TestI10_EachStayFiresExactlyOnce(t *testing.T) {
	// Some mistakes show in one history of a thousand, and these are cheap.
	for range 20 {
		rapid.Check(t, exactlyOnce)
	}
}

func exactlyOnce(t *rapid.T) {
	w := &world{
		now: 100 * testMinute, purged: map[uint64]bool{}, fired: map[stay]int{}, written: map[stay]uint64{},
		dueOf: map[stay]int64{}, tombstoned: map[stay]bool{}, answered: map[stay]bool{},
		limits: Limits{
			Tasks: rapid.IntRange(1, 6).Draw(t, "tasks"), Bytes: 200, Messages: rapid.IntRange(1, 4).Draw(t, "messages"),
			MessageTasks: 2, MessageBytes: 80,
		},
		random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
	}
	for i := range w.owners {
		w.owners[i] = &owner{skew: rapid.Int64Range(-500, 500).Draw(t, "skew")}
		w.reload(w.owners[i], 100)
	}
	t.Repeat(w.actions())

	w.now += 1_000_000
	o := w.owners[0]
	w.reload(o, 100)
	for w.take(t, o) {
		w.commit(t, o)
	}
	for s := range w.written {
		switch n := w.fired[s]; {
		case n > 1, n == 0 && !w.tombstoned[s]:
			t.Fatalf("%v fired %d times", s, n)
		case n > 0 && w.answered[s]:
			t.Fatalf("%v was cancelled and fired", s)
		}
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			for range rapid.IntRange(1, 5).Draw(t, "n") {
				w.write(t, stay{ids.NewTaskID(testTime, 0, w.random.Uint64()), 1}, w.now+rapid.Int64Range(-3000, 5000).Draw(t, "due"))
			}
		},
		"write it twice": func(t *rapid.T) {
			s := w.someStay(t)
			if w.written[s] <= w.checkpoint {
				t.Skip("history knows that it is parked")
			}
			w.write(t, s, w.dueOf[s])
		},
		"park again": func(t *rapid.T) {
			s := w.someStay(t)
			next := stay{s.id, s.parkings + 1}
			if _, ok := w.written[next]; ok || w.fired[s] == 0 {
				t.Skip("still here")
			}
			w.write(t, next, w.now+rapid.Int64Range(0, 5000).Draw(t, "due"))
		},
		"time":   func(t *rapid.T) { w.now += rapid.Int64Range(0, 4000).Draw(t, "ms") },
		"read":   func(t *rapid.T) { w.feed(w.idle(t), rapid.IntRange(1, 4).Draw(t, "messages")) },
		"take":   func(t *rapid.T) { w.take(t, w.idle(t)) },
		"crash":  func(t *rapid.T) { w.reload(w.pick(t), 100) },
		"cancel": func(t *rapid.T) { w.cancel(w.idle(t), w.someStay(t)) },
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
			if o := w.idle(t); len(o.fence) > 0 {
				w.answer(o)
			}
		},
		"checkpoint": func(t *rapid.T) {
			w.checkpoint = uint64(rapid.IntRange(int(w.checkpoint), len(w.store)).Draw(t, "upTo"))
		},
		"begin a purge": func(t *rapid.T) {
			o := w.pick(t)
			o.parked, o.end = w.checkpoint, uint64(len(w.store))
		},
		"find purgeable": func(t *rapid.T) {
			o := w.idle(t)
			o.purge = o.table.Purgeable(o.parked, o.end, w.now)
		},
		"purge": func(t *rapid.T) { w.purge(w.pick(t)) },
		"":      w.check,
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
	if len(m.Tasks) == 0 {
		t.Skip("a tombstone")
	}
	return stay{m.Tasks[0].ID, m.Tasks[0].Parkings}
}
