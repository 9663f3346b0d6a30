package replica

import (
	"testing"

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
	b.now.MS += 250
	return b.step(Tick{})
}

// file reads a message that is filed under a domain, "" = of shop in one that domains share, by the lane's reader or the domain's own.
func (b *bench) file(queue bool, seq uint64, domain string, numbers ...int) *Effects {
	b.Helper()
	b.seq = max(b.seq, seq)
	by := ids.Place("")
	if queue {
		by = ids.Place(domain)
	}
	in := &Submits{Lane: lagLane, Place: ids.Place(domain), By: by, Seq: seq, At: b.now.MS, Bytes: 10}
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
	if len(fx.Looks) != 1 || fx.Looks[0] != (Look{Queue: Queue{Lane: lagLane, Place: "flood"}, Read: 2}) {
		b.Fatalf("it looks for %+v", fx.Looks)
	}
	if fx := b.tick(); len(fx.Looks) > 0 {
		b.Fatal("it looks twice")
	}
	b.step(Looked{Look: fx.Looks[0], All: all, Own: own})
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

// TestI11_WhatIsLeftOfAWindowIsArchivedInTime: beside a window of what lags a lane has half of one. If that is full, what has
// ended there does not wait for company.
func TestI11_WhatIsLeftOfAWindowIsArchivedInTime(t *testing.T) {
	b := lagging(t)
	b.file(false, 5, "shop", series(30, 3)...)
	if b.r.Room(lagLane) {
		t.Fatal("there is room left")
	}
	b.start(11)
	if fx := b.finish(taskstate.Succeeded, 11); len(fx.Archive) != 1 {
		t.Errorf("%d tasks are archived", len(fx.Archive))
	}
}

// TestASnapshotKnowsItsQueues: a log that ends before what a queue has read, or was passed over, has lost its tail.
func TestASnapshotKnowsItsQueues(t *testing.T) {
	start := &Start{Snapshot: &Snapshot{Queues: []QueueCursor{{Queue: Queue{Lane: lagLane, Place: "flood"}, Read: 7, Last: 9}}}}
	if start.Check(8, 0, 0) == nil || start.Check(9, 0, 0) != nil {
		t.Error("it says something else")
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
	if b.r.Unread(pos.InShared(), "flood", "mail") || !b.r.Unread(ids.NewPosition(3, lagLane), "flood", "mail") || b.r.Unread(ids.NewPosition(3, lagLane), "shop", "mail") {
		t.Error("what is unread is wrong")
	}
}
