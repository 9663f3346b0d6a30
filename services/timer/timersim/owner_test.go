package timersim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/timersim"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// world is a timer store and a history log in memory, and two owners. All that
// happens is written to trace.
type world struct {
	t         *testing.T
	random    *rand.Rand
	nowMS     int64
	store     []timersim.Message // by sequence - 1
	gone      map[uint64]bool
	log       []*logv1.Batch // by sequence - 1; nil = a cursor
	cursor    []byte
	cursorSeq uint64
	epochs    uint64
	// fenced is the epoch of the last history owner; the ones before write on.
	fenced  uint64
	waiting map[ids.TaskID]bool // accepted
	early   map[ids.TaskID]bool // an early message is stored
	fired   map[ids.TaskID]int
	owners  [2]*timersim.Owner
	trace   strings.Builder
}

func (w *world) append(subject string, data []byte) {
	w.store = append(w.store, timersim.Message{Seq: uint64(len(w.store)) + 1, AtMS: w.nowMS, Subject: subject, Data: data})
}

func (w *world) park(dueMS int64) {
	id := ids.NewTaskID(time.UnixMilli(w.nowMS), 0, w.random.Uint64())
	epoch := w.fenced
	if w.random.IntN(5) == 0 {
		epoch = 1 + w.random.Uint64N(w.fenced)
	}
	data, err := (&logv1.Batch{Epoch: epoch, Tasks: []*logv1.Record{{
		Id: id[:], Domain: "shop", Tasklist: "mail", Type: "t", Priority: 3, DueAtMs: dueMS, Parkings: 1,
	}}}).MarshalVT()
	testkit.NoError(w.t, err)
	if epoch == w.fenced {
		w.waiting[id] = true
	}
	w.append(topology.Timer(0, topology.TimerBucket(dueMS)), data)
}

// fence has the next history owner take over.
func (w *world) fence() {
	w.fenced++
	data := testkit.Encoded(w.t, &logv1.Batch{Fence: true, Epoch: w.fenced})
	w.append(topology.TimerFence(0), data)
}

// load replaces an owner, by one with another clock.
func (w *world) load(i int) {
	w.epochs++
	o := timersim.New(timersim.Config{Epoch: w.epochs, ChunkTasksMax: 3})
	var all []timersim.Message
	for _, m := range w.store {
		if !w.gone[m.Seq] {
			all = append(all, m)
		}
	}
	testkit.NoError(w.t, o.Load(all, w.cursor, w.cursorSeq, w.nowMS))
	w.owners[i] = o
}

func (w *world) arrive(o *timersim.Owner) {
	for _, m := range w.store[o.ReadTo():] {
		if !w.gone[m.Seq] {
			o.Arrive(m)
		}
	}
}

// try carries an append out, or loses its answer, or it fails.
func (w *world) try(i int, a timersim.Append) bool {
	o := w.owners[i]
	if w.random.IntN(8) == 0 {
		o.NotStored()
		return false
	}
	for {
		stored := a.Expected == w.cursorSeq
		if stored {
			w.keep(a)
		}
		if stored && w.random.IntN(4) > 0 {
			o.Stored(w.cursorSeq, w.nowMS)
			return true
		}
		switch o.Refused(w.cursor, w.cursorSeq, w.nowMS) {
		case timersim.Stored:
			return true
		case timersim.Overtaken:
			w.load(i)
			return false
		}
	}
}

func (w *world) keep(a timersim.Append) {
	for _, m := range a.Messages {
		b := &logv1.Batch{}
		if err := b.UnmarshalVT(m.Data); err != nil || m.Subject != topology.Submit(0, m.Lane, m.Domain, m.Tasklist) {
			w.t.Fatal(err, m.Subject)
		}
		for _, r := range b.Tasks {
			id := ids.TaskID(r.Id)
			if w.fired[id]++; w.fired[id] > 1 || !w.waiting[id] || r.DueAtMs > w.nowMS && (!w.early[id] || m.Lane != ids.LaneLater) {
				w.t.Fatalf("%v fired %d times, waits: %v, due in %d ms", id, w.fired[id], w.waiting[id], r.DueAtMs-w.nowMS)
			}
		}
		w.log = append(w.log, b)
		fmt.Fprintf(&w.trace, "%s %x\n", m.Subject, m.Data)
	}
	w.log = append(w.log, nil)
	w.cursor, w.cursorSeq = a.Cursor, uint64(len(w.log))
	fmt.Fprintf(&w.trace, "cursor %x\n", a.Cursor)
}

// fireEarly has some tasks fire; what is to be stored for that may get lost, and come twice.
func (w *world) fireEarly(o *timersim.Owner) {
	w.arrive(o)
	var wanted []timersim.Wanted
	for _, m := range w.store[:w.random.IntN(len(w.store)+1)] {
		var b logv1.Batch
		if err := b.UnmarshalVT(m.Data); err == nil && len(b.Tasks) > 0 && w.random.IntN(10) == 0 {
			wanted = append(wanted, timersim.Wanted{ID: ids.TaskID(b.Tasks[0].Id), Domain: []string{"shop", "other", ""}[w.random.IntN(3)]})
		}
	}
	messages, answer := o.FireEarly(wanted)
	for range w.random.IntN(3) {
		for _, m := range messages {
			w.append(m.Subject, m.Data)
			var b logv1.Batch
			testkit.NoError(w.t, b.UnmarshalVT(m.Data))
			for _, id := range b.Early {
				w.early[ids.TaskID(id)] = true
			}
		}
	}
	for _, f := range answer.Fired {
		if w.fired[f.ID] == 0 || f.LogSeq != 0 && !has(w.log[f.LogSeq-1], f.ID) {
			w.t.Fatalf("%v does not lie at %d", f.ID, f.LogSeq)
		}
	}
	fmt.Fprintf(&w.trace, "coming %x fired %v\n", answer.Coming, answer.Fired)
}

func has(b *logv1.Batch, id ids.TaskID) bool {
	for _, r := range b.GetTasks() {
		if bytes.Equal(r.Id, id[:]) {
			return true
		}
	}
	return false
}

func (w *world) purge(o *timersim.Owner) {
	end := uint64(len(w.store))
	w.arrive(o)
	for _, p := range o.Purgeable(end, end) {
		for _, m := range w.store {
			w.gone[m.Seq] = w.gone[m.Seq] || m.Subject == p.Subject && m.Seq <= p.UpTo
		}
		o.Purged(p)
	}
}

// run is one simulation; the trace is the same for the same seed.
func run(t *testing.T, seed uint64) string {
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), nowMS: 100_000_000,
		gone: map[uint64]bool{}, waiting: map[ids.TaskID]bool{}, fired: map[ids.TaskID]int{}, early: map[ids.TaskID]bool{},
	}
	w.fence()
	w.load(0)
	w.load(1)
	for range 300 {
		i := w.random.IntN(2)
		switch w.random.IntN(8) {
		case 0, 1:
			w.park(w.nowMS + w.random.Int64N(100_000))
		case 2:
			w.nowMS += w.random.Int64N(20_000)
		case 3:
			if w.random.IntN(4) == 0 {
				w.load(i)
			}
			w.arrive(w.owners[i])
		case 4:
			if a, ok := w.owners[i].Fire(w.nowMS); ok {
				w.try(i, a)
			}
		case 5:
			w.fireEarly(w.owners[i])
		case 6:
			w.purge(w.owners[i])
		case 7:
			if w.random.IntN(5) == 0 {
				w.fence()
			}
		}
	}
	w.nowMS += 1_000_000
	w.load(0)
	for w.owners[0].Waiting() > 0 {
		if a, ok := w.owners[0].Fire(w.nowMS); ok {
			w.try(0, a)
		}
	}
	for id := range w.waiting {
		if w.fired[id] == 0 {
			t.Fatalf("%v never fired", id)
		}
	}
	return w.trace.String()
}

func TestI10_DrivenByHandEachFiresOnceAndTheSameAgain(t *testing.T) {
	seeds := testkit.Seed(t)
	for range 10 {
		seed := seeds.Uint64()
		first := run(t, seed)
		if !strings.Contains(first, "cursor") || run(t, seed) != first {
			t.Fatalf("seed %d gives another run", seed)
		}
	}
}

func TestAStepOutOfOrderPanics(t *testing.T) {
	for name, step := range map[string]func(*timersim.Owner){
		"fire before the load":     func(o *timersim.Owner) { o.Fire(1) },
		"stored without an append": func(o *timersim.Owner) { _ = o.Load(nil, nil, 0, 1); o.Stored(1, 1) },
		"loaded twice":             func(o *timersim.Owner) { _ = o.Load(nil, nil, 0, 1); _ = o.Loaded() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			step(timersim.New(timersim.Config{Epoch: 1}))
		}()
	}
}
