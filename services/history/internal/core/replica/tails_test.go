package replica

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// TestR12_AStoreThatFellBackIsRefused: a store that is shorter than the snapshot has seen it was restored from an older copy, and what it lost must
// not be taken for done.
func TestR12_AStoreThatFellBackIsRefused(t *testing.T) {
	whole := Snapshot{Seq: 5, TimerSeq: 7, ArchiveSeq: 8}
	read := whole
	read.Read[2] = 9
	for _, c := range []struct {
		snap                Snapshot
		log, timer, archive uint64
		want                string
	}{
		{whole, 5, 7, 8, ""},
		{whole, 4, 7, 8, "the log ends at 4, but it was seen up to 5"},
		{read, 9, 7, 8, ""},
		{read, 8, 7, 8, "the log ends at 8"},
		{whole, 9, 6, 9, "the timer store ends at 6"},
		{whole, 9, 9, 7, "the archive ends at 7"},
	} {
		err := (&Start{Snapshot: &c.snap}).Check(c.log, c.timer, c.archive)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v with %d, %d, %d: %v", c.snap, c.log, c.timer, c.archive, err)
		}
	}
}

// TestR14_WhatAnotherOwnerArchivedIsNotArchivedAgain: a task that waits for its job, and none else.
func TestR14_WhatAnotherOwnerArchivedIsNotArchivedAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2, 3)
	for n := 1; n <= 3; n++ {
		b.start(n)
	}
	b.finish(taskstate.Succeeded, 1)
	b.equal("the first job", archived(b.linger()), []int{1})
	b.finish(taskstate.Succeeded, 2)
	b.finish(taskstate.Succeeded, 3)
	fx := b.step(Stored{Kind: JobArchive, Seq: 7, Others: []Stay{{ID: id(2)}}})
	if fx.TakenOver || fx.Counts.Archived != 1 || b.r.Len() != 1 || b.r.ArchiveSeq() != 7 {
		t.Errorf("%d archived, %d left in memory, the archive is at %d", fx.Counts.Archived, b.r.Len(), b.r.ArchiveSeq())
	}
	b.equal("what is left of the second job", archived(b.linger()), []int{3})
	b.step(Stored{Kind: JobArchive, Seq: 8, Others: []Stay{{ID: id(3)}}})
	if fx := b.linger(); fx.TakenOver || fx.Archive != nil || !b.r.Idle() {
		t.Errorf("%v to be archived, idle %v", archived(fx), b.r.Idle())
	}
}

// TestI3_AnEndThatOnlyTheArchiveKnowsIsANewerOwners: its turn is stored, or ours is, and the answer has not come.
func TestI3_AnEndThatOnlyTheArchiveKnowsIsANewerOwners(t *testing.T) {
	for _, other := range []Stay{{ID: id(2)}, {ID: id(99)}} {
		b := newBench(t, Config{})
		b.submit(nil, 1, 2)
		b.start(1)
		b.finish(taskstate.Succeeded, 1)
		b.equal("the job", archived(b.linger()), []int{1})
		if fx := b.step(Stored{Kind: JobArchive, Seq: 7, Others: []Stay{other}}); !fx.TakenOver {
			t.Errorf("it goes on after %v", other)
		}
	}
}

// TestAJobOfNothingIsSkipped: all that was queued came back from the timer store.
func TestAJobOfNothingIsSkipped(t *testing.T) {
	b := newBench(t, Config{})
	later := func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }
	b.submit(later, 3)
	if fx := b.turn(); len(fx.Park) != 1 {
		t.Fatalf("%d parked", len(fx.Park))
	}
	b.submit(later, 4)
	b.turn()
	stay := b.r.Get(id(4))
	b.submit(func(t *taskstate.Task) { *t = *stay; t.DueAt = b.now.MS }, 4) // it comes back before its job begins
	b.step(Stored{Kind: JobAppend})
	if fx := b.step(Stored{Kind: JobPark, Seq: 5}); fx.Park != nil || !b.r.Idle() || b.r.Get(id(4)).State != taskstate.Ready {
		t.Errorf("%d parked, idle %v", len(fx.Park), b.r.Idle())
	}
}

// TestR14_TheTailOfTheTimerStore: what the last owner parked counts though another one has claimed the partition since and died
// before it did anything; what a replaced one parks behind a fence does not, wherever the tail begins.
func TestR14_TheTailOfTheTimerStore(t *testing.T) {
	type written struct {
		fence, counts bool
		epoch         uint64
	}
	for name, c := range map[string]struct {
		epoch, own uint64
		tail       []written
	}{
		"claimed and dead":                 {4, 6, []written{{counts: true, epoch: 4}, {fence: true, epoch: 6}, {epoch: 4}}},
		"a fence behind the tail's begin":  {4, 6, []written{{epoch: 3}, {fence: true, epoch: 5}, {epoch: 4}, {counts: true, epoch: 5}}},
		"the whole store":                  {0, 6, []written{{counts: true, epoch: 4}}},
		"a fence of an owner after us":     {5, 6, []written{{fence: true, epoch: 7}, {epoch: 5}, {counts: true, epoch: 6}}},
		"a fence that is late is no fence": {5, 6, []written{{fence: true, epoch: 4}, {epoch: 4}, {counts: true, epoch: 5}}},
	} {
		tail := NewParkedTail(c.epoch, c.own)
		for i, w := range c.tail {
			if w.fence {
				tail.Fence(w.epoch)
			} else if got := tail.Counts(w.epoch); got != w.counts {
				t.Errorf("%s: message %d counts: %v", name, i, got)
			}
		}
	}
}

// TestEndsOfATask: the archive has those of several stays, in any order. What ended earlier is known as long as the last one is not taken.
func TestEndsOfATask(t *testing.T) {
	ends := make(Ends)
	ends.Add(Stay{id(1), 2})
	ends.Add(Stay{id(1), 0})
	stay := func(parkings uint32) *Entry { return &Entry{Task: taskstate.Task{ID: id(1), Parkings: parkings}} }
	for _, c := range []struct {
		parkings uint32
		taken    bool
		left     int
	}{{3, false, 1}, {0, true, 1}, {0, true, 1}, {2, true, 0}, {0, false, 0}} {
		if taken := ends.take(stay(c.parkings)); taken != c.taken || len(ends) != c.left {
			t.Errorf("stay %d: %v, %d are left", c.parkings, taken, len(ends))
		}
	}
}

// TestCheckFinds: Check sees what it is there for.
func TestCheckFinds(t *testing.T) {
	for what, spoil := range map[string]func(r *Replica, e *Entry){
		"charged": func(_ *Replica, e *Entry) { e.charged = 0 },
		"the account of": func(r *Replica, _ *Entry) {
			r.Charge(admission.Charge{Lane: 3, Domain: "shop", Tasklist: "mail", Bytes: 1}, 0)
		},
		"are counted, there": func(r *Replica, _ *Entry) { r.live++ },
		"passed over up to": func(r *Replica, _ *Entry) {
			r.Load(r.ReadLevels(), []QueueCursor{{Queue: Queue{Lane: 3, Place: "shop"}, First: 9, Last: 9}})
		},
		"is of shard 2":         func(_ *Replica, e *Entry) { e.Attempt.Shard = 2 },
		"to be woken":           func(r *Replica, e *Entry) { r.wake.Set(e, 1) },
		"gone and has not left": func(r *Replica, e *Entry) { r.gone.queue = []goneEntry{{e: e}} },
		"bytes, 7 are counted":  func(r *Replica, _ *Entry) { r.gone.bytes = 7 },
	} {
		b := newBench(t, Config{})
		b.submit(nil, 1)
		spoil(b.r, b.r.tasks[id(1)])
		if err := b.r.Check(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: %v", what, err)
		}
	}
}
