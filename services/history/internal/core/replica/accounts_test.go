package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/window"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

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

// TestI7_SoManyDomainsLag and no more, also if they are taken out at once.
func TestI7_SoManyDomainsLag(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "one", series(1, 4)...)
	b.file(false, 2, "two", append(series(11, 4), 30, 31)...)
	for n := range queuesMax - 1 { // they lag no more, and a takeover may still need them
		at := Queue{lagLane, fmt.Sprint("flood-", n)}
		b.r.queues[at] = &queue{Queue: at, window: window.NewLane(2), end: 2, ended: true}
	}
	b.tick()
	fx := b.tick()
	if len(fx.Looks) != 1 {
		t.Fatal("it does not look")
	}
	b.file(false, 3, "three", series(21, 4)...)
	b.step(Looked{Look: fx.Looks[0], All: 1})
	testkit.Equal(t, "lag", b.r.Lagging(), 1)
}

// TestWhatADomainHoldsItselfHalvesNothing of its own window.
func TestWhatADomainHoldsItselfHalvesNothing(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "flood", series(1, 6)...)
	b.file(false, 2, "torrent", series(11, 4)...)
	for _, domain := range []string{"flood", "torrent"} {
		b.r.lag(Queue{lagLane, domain})
	}
	b.file(false, 3, "flood", 20)
	if !b.r.QueueRoom(Queue{lagLane, "flood"}, 3) {
		t.Error("six of ten fill it")
	}
}

// TestTheArchiveIsCoveredBesideAFlood: what another owner archived, and no record brings any more, is forgotten though a
// domain lags forever; but not what a grab waits for, or what may have been parked.
func TestTheArchiveIsCoveredBesideAFlood(t *testing.T) {
	for _, granted := range []bool{false, true} {
		cp := Checkpoint{Queues: []QueueCursor{{Queue: Queue{lagLane, "flood"}, Ack: 1, Read: 2, Last: 6}}, ArchiveSeq: 7, TimerSeq: 3}
		cp.Ack[lagLane], cp.Read[lagLane] = 7, 7
		b := &bench{T: t, r: New(carryConfig(), cp, 0), now: Now{MS: scenarioStart}}
		b.file(true, 2, "flood", 2)
		if granted {
			b.step(&Events{Seq: 8, At: b.now.MS, Events: []taskstate.Event{
				{Kind: taskstate.Started, ID: id(6), Domain: "flood", Fence: ids.Token{Position: ids.NewPosition(6, lagLane), Version: 1, Nonce: 1}},
			}})
		}
		b.step(Recovered{
			Archived: Ends{id(99): 1}, ArchiveSeq: 9, Parked: map[Stay]bool{{ID: id(98)}: true}, TimerSeq: 5,
			Ends: Levels{Lanes: [ids.Lanes]uint64{lagLane: 7}},
		})
		b.tick()
		want := uint64(9)
		if granted {
			want = 7
		}
		if cp := b.r.Checkpoint(); cp.ArchiveSeq != want || cp.TimerSeq != 3 {
			t.Errorf("granted %v: covered up to %d in the archive, %d in the timer store", granted, cp.ArchiveSeq, cp.TimerSeq)
		}
		b.file(true, 6, "flood", 6)
		b.tick()
		if cp := b.r.Checkpoint(); cp.ArchiveSeq != 9 || cp.TimerSeq != 5 {
			t.Errorf("all is read: covered up to %d in the archive, %d in the timer store", cp.ArchiveSeq, cp.TimerSeq)
		}
	}
}

// TestI3_WhatLagsIsNotArchivedAgain: the owner before has read further in a queue than it could save, and has archived what
// was completed there, and what was cancelled without a grab. That is remembered until the queue is read.
func TestI3_WhatLagsIsNotArchivedAgain(t *testing.T) {
	for _, events := range [][]taskstate.Event{
		{{Kind: taskstate.Cancel}},
		{{Kind: taskstate.Started, Fence: ids.Token{Version: 1, Nonce: 1}}, {Kind: taskstate.Succeeded, Fence: ids.Token{Version: 1, Nonce: 1}}},
	} {
		cp := Checkpoint{Queues: []QueueCursor{{Queue: Queue{lagLane, "flood"}, Ack: 2, Read: 2, Last: 6}}}
		cp.Ack[lagLane], cp.Read[lagLane] = 7, 7
		b := &bench{T: t, r: New(carryConfig(), cp, 0), now: Now{MS: scenarioStart}}
		for i := range events {
			events[i].ID, events[i].Domain, events[i].Fence.Position = id(6), "flood", ids.NewPosition(6, lagLane)
			b.step(&Events{Seq: uint64(8 + i), At: b.now.MS, Events: events[i : i+1]})
		}
		fx := b.step(Recovered{Archived: Ends{id(6): 1, id(99): 1}, ArchiveSeq: 9, Ends: Levels{Lanes: [ids.Lanes]uint64{lagLane: 7}}})
		for _, s := range fx.Searches {
			b.step(&Found{Search: s, Archived: &Entry{Task: taskstate.Task{ID: id(6), Domain: "flood", State: taskstate.Cancelled}}, Ends: [ids.Lanes]uint64{lagLane: 7}})
		}
		b.tick()
		b.tick()
		b.file(true, 6, "flood", 6)
		if e := b.r.tasks[id(6)]; e == nil || !e.State.Finished() || !e.left {
			t.Errorf("%s: the task is %+v", events[0].Kind, e)
		}
		if n := len(b.r.archive.queue) + len(b.r.archive.busy); n > 0 {
			t.Errorf("%s: %d tasks are archived again", events[0].Kind, n)
		}
	}
}

// TestWindowsBesideWhatLags are halved for each window of tasks or of bytes.
func TestWindowsBesideWhatLags(t *testing.T) {
	b := crowd(t)
	for _, c := range []struct {
		tasks     int
		bytes     int64
		want      int
		wantBytes int64
	}{
		{0, 0, 10, 1 << 20},
		{9, 1<<20 - 1, 10, 1 << 20},
		{10, 0, 5, 1 << 19},
		{0, 1 << 20, 5, 1 << 19},
		{20, 1 << 20, 2, 1 << 18},
		{100, 0, 1, 1 << 10},
		{109, 0, 1, 1 << 10},
		{110, 0, 0, 0},
		{0, 11 << 20, 0, 0},
	} {
		if tasks, bytes := b.r.windowBeside(c.tasks, c.bytes); tasks != c.want || bytes != c.wantBytes {
			t.Errorf("beside %d tasks and %d bytes: %d and %d", c.tasks, c.bytes, tasks, bytes)
		}
	}
}

// TestI7_WhatLagsTakesOfWhatIsShared: beside a window of it half as much is shared, and who holds more of it than a half of that
// is filed apart.
func TestI7_WhatLagsTakesOfWhatIsShared(t *testing.T) {
	b := crowd(t)
	submit := func(n int, filed, domain string) {
		b.step(&Submits{Lane: ids.LaneFirst, Domain: filed, Seq: uint64(n), Tasks: []*Entry{
			{Task: taskstate.Task{ID: id(n), Domain: domain, Tasklist: "mail", Type: "send", Priority: lagLane, Policy: storyPolicy}},
		}})
	}
	for n := range 10 {
		submit(n+1, "flood", "flood")
	}
	b.r.lag(Queue{ids.LaneFirst, "flood"})
	if tasks, bytes := b.r.Shareable(0); tasks != 2 || bytes != 1<<18 {
		t.Errorf("%d tasks and %d bytes may be shared", tasks, bytes)
	}
	if submit(11, "", "shop"); len(b.r.Apart()) != 1 {
		t.Errorf("%v with one of two", b.r.Apart())
	}
	if submit(12, "", "shop"); len(b.r.Apart()) != 2 {
		t.Error("who holds two of two is not filed apart")
	}
}

// TestALaneThatHadRoomIsNotLookedAtAtOnce when it has none again.
func TestALaneThatHadRoomIsNotLookedAtAtOnce(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "flood", series(1, 10)...)
	b.tick()
	b.r.leave(b.r.tasks[id(1)])
	b.tick()
	b.file(false, 2, "flood", 11)
	if fx := b.tick(); len(fx.Looks) > 0 {
		t.Error("it is")
	}
	if fx := b.tick(); len(fx.Looks) != 1 {
		t.Error("it is not looked at any more")
	}
}

// TestI11_AllThatLagAreFiledApart, however many: what lags and comes with others is read whatever it holds, and takes the
// lane's window from everybody.
func TestI11_AllThatLagAreFiledApart(t *testing.T) {
	const floods = 100
	b := crowd(t)
	for n := range floods {
		b.file(false, uint64(n+1), fmt.Sprint("flood-", n), n+1)
		b.r.lag(Queue{lagLane, fmt.Sprint("flood-", n)})
	}
	if all := b.r.Apart(); len(all) != floods {
		t.Errorf("%d of %d are filed apart", len(all), floods)
	}
}

// TestI11_WhoFloodsFasterThanItIsCountedLags, after a few counts in a row that were unsure.
func TestI11_WhoFloodsFasterThanItIsCountedLags(t *testing.T) {
	b := crowd(t)
	b.file(false, 1, "flood", series(1, 10)...)
	look := func(unsure bool) {
		t.Helper()
		for range 2 * lookAgainMS / congestedMS {
			if fx := b.tick(); len(fx.Looks) > 0 {
				b.step(Looked{Look: fx.Looks[0], All: 5, Own: 6, Unsure: unsure})
				return
			}
		}
		t.Fatal("it does not look")
	}
	for range unsureMax - 1 {
		look(true)
	}
	look(false)
	for range unsureMax - 1 {
		look(true)
	}
	if b.r.Lagging() > 0 {
		t.Error("it lags though a count was sure")
	}
	if look(true); b.r.Lagging() != 1 {
		t.Error("it does not lag")
	}
}
