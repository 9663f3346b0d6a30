package replica

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

const lagLane = 3

// crowd is a bench with a window of ten tasks.
func crowd(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, Config{
		Shards: 2, WindowTasks: 10, WindowBytes: 1 << 20, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1 << 50, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50,
	})
	b.tick()
	return b
}

// tick lets so much time pass that a lane without room is looked at.
func (b *bench) tick() *Effects {
	b.now.MS += congestedMS
	return b.step(Tick{})
}

// file reads a message that is filed under a domain, "" = of shop in one that domains share, by the lane's reader or the domain's own.
func (b *bench) file(queue bool, seq uint64, domain string, numbers ...int) *Effects {
	b.Helper()
	b.seq = max(b.seq, seq)
	in := &Submits{Lane: lagLane, Domain: domain, Queue: queue, Seq: seq, At: b.now.MS, Bytes: 10}
	for _, n := range numbers {
		e := &Entry{Task: taskstate.Task{ID: id(n), Domain: domain, Tasklist: "mail", Type: "send", Priority: lagLane, Policy: storyPolicy}}
		if domain == "" {
			e.Domain = "shop"
		}
		in.Tasks = append(in.Tasks, e)
	}
	return b.step(in)
}

func series(from, n int) (all []int) {
	for i := range n {
		all = append(all, from+i)
	}
	return all
}

// flood fills the window, and tells that so many messages wait behind it, some of them its own.
func (b *bench) flood(all, own uint64) {
	b.Helper()
	b.file(false, 1, "flood", series(1, 10)...)
	b.file(false, 2, "shop", 11)
	if fx := b.tick(); len(fx.Looks) > 0 {
		b.Fatal("it looks at once")
	}
	fx := b.tick()
	if len(fx.Looks) != 1 || fx.Looks[0] != (Look{Queue{lagLane, "flood"}, 2}) {
		b.Fatalf("it looks for %+v", fx.Looks)
	}
	if fx := b.tick(); len(fx.Looks) > 0 {
		b.Fatal("it looks twice")
	}
	b.step(Looked{Look: fx.Looks[0], All: all, Own: own})
}

// TestI11_WhoFillsALaneLags, and only who holds up somebody else; one that waits for itself alone is looked at again
// after a while.
func TestI11_WhoFillsALaneLags(t *testing.T) {
	b := crowd(t)
	b.flood(5, 5)
	if b.r.Room(lagLane) || b.r.Lagging() > 0 {
		t.Error("a lone domain lags")
	}
	for range lookAgainMS/congestedMS - 1 {
		if fx := b.tick(); len(fx.Looks) > 0 {
			t.Fatal("it looks again too soon")
		}
	}
	fx := b.tick()
	if len(fx.Looks) != 1 {
		t.Fatal("it does not look again")
	}
	b.step(Looked{Look: fx.Looks[0], All: 6, Own: 5})
	if !b.r.Room(lagLane) || !b.r.Lags(Queue{lagLane, "flood"}) || b.r.Lagging() != 1 || b.r.LaggingLanes("shop") != 0 || b.r.rooms[lagLane].tasks != 1 {
		t.Errorf("room %v, lagging %d, %+v", b.r.Room(lagLane), b.r.Lagging(), b.r.rooms[lagLane])
	}
	b.file(false, 3, "flood", 20)
	b.file(false, 4, "shop", 21)
	b.equal("of the flood nothing is read", []int{int(b.r.tasks[id(21)].Position.Seq())}, []int{4})
	if b.r.tasks[id(20)] != nil || b.r.ReadLevels()[lagLane] != 4 || b.r.QueueRoom(Queue{lagLane, "flood"}, 3) {
		t.Error("the flood goes on")
	}
}

// TestNothingLagsWithoutAnAnswer: a count that failed says nothing.
func TestNothingLagsWithoutAnAnswer(t *testing.T) {
	b := crowd(t)
	b.flood(0, 0)
	if b.r.Lagging() > 0 {
		t.Error("it lags")
	}
}

// lagging is a crowd whose flood lags with its first ten tasks, and with message 3 passed over.
func lagging(t *testing.T) *bench {
	t.Helper()
	b := crowd(t)
	b.flood(6, 5)
	b.file(false, 3, "flood", 20)
	b.file(false, 4, "shop", 21)
	return b
}

// TestALagEnds when all is read and the lane has room for what is left.
func TestALagEnds(t *testing.T) {
	b := lagging(t)
	at := Queue{lagLane, "flood"}
	b.file(true, 3, "flood", 20)
	for n := range 8 { // of its eleven tasks; two of shop are in the lane, and half of ten is free for three
		if b.tick(); !b.r.Lags(at) {
			t.Fatalf("it ends when %d tasks have left", n)
		}
		b.r.leave(b.r.tasks[id(n+1)])
	}
	b.tick()
	if b.r.Lags(at) || b.r.rooms[lagLane].tasks != 5 {
		t.Fatalf("it lags: %+v", b.r.queues[at])
	}
	b.file(false, 5, "flood", 30) // it is read with the lane's others
	b.step(&Submits{Lane: lagLane, Domain: "flood", Queue: true, Seq: 5})
	if b.r.tasks[id(30)] == nil {
		t.Error("a message behind the end is passed over")
	}
}

// TestI7_FloodsAreBounded: however many domains fill a lane one after the other, what all of them hold is.
func TestI7_FloodsAreBounded(t *testing.T) {
	b := crowd(t)
	seq := uint64(0)
	for n := range 300 {
		domain := fmt.Sprint("flood-", n)
		for b.r.Room(lagLane) {
			seq++
			b.file(false, seq, domain, int(seq))
		}
		for range lookAgainMS / congestedMS {
			if fx := b.tick(); len(fx.Looks) > 0 {
				b.step(Looked{Look: fx.Looks[0], All: 1})
			}
		}
	}
	if held, most := b.r.pools[lagLane].tasks+b.r.rooms[lagLane].tasks, (halvingsMax+2)*b.r.cfg.WindowTasks; held > most || held < 5*b.r.cfg.WindowTasks {
		t.Errorf("%d tasks are held, at most %d may be", held, most)
	}
}

// TestWhoHoldsMuchOfWhatIsSharedIsFiledApart, and who lags.
func TestWhoHoldsMuchOfWhatIsSharedIsFiledApart(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "", series(1, 5)...)
	if all := b.r.Apart(); len(all) > 0 {
		t.Errorf("%v are apart, with half of the window left", all)
	}
	b.file(false, 2, "", 6)
	if all := b.r.Apart(); len(all) != 1 || all[0] != "shop" {
		t.Errorf("%v are apart", all)
	}
	b = lagging(t)
	if all := b.r.Apart(); len(all) != 1 || all[0] != "flood" {
		t.Errorf("%v are apart", all)
	}
}

// TestAQueueReadsNothingTwice: its reader may be one of an earlier lag.
func TestAQueueReadsNothingTwice(t *testing.T) {
	b := lagging(t)
	b.file(true, 3, "flood", 20)
	b.file(true, 3, "flood", 21)
	b.file(true, 2, "flood", 22)
	if b.r.tasks[id(22)] != nil || b.r.tasks[id(21)].Domain != "shop" || b.r.Readings()[0].From != 4 {
		t.Error("a message is read again")
	}
}

// TestSharedMessagesLieInNoQueue: their positions say so, and what is done of one that lags is known at once.
func TestSharedMessagesLieInNoQueue(t *testing.T) {
	b := lagging(t)
	b.file(false, 5, "flood", 22)
	b.file(false, 6, "", 23)
	if b.r.tasks[id(22)] != nil || !b.r.tasks[id(23)].Position.Shared() || b.r.tasks[id(21)].Position.Shared() {
		t.Error("positions do not tell what is shared")
	}
	pos := ids.NewPosition(4, lagLane)
	if b.r.unread(pos.InShared(), "flood") || !b.r.unread(ids.NewPosition(3, lagLane), "flood") || b.r.unread(ids.NewPosition(3, lagLane), "shop") {
		t.Error("what is unread is wrong")
	}
}

// TestATakeoverReadsQueuesByThemselves: with a snapshot that has one, which has a message left.
func TestATakeoverReadsQueuesByThemselves(t *testing.T) {
	at := Queue{lagLane, "flood"}
	snap := &Snapshot{Queues: []QueueCursor{{Queue: at, Read: 2, First: 6, Last: 6}}}
	snap.Read[lagLane] = 7
	b := &bench{T: t, r: New(smallConfig(), &Start{Snapshot: snap, ClaimedAt: time.Hour}), now: Now{MS: scenarioStart}}
	b.file(false, 8, "flood", 8)
	b.file(false, 9, "shop", 9)
	b.step(Recovered{})
	if b.r.tasks[id(8)] != nil || b.r.tasks[id(9)] == nil {
		t.Error("the lane's reader does not pass over the queue, or over another domain")
	}
	for seq, unread := range map[uint64]bool{2: false, 6: true, 8: true} {
		if b.r.unread(ids.NewPosition(seq, lagLane), "flood") != unread {
			t.Errorf("message %d is unread: %v", seq, !unread)
		}
	}
	if all := b.r.Readings(); len(all) != 1 || all[0] != (Reading{Queue: at, From: 3, Room: true}) {
		t.Errorf("%+v", all)
	}
}

// TestI11_TheLargestLagUntilHalfIsFree: several that hold much are taken out at once, those that hold little stay.
func TestI11_TheLargestLagUntilHalfIsFree(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "small", 1)
	b.file(false, 2, "flood", series(2, 4)...)
	b.file(false, 3, "shop", 6)
	b.file(false, 4, "torrent", series(10, 4)...)
	b.tick()
	fx := b.tick()
	b.step(Looked{Look: fx.Looks[0], All: 9, Own: 1})
	if !b.r.Lags(Queue{lagLane, "flood"}) || !b.r.Lags(Queue{lagLane, "torrent"}) || b.r.Lagging() != 2 {
		t.Errorf("%+v", b.r.Readings())
	}
}

// TestAQueueIsNeverAheadOfItsLane, whatever room it has.
func TestAQueueIsNeverAheadOfItsLane(t *testing.T) {
	b := lagging(t)
	for n := range 10 {
		b.r.leave(b.r.tasks[id(n+1)])
	}
	if at := (Queue{lagLane, "flood"}); !b.r.QueueRoom(at, 3) || !b.r.QueueRoom(at, 4) || b.r.QueueRoom(at, 5) {
		t.Error("a message behind the lane's read level has room, or one before has none")
	}
}

// TestALagEndsWhereWhatIsLeftFits: a domain whose tasks of shared messages would fill the lane again lags on.
func TestALagEndsWhereWhatIsLeftFits(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "", series(1, 8)...)
	b.file(false, 2, "rival", 20, 21)
	b.tick()
	fx := b.tick()
	b.step(Looked{Look: fx.Looks[0], All: 1})
	at := Queue{lagLane, "shop"}
	for n := range 4 {
		if b.tick(); !b.r.Lags(at) {
			t.Fatalf("it ends with %d tasks held", b.r.pools[lagLane].tasks)
		}
		b.r.leave(b.r.tasks[id(n+1)])
	}
	b.r.leave(b.r.tasks[id(5)])
	if b.tick(); b.r.Lags(at) || b.r.rooms[lagLane].tasks != 5 || b.r.pools[lagLane].tasks != 0 {
		t.Errorf("it lags: %v, %+v, %+v", b.r.Lags(at), b.r.rooms[lagLane], b.r.pools[lagLane])
	}
}

// TestWhatWasNeverPassedOverIsNotUnread: between what a queue has read and the next message of it lie others'.
func TestWhatWasNeverPassedOverIsNotUnread(t *testing.T) {
	b := lagging(t)
	b.file(true, 3, "flood", 20)
	b.file(false, 7, "shop", 22)
	b.file(false, 9, "flood", 23)
	for seq, want := range map[uint64]bool{3: false, 7: false, 9: true} {
		if b.r.unread(ids.NewPosition(seq, lagLane), "flood") != want {
			t.Errorf("message %d is unread: %v", seq, !want)
		}
	}
}

// TestASnapshotKnowsItsQueues: a log that ends before what a queue has read, or was passed over, has lost its tail.
func TestASnapshotKnowsItsQueues(t *testing.T) {
	start := &Start{Snapshot: &Snapshot{Queues: []QueueCursor{{Queue: Queue{lagLane, "flood"}, Read: 7, Last: 9}}}}
	if start.Check(8, 0, 0) == nil || start.Check(9, 0, 0) != nil {
		t.Error("it says something else")
	}
}
