package due

import (
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

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
		dueOf: map[stay]int64{}, earlyAt: map[stay]int64{},
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

	// R23: whatever the clocks before, an owner with the right time fires what is due, within a second.
	o := w.owners[0]
	room := true
	for n := range w.cursor.lines() {
		_, ok := w.cursor.line(n).rewound(w.now)
		room = room && ok
	}
	was := w.now
	w.rest(t, o) // a cursor that is further ahead is rewound
	w.now += rewindAboveMS
	w.rest(t, o) // another one is not ahead any more
	for s := range w.written {
		if at := w.firesAt(s, w.dueOf[s]); room && at <= was && w.fired[s] == 0 && !w.replaced(s) {
			t.Fatalf("%v is %d ms late", s, w.now-at)
		}
	}
	w.now += 2 * testHour
	w.rest(t, o)
	for s := range w.written {
		if n := w.fired[s]; n > 1 || n == 0 && !w.replaced(s) {
			t.Fatalf("%v fired %d times", s, n)
		}
	}
}

// rest has an owner with the right time fire all that is due.
func (w *world) rest(t *rapid.T, o *owner) {
	for w.reload(o, 100); o.known != w.cursorSeq; w.reload(o, 100) {
	}
	o.skew = 0
	for w.loadRest(o, 1000) || w.approach(o, 1000) || w.take(t, o) {
		if o.chunk != nil {
			w.commit(t, o)
		}
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
	w.loadRest(o, len(w.store))
	w.feed(o, len(w.store))
	if o.known != w.cursorSeq {
		t.Skip("overtaken")
	}
	for o.near != nil {
		w.approach(o, 1000)
	}
	loaded := &owner{}
	if w.reload(loaded, 100); loaded.known != w.cursorSeq {
		t.Skip("overtaken")
	}
	w.loadRest(loaded, len(w.store))
	lived, fresh := w.waitingOf(o), w.waitingOf(loaded)
	if !maps.Equal(lived, fresh) {
		t.Fatalf("lived: %v\nloaded: %v", lived, fresh)
	}
	if o.table.fences.epoch() != loaded.table.fences.epoch() {
		t.Fatalf("the epochs are %d and %d", o.table.fences.epoch(), loaded.table.fences.epoch())
	}
}

// waitingOf is what waits in a table: where each lies and which stay it is.
func (w *world) waitingOf(o *owner) map[Ref]uint32 {
	all := map[Ref]uint32{}
	for s := range w.written {
		found, status := o.table.Find(s.id, "")
		if status == Waiting {
			all[found.Ref] = found.Parkings
		} else if far, ok := o.table.Far().Waits(w.again(o, s.id), ""); ok {
			all[Ref{Seq: far.Seq, Index: far.Index, ID: s.id}] = far.Task.Parkings
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
		"come near": func(t *rapid.T) { w.approach(w.idle(t), rapid.IntRange(0, 4).Draw(t, "messages")) },
		"read":      func(t *rapid.T) { w.feed(w.idle(t), rapid.IntRange(1, 4).Draw(t, "messages")) },
		"take":      func(t *rapid.T) { w.take(t, w.idle(t)) },
		"fire": func(t *rapid.T) { // some chunks, while time goes by
			o := w.idle(t)
			w.feed(o, len(w.store))
			for n := rapid.IntRange(1, 6).Draw(t, "chunks"); n > 0 && o.known == w.cursorSeq && (w.approach(o, 1000) || w.take(t, o)); n-- {
				if o.chunk != nil {
					w.commit(t, o)
				}
				w.now += w.random.Int64N(300)
			}
		},
		"crash":      func(t *rapid.T) { w.reload(w.pick(t), 100) },
		"fire early": func(t *rapid.T) { w.fireEarly(t, w.idle(t), w.someStay(t).id) },
		"a late early message": func(t *rapid.T) { // of an owner that was overtaken long ago, or that makes no sense
			s := w.someStay(t)
			one, bucket := Early{ID: s.id, Generation: s.parkings + uint32(w.random.IntN(2))}, w.dueOf[s]/testBucket+rapid.Int64Range(0, 1).Draw(t, "bucket")
			if named := (stay{s.id, one.Generation}); w.written[named] > 0 && w.dueOf[named]/testBucket == bucket {
				one.Place.Seq = w.written[named] // it is what a table said
				one.Bytes = w.store[one.Place.Seq-1].Tasks[0].Bytes
			}
			w.early(bucket, one)
		},
		"a clock is set": func(t *rapid.T) { w.pick(t).skew = w.random.Int64N(2*testHour) - testHour },
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
		"checkpoint": func(t *rapid.T) {
			w.checkpoint = uint64(rapid.IntRange(int(w.checkpoint), len(w.store)).Draw(t, "upTo"))
		},
		"begin a purge": func(t *rapid.T) {
			o := w.pick(t)
			o.parked, o.end = w.checkpoint, uint64(len(w.store))
		},
		"find purgeable": func(t *rapid.T) {
			o := w.idle(t)
			o.purge = o.table.Purgeable(o.parked, o.end)
		},
		"purge":          func(t *rapid.T) { w.purge(w.pick(t)) },
		"load elsewhere": w.matches,
		"":               w.check,
	}
	maps.Copy(all, w.historyActions())
	maps.Copy(all, w.restActions())
	return all
}

// restActions are those of an owner that fires before it has loaded all.
func (w *world) restActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"load the rest": func(t *rapid.T) { w.loadRest(w.idle(t), rapid.IntRange(1, 4).Draw(t, "messages")) },
		"renew": func(t *rapid.T) {
			o := w.idle(t)
			if c := (Rest{o.table}).Renew(); !w.swap(o, c, 0) {
				w.reload(o, 100)
			} else {
				o.table.Commit(w.now+o.skew, w.cursorSeq)
			}
		},
	}
}

// historyActions are those of the history owners, the last one and replaced ones.
func (w *world) historyActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			for range rapid.IntRange(1, 5).Draw(t, "n") {
				w.write(t, w.someEpoch(), stay{ids.NewTaskID(testTime, 0, w.random.Uint64()), 1}, w.now+rapid.Int64Range(-3000, 5000).Draw(t, "due"))
			}
		},
		"flood": func(t *rapid.T) { // tasks of one domain that are due together, or soon after each other
			dueMS := w.now + rapid.Int64Range(-3000, 1000).Draw(t, "due")
			for range rapid.IntRange(5, 20).Draw(t, "n") {
				w.write(t, w.someEpoch(), stay{ids.NewTaskID(testTime, 0, w.random.Uint64()&^(testDomains-1)), 1}, dueMS+w.random.Int64N(200))
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
