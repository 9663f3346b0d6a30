package replica

import (
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestR12_AStoreThatFellBackIsRefused: a store that is shorter than the checkpoint has seen it was
// restored from an older copy, and what it lost must not be taken for done.
func TestR12_AStoreThatFellBackIsRefused(t *testing.T) {
	whole := Checkpoint{Floor: 5, TimerSeq: 7, ArchiveSeq: 8}
	read, acked := whole, whole
	read.Read[2], acked.Ack[5] = 9, 6
	for _, c := range []struct {
		cp                  Checkpoint
		log, timer, archive uint64
		want                string
	}{
		{whole, 5, 7, 8, ""},
		{whole, 4, 7, 8, "the log ends at 4, but the checkpoint has seen it up to 5"},
		{read, 9, 7, 8, ""},
		{read, 8, 7, 8, "the log ends at 8"},
		{acked, 6, 7, 8, ""},
		{acked, 5, 7, 8, "the log ends at 5"},
		{whole, 9, 6, 9, "the timer store ends at 6"},
		{whole, 9, 9, 7, "the archive ends at 7"},
	} {
		err := c.cp.Check(c.log, c.timer, c.archive)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v with %d, %d, %d: %v", c.cp, c.log, c.timer, c.archive, err)
		}
	}
}

// archived are the tasks of an archive job.
func archived(fx *Effects) (numbers []int) {
	for _, e := range fx.Archive {
		numbers = append(numbers, int(e.ID[15]))
	}
	return numbers
}

func (b *bench) linger() *Effects {
	b.Helper()
	b.now.MS += archiveLingerMS
	return b.step(Tick{})
}

// TestR14_WhatAnotherOwnerArchivedIsNotArchivedAgain: a task that waits for its job, one that ends
// later, and none else.
func TestR14_WhatAnotherOwnerArchivedIsNotArchivedAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2, 3, 4, 5)
	for n := 1; n <= 5; n++ {
		b.start(n)
	}
	b.finish(taskstate.Succeeded, 1)
	b.equal("the first job", archived(b.linger()), []int{1})
	b.finish(taskstate.Succeeded, 2)
	b.finish(taskstate.Succeeded, 5)
	b.r.Checkpoint() // notes what is queued
	fx := b.step(Stored{Kind: JobArchive, Seq: 7, Others: []Stay{{ID: id(2)}, {ID: id(3)}}, Ends: Levels{Events: b.seq + 1}})
	if fx.Counts.Archived != 1 || b.r.Len() != 3 || b.r.ArchiveSeq() != 7 {
		t.Errorf("%d archived, %d left in memory, the archive is at %d", fx.Counts.Archived, b.r.Len(), b.r.ArchiveSeq())
	}
	b.equal("what is left of the second job", archived(b.linger()), []int{5})
	b.finish(taskstate.Succeeded, 3)
	if b.r.Len() != 2 {
		t.Error("a task that ended, and is archived, is still in memory")
	}
	if cp := b.r.Checkpoint(); cp.ArchiveSeq != 0 || !cp.Archived.equal(&Levels{}) {
		t.Errorf("covered to %d, %+v, before the job is stored", cp.ArchiveSeq, cp.Archived)
	}
	fx = b.step(Stored{Kind: JobArchive, Seq: 9})
	if fx.Counts.Archived != 2 || fx.Archive != nil || !b.r.Idle() {
		t.Errorf("%d archived, then %v", fx.Counts.Archived, archived(fx))
	}
	if cp := b.r.Checkpoint(); cp.ArchiveSeq != 9 || cp.Archived.Events != b.seq {
		t.Errorf("covered to %d, %+v", cp.ArchiveSeq, cp.Archived)
	}
	b.finish(taskstate.Succeeded, 4)
	b.equal("the others did not archive it", archived(b.linger()), []int{4})
}

// TestAJobOfNothingIsSkipped: all that was queued is archived by another owner, or came back
// from the timer store.
func TestAJobOfNothingIsSkipped(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2)
	b.start(1)
	b.start(2)
	b.finish(taskstate.Succeeded, 1)
	b.linger()
	b.finish(taskstate.Succeeded, 2)
	b.step(Stored{Kind: JobArchive, Seq: 3, Others: []Stay{{ID: id(2)}}})
	if fx := b.linger(); fx.Archive != nil || !b.r.Idle() || b.r.ArchiveSeq() != 3 {
		t.Errorf("%v to be archived, idle %v", archived(fx), b.r.Idle())
	}
	later := func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }
	fx := b.submit(later, 3)
	b.submit(later, 4)
	stay := b.r.Get(id(4))
	if len(fx.Park) != 1 || stay == nil {
		t.Fatalf("%d parked", len(fx.Park))
	}
	b.submit(func(t *taskstate.Task) { *t = *stay }, 4) // it comes back before its job begins
	if fx = b.step(Stored{Kind: JobPark, Seq: 5}); fx.Park != nil || !b.r.Idle() || b.r.Get(id(4)).State != taskstate.Ready {
		t.Errorf("%d parked, idle %v", len(fx.Park), b.r.Idle())
	}
}

// TestR14_TailsAreKeptUntilTheirSendersAreRead: what another owner archived is forgotten once every
// reader has passed what can have sent it, and only then does a checkpoint cover the archive.
func TestR14_TailsAreKeptUntilTheirSendersAreRead(t *testing.T) {
	b := newBench(t, Config{})
	covered := func() bool {
		b.step(Tick{})
		return b.r.Checkpoint().ArchiveSeq == 7
	}
	b.step(Stored{Kind: JobArchive, Seq: 7, Others: []Stay{{ID: id(8)}}, Ends: Levels{Events: 20, Lanes: [ids.Lanes]uint64{3: 9}}})
	b.step(Stored{Kind: JobArchive, Seq: 7, Others: []Stay{{ID: id(9)}}, Ends: Levels{Events: 19, Lanes: [ids.Lanes]uint64{2: 5, 3: 10}}})
	b.step(Stored{Kind: JobArchive, Seq: 7})
	for _, c := range []struct {
		in      Input
		covered bool
	}{
		{&Submits{Lane: 2, Seq: 5}, false},
		{&Submits{Lane: 3, Seq: 9}, false},
		{&Submits{Lane: 3, Seq: 10}, false},
		{&Events{Seq: 19}, false},
		{&Events{Seq: 20}, true},
	} {
		b.step(c.in)
		if covered() != c.covered {
			t.Errorf("after %+v: covered is %v", c.in, !c.covered)
		}
	}

	b = newBench(t, Config{})
	b.step(Stored{Kind: JobArchive, Seq: 7, Others: []Stay{{ID: id(9)}}})
	b.seq = 1
	b.submit(func(t *taskstate.Task) { t.Position, t.Parkings = ids.NewPosition(1, 2), 1 }, 1)
	if b.r.Len() != 0 || covered() || len(b.r.archivedTail) != 1 {
		t.Error("forgotten while a stay that was read has not arrived")
	}
	b.step(&Submits{Lane: 2, Seq: 1, Tasks: []*Entry{{Task: taskstate.Task{ID: id(1), DueAt: b.now.MS + 60_000, Domain: "shop"}}}})
	if !covered() {
		t.Error("kept forever")
	}
}

// TestACarriedStayReplacesTheOneBefore: in a takeover, unless an event of the task lies behind what
// the carried state has seen.
func TestACarriedStayReplacesTheOneBefore(t *testing.T) {
	for asOf, taken := range map[uint64]bool{1: false, 2: true, 5: true, 6: false} {
		cp := Checkpoint{}
		cp.Ack[2] = 5
		b := &bench{T: t, r: New(carryConfig(), cp, 0), now: Now{MS: scenarioStart}}
		b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }, 1)
		b.event(taskstate.Heartbeat, 1, ids.Token{Position: ids.NewPosition(1, 3)})
		carried := *b.r.Get(id(1))
		carried.State, carried.Position, carried.Steps = taskstate.Ready, ids.NewPosition(5, 2), slices.Clone(carried.Steps)
		b.step(&Events{
			Seq: 6, Events: []taskstate.Event{{Kind: taskstate.Carried, ID: id(1), Fence: ids.Token{Position: carried.Position}}},
			Carried: map[int]*Carried{0: {Entry: &Entry{Task: carried}, AsOf: asOf}},
		})
		if got := b.r.Get(id(1)); (got.State == taskstate.Ready) != taken || b.r.Len() != 1 {
			t.Errorf("as of %d it is %s", asOf, got.State)
		}
	}
}

// TestR14_TheTimerTailIsKeptLikewise: a stay found behind the checkpoint is not parked again, and
// the levels wait for it.
func TestR14_TheTimerTailIsKeptLikewise(t *testing.T) {
	b := &bench{T: t, r: New(carryConfig(), Checkpoint{}, 0), now: Now{MS: scenarioStart}}
	b.step(Recovered{Parked: map[Stay]bool{{id(1), 1}: true}, TimerSeq: 7, Ends: Levels{Lanes: [ids.Lanes]uint64{3: 1}}})
	b.step(Tick{})
	if cp := b.r.Checkpoint(); cp.TimerSeq != 0 {
		t.Errorf("covered to %d before its sender is read", cp.TimerSeq)
	}
	if fx := b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }, 1); fx.Park != nil || b.r.Len() != 0 {
		t.Error("parked twice")
	}
	if cp := b.r.Checkpoint(); cp.TimerSeq != 7 || cp.Parked.Lanes[3] != 1 {
		t.Errorf("covered to %d, %+v", cp.TimerSeq, cp.Parked)
	}
}

// TestR14_BothTailsAreForgotten when everything is read that could have sent them.
func TestR14_BothTailsAreForgotten(t *testing.T) {
	b := &bench{T: t, r: New(carryConfig(), Checkpoint{}, 0), now: Now{MS: scenarioStart}}
	b.step(Recovered{
		Parked: map[Stay]bool{{id(1), 1}: true}, Archived: Ends{id(2): 1}, TimerSeq: 7, ArchiveSeq: 8, Ends: Levels{Events: 3},
	})
	b.step(&Events{Seq: 2})
	b.step(Tick{})
	if cp := b.r.Checkpoint(); cp.TimerSeq != 0 || cp.ArchiveSeq != 0 {
		t.Errorf("too early: covered to %d and %d", cp.TimerSeq, cp.ArchiveSeq)
	}
	b.step(&Events{Seq: 3})
	b.step(Tick{})
	if cp := b.r.Checkpoint(); cp.TimerSeq != 7 || cp.ArchiveSeq != 8 {
		t.Errorf("covered to %d and %d", cp.TimerSeq, cp.ArchiveSeq)
	}
}

// TestPendingSince is the oldest of the commands that wait, and of tasks taken from the timer store
// that are not in the archive.
func TestPendingSince(t *testing.T) {
	b := newBench(t, Config{})
	pending := func(want int64) {
		t.Helper()
		testkit.Equal(t, "pending since", b.r.Checkpoint().PendingSince, want)
	}
	pending(0)
	for n := 1; n <= 5; n++ {
		b.now.MS++
		b.event(taskstate.Cancel, n, ids.Token{})
		pending(scenarioStart + 1)
	}
	for n := 1; n <= 5; n++ {
		b.step(&Found{Search: Search{ID: id(n), Cancel: true, Seq: uint64(n)}, Taken: &Entry{Task: taskstate.Task{ID: id(n)}}})
		pending(scenarioStart + 1)
	}
	b.step(Draining{})
	for n := 1; n <= 5; n++ { // a job ends where a checkpoint was asked for
		pending(scenarioStart + int64(n))
		b.step(Stored{Kind: JobArchive, Seq: uint64(n)})
	}
	pending(0)
}

// TestR14_ACheckpointCoversTheJobsUpToItsMark, while later ones are under way.
func TestR14_ACheckpointCoversTheJobsUpToItsMark(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1, 2)
	b.start(1)
	b.start(2)
	b.finish(taskstate.Succeeded, 1)
	b.step(Draining{})
	b.r.Checkpoint()
	at := b.seq
	b.finish(taskstate.Succeeded, 2)
	b.step(Stored{Kind: JobArchive, Seq: 3})
	if cp := b.r.Checkpoint(); cp.ArchiveSeq != 3 || cp.Archived.Events != at {
		t.Errorf("covered to %d, %+v", cp.ArchiveSeq, cp.Archived)
	}
}

// TestHeldStaysAreInOrder of their numbers, whatever the lanes bring first.
func TestHeldStaysAreInOrder(t *testing.T) {
	b := newBench(t, Config{})
	for _, parkings := range []uint32{3, 1, 4, 2} {
		b.submit(func(t *taskstate.Task) { t.Position, t.Parkings = ids.NewPosition(9, 2), parkings }, 1)
	}
	for i, e := range b.r.held[id(1)] {
		if e.Parkings != uint32(i+1) {
			t.Errorf("stay %d is at %d", e.Parkings, i)
		}
	}
	testkit.Equal(t, "held", len(b.r.held[id(1)]), 4)
}

// TestAStayOfNoLaneIsTakenIn: a record that says that the stay before lay in a lane that there is not.
func TestAStayOfNoLaneIsTakenIn(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) { t.Position, t.Parkings = ids.NewPosition(9, ids.Lanes), 1 }, 1)
	if got := b.r.Get(id(1)); got == nil || got.State != taskstate.Ready {
		t.Errorf("%+v", got)
	}
}

// R14: what the last owner parked counts though another one has claimed the partition since and died
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
	cp := Checkpoint{TimerSeq: 9}
	if still, moved := cp.TimerEpoch(6, 9, 4), cp.TimerEpoch(6, 8, 4); still != 4 || moved != 6 {
		t.Errorf("the epoch is %d, and %d when the sequence has moved", still, moved)
	}
}

// TestI3_ATailIsKeptForTheSearchUnderWay: a search asks the archive, another owner puts the task there,
// and the answer says that it was taken out of the timer store. It is not archived again. Seed
// 62470 of the simulation.
func TestI3_ATailIsKeptForTheSearchUnderWay(t *testing.T) {
	b := newBench(t, Config{})
	b.cancels("shop", 9)
	b.step(Stored{Kind: JobArchive, Seq: 7, Others: []Stay{{ID: id(8)}, {ID: id(9), Parkings: 1}}, Ends: Levels{Events: b.seq}})
	b.step(Tick{})
	if len(b.r.archivedTail) != 1 {
		t.Errorf("%v are kept", b.r.archivedTail)
	}
	taken := &Entry{Task: taskstate.Task{ID: id(9), Domain: "shop", Parkings: 1, State: taskstate.Waiting}}
	b.step(&Found{Search: Search{ID: id(9), Domain: "shop", Cancel: true, Seq: b.seq}, Taken: taken})
	if got := archived(b.linger()); len(got) != 0 {
		t.Errorf("%v archived again", got)
	}
	b.step(Tick{})
	if len(b.r.archivedTail) != 0 {
		t.Error("kept forever")
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

// TestWhatIsParkedHasNotEnded: it is neither reported as an end nor counted as one.
func TestWhatIsParkedHasNotEnded(t *testing.T) {
	b := newBench(t, Config{})
	if fx := b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }, 1); len(fx.Ended) != 0 {
		t.Errorf("ended are %v", fx.Ended)
	}
}

// TestATaskThatIsChangedBeforeItIsRead is triggered once, in its new place; and in a takeover nothing is traced.
func TestATaskThatIsChangedBeforeItIsRead(t *testing.T) {
	b := newBench(t, Config{})
	b.seq = 9
	b.change(1, taskstate.Update{Priority: 1})
	b.seq = 4
	b.equal("changed", triggered(b.submit(nil, 1)), []int{1})

	b = newBench(t, Config{})
	traced := func(t *taskstate.Task) { t.Trace = "trace" }
	if fx := b.submit(traced, 1); len(fx.Traced) == 0 {
		t.Errorf("traced are %+v", fx.Traced)
	}
	b.r = New(b.r.cfg, Checkpoint{}, 0)
	if fx := b.submit(traced, 1); len(fx.Traced) != 0 {
		t.Errorf("traced in a takeover are %+v", fx.Traced)
	}
}

// TestAQueueIsReadOnWhereItWas: a takeover does not read what the one before has done, and the log has forgotten.
func TestAQueueIsReadOnWhereItWas(t *testing.T) {
	cp := Checkpoint{Queues: []QueueCursor{{Queue: Queue{lagLane, "flood"}, Ack: 1, Read: 4, Last: 6}}}
	cp.Ack[lagLane], cp.Read[lagLane] = 7, 7
	b := &bench{T: t, r: New(carryConfig(), cp, 0), now: Now{MS: scenarioStart}}
	b.step(Recovered{})
	if all := b.r.Readings(); len(all) != 1 || all[0].From != 5 {
		t.Errorf("it reads %+v", all)
	}
}
