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
}

const testMinute = 60_000

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
		Domain:   string('a' + rune(s.id[len(s.id)-1]%testDomains)),
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
	needed, a := o.table.FireEarly([]Wanted{{ID: id}}, w.now+o.skew)
	messages := EarlyMessages(needed)
	if n := len(a.Coming) + len(a.Fired); n > 1 || len(messages) > len(a.Coming) {
		t.Fatalf("%+v, %+v", messages, a)
	}
	for range w.random.IntN(3) {
		for _, m := range messages {
			w.early(m.Bucket, m.All[0])
		}
	}
}

// early writes an early message. The clock of the store may be wrong.
func (w *world) early(bucket int64, one Early) {
	atMS := w.now
	if w.random.IntN(6) == 0 {
		atMS += w.random.Int64N(2*testMinute) - testMinute
	}
	w.append(Message{AtMS: atMS, Bucket: bucket, Early: []Early{{}, one}})
	s := stay{one.ID, one.Generation}
	if _, known := w.earlyAt[s]; !known && w.written[s] > 0 && bucket == w.dueOf[s]/testMinute && atMS < w.dueOf[s] {
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
		if e := t.entries.at(h); e.place != placeFree {
			s := t.stay(h)
			all[s.Ref] = s.Parkings
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
		"read": func(t *rapid.T) { w.feed(w.idle(t), rapid.IntRange(1, 4).Draw(t, "messages")) },
		"take": func(t *rapid.T) { w.take(t, w.idle(t)) },
		"fire": func(t *rapid.T) { // some chunks, while time goes by
			o := w.idle(t)
			w.feed(o, len(w.store))
			for n := rapid.IntRange(1, 6).Draw(t, "chunks"); n > 0 && o.known == w.cursorSeq && w.take(t, o); n-- {
				w.commit(t, o)
				w.now += w.random.Int64N(300)
			}
		},
		"crash":      func(t *rapid.T) { w.reload(w.pick(t), 100) },
		"fire early": func(t *rapid.T) { w.fireEarly(t, w.idle(t), w.someStay(t).id) },
		"a late early message": func(t *rapid.T) { // of an owner that was overtaken long ago, or that makes no sense
			s := w.someStay(t)
			w.early((w.dueOf[s]+rapid.Int64Range(0, 1).Draw(t, "bucket")*testMinute)/testMinute, Early{s.id, s.parkings + uint32(w.random.IntN(2))})
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
