package replica

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestTakeoverSaysNothing: until it is over, a checkpoint says what the one before said, and
// nothing is answered, triggered, stored, proposed or woken. Slots are released: the owner
// before may have died first (I8, R71).
func TestTakeoverSaysNothing(t *testing.T) {
	cp := Checkpoint{Snapshot: SnapshotRef{Epoch: 1, Seq: 3, Chunks: 1}}
	cfg := smallConfig()
	cfg.CheckpointEveryMS = 1
	b := &bench{T: t, r: New(cfg, &Start{Epoch: 2, Checkpoint: cp, Snapshot: &Snapshot{Seq: 3, Read: [ids.Lanes]uint64{3: 2, 4: 9}}}), now: Now{MS: scenarioStart}, seq: 9}
	b.submit(nil, 1, 2)
	b.start(1)
	b.start(2)
	fx := b.finish(taskstate.Succeeded, 2)
	if len(fx.Releases) != 1 || fx.Answers != nil || fx.Triggers != nil || fx.Ended != nil {
		t.Errorf("%+v", fx)
	}
	b.step(&Events{Seq: 20, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(7)}}})
	b.now.MS += 60_000
	fx = b.step(Tick{})
	if fx.Save == nil || !reflect.DeepEqual(*fx.Save, cp) {
		t.Errorf("saved is %+v", fx.Save)
	}
	if fx.Append != nil || fx.Purge != nil || fx.Searches != nil || fx.Archive != nil {
		t.Errorf("%+v", fx)
	}
	if _, ok := b.r.NextWake(); ok {
		t.Error("it would wake")
	}
	if b.step(Saved{OK: true, SentAt: time.Second}); !b.r.LeaseHolds(3*time.Second-1) || b.r.LeaseHolds(3*time.Second) {
		t.Error("a save in a takeover keeps the lease")
	}
	fx = b.step(Recovered{})
	b.step(Draining{})
	if len(fx.Searches) != 1 || fx.Searches[0].ID != id(7) || b.r.ReadLevels()[4] != 9 {
		t.Errorf("%+v, levels %v", fx, b.r.ReadLevels())
	}
	if len(b.r.archive.busy) != 1 {
		t.Error("what has ended is not archived")
	}
	if fx = b.step(Tick{}); len(fx.Append) != 1 || fx.Append[0].Kind != taskstate.Expired {
		t.Errorf("%+v", fx.Append)
	}
	if fx = b.step(Tick{}); fx.Append != nil {
		t.Errorf("proposed twice: %+v", fx.Append)
	}
}

// TestCheckpointIsSavedOneAtATime, and a purge likewise.
func TestCheckpointIsSavedOneAtATime(t *testing.T) {
	cfg := smallConfig()
	cfg.CheckpointEveryMS = 1000
	b := newBench(t, cfg)
	b.submit(nil, 1)
	if fx := b.step(Tick{}); fx.Save == nil || b.r.Idle() {
		t.Fatal("the first is due at once")
	}
	b.now.MS += 5000
	if fx := b.step(Tick{}); fx.Save != nil {
		t.Fatal("two at a time")
	}
	b.step(Saved{OK: true})
	if fx := b.step(Tick{}); fx.Save == nil {
		t.Fatal("it was due")
	}
	b.step(Saved{OK: true})
	b.now.MS += 999
	if fx := b.step(Tick{}); fx.Save != nil {
		t.Fatal("too early")
	}
}

// snap makes a snapshot, stores it and saves a checkpoint that names it, and returns what it has.
func (b *bench) snap() *Snapshot {
	b.Helper()
	b.now.MS += b.r.cfg.SnapshotEveryMS
	if fx := b.step(Tick{}); fx.Append == nil {
		b.Fatal("no turn is asked for to make it of")
	}
	snap := b.turn().Snapshot
	b.step(Stored{Kind: JobAppend})
	b.step(Stored{Kind: JobSnapshot, Snapshot: SnapshotRef{Seq: snap.Seq}})
	b.step(Saved{OK: true}) // one from before
	b.now.MS += b.r.cfg.CheckpointEveryMS
	if fx := b.step(Tick{}); fx.Save.Snapshot.Seq != snap.Seq {
		b.Fatalf("the checkpoint names %+v", fx.Save.Snapshot)
	}
	if fx := b.step(Saved{OK: true, SentAt: b.now.Mono}); fx.Forget == nil || fx.Forget.Seq != snap.Seq {
		b.Fatalf("the snapshots before %+v are forgotten", fx.Forget)
	}
	return snap
}

// TestI12_PurgesWhatASavedCheckpointDoesNotNeed: twice the lease after one is saved that names a snapshot, the log up to that; one purge at
// a time, and at the distance that the configuration says.
func TestI12_PurgesWhatASavedCheckpointDoesNotNeed(t *testing.T) {
	cfg := smallConfig()
	cfg.CheckpointEveryMS, cfg.PurgeEveryMS, cfg.SnapshotEveryMS = 10, 50, 5000
	b := newBench(t, cfg)
	b.submit(nil, 1)
	snap := b.snap()
	b.now.Mono += purgeAfter
	b.now.MS += 50
	if fx := b.step(Tick{}); fx.Purge != nil {
		t.Fatalf("purged early: %+v", fx.Purge)
	}
	b.now.Mono++
	b.now.MS += 49
	if fx := b.step(Tick{}); fx.Purge != nil {
		t.Error("purged too soon after the one before")
	}
	b.now.MS++
	fx := b.step(Tick{})
	if fx.Purge == nil || fx.Purge.Lanes[3] != 1 || fx.Purge.Events != snap.Seq {
		t.Fatalf("purge %+v", fx.Purge)
	}
	b.step(Saved{OK: true, SentAt: b.now.Mono})
	b.submit(nil, 2)
	b.snap()
	b.now.Mono += purgeAfter + 1
	b.now.MS += 5000
	if fx = b.step(Tick{}); fx.Purge != nil {
		t.Fatal("two purges at a time")
	}
	b.step(Purged{})
	b.now.MS += 50
	if fx = b.step(Tick{}); fx.Purge == nil || fx.Purge.Lanes[3] != b.r.ReadLevels()[3] {
		t.Errorf("the next one is %+v", fx.Purge)
	}
}

// TestI12_WhatAQueueHasNotReadIsNotPurged: the purge stops before it, in that domain's messages alone.
func TestI12_WhatAQueueHasNotReadIsNotPurged(t *testing.T) {
	b := lagging(t)
	b.r.cfg.SnapshotEveryMS, b.r.cfg.CheckpointEveryMS, b.r.purger.next = 5000, 10, 0
	b.r.cfg.PurgeEveryMS = 1
	b.step(Tick{})
	snap := b.snap()
	b.now.Mono += purgeAfter + 1
	b.now.MS++
	fx := b.step(Tick{})
	if fx.Purge == nil || fx.Purge.Of(Queue{Lane: lagLane, Place: "flood"}) != 2 || fx.Purge.Of(Queue{Lane: lagLane, Place: "shop"}) != 4 || fx.Purge.Events != snap.Seq {
		t.Errorf("purge %+v", fx.Purge)
	}
}

// TestI11_WhatRunsForLongTakesNoRoom: how many tasks run is up to the workers. What a snapshot finds running gives its room back, until it runs no more.
func TestI11_WhatRunsForLongTakesNoRoom(t *testing.T) {
	cfg := smallConfig()
	cfg.WindowTasks, cfg.SnapshotEveryMS, cfg.CheckpointEveryMS = 2, 1000, 10
	b := newBench(t, cfg)
	b.submit(nil, 1, 2)
	b.start(1)
	if b.step(Tick{}); b.r.Room(3) {
		t.Fatal("two tasks do not fill the window")
	}
	snap := b.snap()
	if !b.r.Room(3) {
		t.Error("the one that runs takes room")
	}
	next := b.takeover(cfg, snap)
	if !next.r.Room(3) {
		t.Error("it takes room of the next owner")
	}
	if next.finish(taskstate.Released, 1); next.r.Room(3) {
		t.Error("it takes no room when it waits again")
	}
}

// TestASnapshotIsMadeWhereItPays: once more of the log has followed than the last one has, or after a while if anything has.
func TestASnapshotIsMadeWhereItPays(t *testing.T) {
	cfg := smallConfig()
	cfg.SnapshotBytes, cfg.SnapshotEveryMS, cfg.CheckpointEveryMS = 100, 60_000, 1000
	b := newBench(t, cfg)
	due := func() bool {
		b.now.MS += 1000
		fx := b.step(Tick{})
		if fx.Save != nil {
			b.step(Saved{OK: true, SentAt: b.now.Mono})
		}
		return fx.Append != nil
	}
	for n := range 9 { // of 10 bytes each
		b.submit(nil, n+1)
	}
	if due() {
		t.Error("90 bytes are enough")
	}
	b.submit(nil, 10)
	if !due() {
		t.Fatal("100 bytes are not enough")
	}
	snap := b.turn().Snapshot
	testkit.MustEqual(t, "it has", len(snap.Tasks), 10)
	b.step(Stored{Kind: JobAppend})
	for n := range 20 {
		b.submit(nil, n+11)
	}
	b.now.MS += 60_000
	if due() {
		t.Error("there is a second one while one is stored")
	}
	b.step(Stored{Kind: JobSnapshot, Snapshot: SnapshotRef{Seq: snap.Seq}})
	if due() { // now a checkpoint names it
		t.Error("there is a second one before a checkpoint names the first")
	}
	if !due() {
		t.Error("an old one is not replaced")
	}
	b.turn()
	b.step(Stored{Kind: JobAppend})
	b.step(Stored{Kind: JobSnapshot, Snapshot: SnapshotRef{Seq: b.seq, Bytes: 250}})
	due()
	for n := range 20 {
		b.submit(nil, n+41)
	}
	if due() {
		t.Error("200 bytes are enough behind one of 250")
	}
	b.now.MS += 60_000
	if !due() {
		t.Error("an old one is not replaced")
	}
}

// TestASnapshotHasTheCommandsThatWait: a takeover looks for their tasks, and the log may forget them.
func TestASnapshotHasTheCommandsThatWait(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.cancels("shop", 1, 9, 1, 8)
	first := b.seq
	snap := b.snapshot()
	var at []string
	for _, ev := range snap.Waiting {
		at = append(at, fmt.Sprint(ev.Seq, ev.Index, ev.At, ev.ID == id(9), ev.ID == id(8)))
	}
	testkit.MustEqual(t, "waiting", fmt.Sprint(at), fmt.Sprint([]string{fmt.Sprint(first, 1, b.now.MS, true, false), fmt.Sprint(first, 3, b.now.MS, false, true)}))
	testkit.Equal(t, "the log may forget up to", b.r.snapshots.levels.Events, snap.Seq)
	start := begin(time.Hour)
	start.Snapshot = snap
	next := &bench{T: t, r: New(b.r.cfg, start), now: b.now}
	fx := next.step(Recovered{})
	if len(fx.Searches) != 2 || fx.Searches[0].ID != id(9) || fx.Searches[1].ID != id(8) || len(fx.Answers) != 0 {
		t.Errorf("searches %v, answers %v", fx.Searches, fx.Answers)
	}
	testkit.Equal(t, "then wait", fmt.Sprint(next.r.locator.Commands()), fmt.Sprint(snap.Waiting))
}

// TestALeaseThatTheLogRefusesIsProposedAgain after a while; and the time of a task that is over, unless the task has ended.
func TestALeaseThatTheLogRefusesIsProposedAgain(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1)
	b.submit(func(t *taskstate.Task) { t.Extra = &taskstate.Extra{Expiry: taskstate.Expiry{StartWithinMS: 1000}} }, 2, 3)
	b.start(1)
	b.now.MS += 3_600_000
	refused := b.step(Tick{}).Append
	if len(refused) != 3 {
		t.Fatalf("proposed %v", refused)
	}
	b.event(taskstate.Cancel, 3, ids.Token{})
	b.step(Stored{Kind: JobAppend, Refused: refused})
	b.now.MS += refusedWaitMS - 1
	if all := b.step(Tick{}).Append; len(all) != 0 {
		t.Errorf("proposed again at once: %v", all)
	}
	b.now.MS++
	if all := b.step(Tick{}).Append; len(all) != 2 {
		t.Errorf("proposed again: %v", all)
	}
}

// TestI3_NothingIsAdmittedWhileATurnIsUnderWay: which side of it that lies on would be open. What was admitted before goes into it; if the log will
// not take it, into the next one.
func TestI3_NothingIsAdmittedWhileATurnIsUnderWay(t *testing.T) {
	b := lagging(t)
	at := Queue{Lane: lagLane, Place: "flood"}
	b.file(true, 3, "flood", 20)
	steps := b.r.BeginTurn()
	want := []Admission{
		{Queue: Queue{Lane: lagLane}, To: 2, Messages: 2},
		{Queue: at, Kind: Split, To: 2},
		{Queue: Queue{Lane: lagLane}, To: 4, From: 2, Messages: 2},
		{Queue: at, To: 3, From: 2, Messages: 1},
	}
	testkit.Equal(t, "admitted", fmt.Sprint(steps), fmt.Sprint(want))
	for n := range 10 {
		b.r.leave(b.r.tasks[id(n+1)])
	}
	if b.r.MayAdmit() || b.r.QueueRoom(at, 4) {
		t.Error("a message may be admitted")
	}
	if b.tick(); b.r.Splits() != 1 {
		t.Error("a domain goes back into its lane")
	}
	b.step(TurnRefused{steps})
	if b.tick(); !b.r.MayAdmit() || b.r.Splits() != 0 {
		t.Error("it does not go on")
	}
	testkit.Equal(t, "the next turn has", fmt.Sprint(b.r.BeginTurn()), fmt.Sprint(append(want, Admission{Queue: at, Kind: Merge, To: 4})))
}

// TestI3_ATaskIsUndecidedUntilItsAdmissionIsStored: it goes to another store, or has ended, by an admission that a newer owner may not make.
func TestI3_ATaskIsUndecidedUntilItsAdmissionIsStored(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(func(t *taskstate.Task) { t.DueAt = b.now.MS + 60_000 }, 1)
	b.submit(nil, 2)
	testkit.Equal(t, "before a turn", fmt.Sprint(Undecided(b.r, id(1)), Undecided(b.r, id(2))), "true false")
	b.turn()
	testkit.Equal(t, "behind it", Undecided(b.r, id(1)), false)
}
