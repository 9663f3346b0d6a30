package admission

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// answer tells what waits behind a look.
func (b *bench) answer(l Look, all, own uint64) {
	b.Helper()
	b.g.Counted(Counts{Look: l, All: all, Own: own}, b.now)
	b.check()
}

// bulk is a bench whose lane is filled by the tasklist bulk of shop while only tasks of shop wait; bulk is split off.
func bulk(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.file(false, 1, "shop.bulk", 9)
	b.file(false, 2, "shop.mail", 1)
	b.answer(b.look(), 5, 5)
	inside := b.look()
	testkit.MustEqual(t, "the look", inside, Look{Queue{lane, "shop.bulk"}, "shop", 2})
	b.answer(inside, 5, 4)
	return b
}

// split splits places off, as a log says it.
func (b *bench) split(places ...ids.Place) {
	for _, at := range places {
		b.g.Replay(Step{Queue: Queue{lane, at}, Kind: Split})
	}
	b.check()
}

// A tasklist without a worker that fills the lane holds up no other of its domain.
func TestATasklistThatHoldsUpItsDomainIsSplitOff(t *testing.T) {
	b := bulk(t)
	if !b.g.Room(lane) || !b.g.IsSplit(Queue{lane, "shop.bulk"}) || b.g.IsSplit(Queue{lane, "shop.mail"}) || b.g.IsSplit(Queue{lane, "shop"}) {
		t.Fatalf("split off: %+v", b.g.Readings())
	}
	if b.file(false, 3, "shop.bulk", 1) || !b.file(false, 4, "shop.mail", 1) || !b.file(false, 5, "shop", 1) {
		t.Error("its messages come in, or others' do not")
	}
	testkit.Equal(t, "lanes of the domain", b.g.SplitLanes("shop"), 1)
	testkit.Equal(t, "apart", fmt.Sprint(b.g.Apart()), "[shop.bulk]")
	b.leave(9) // a worker has come
	if !b.file(true, 3, "shop.bulk", 1) {
		t.Error("its own reader does not read it")
	}
	if b.looks(); b.g.Splits() > 0 {
		t.Error("it does not go back")
	}
}

// Only one that has a quarter of what its domain has is split off alone; and only so many.
func TestWhichTasklistIsSplitOff(t *testing.T) {
	at := domainAt{lane, "shop"}
	b := newBench(t)
	for n, list := range []ids.Place{"a", "b", "c", "d", "e"} {
		b.file(false, uint64(n+1), "shop."+list, 1)
	}
	if most, ok := b.g.largestList(at, nil); ok {
		t.Errorf("%v is, of five that have as much", most)
	}
	b.file(false, 6, "shop.b", 1)
	most, ok := b.g.largestList(at, nil)
	testkit.Equal(t, "a third", most.Place, "shop.b")
	testkit.Equal(t, "is enough", ok, true)
	for n := range listsMax {
		b.split(ids.Place(fmt.Sprint("shop.", n)))
	}
	if most, ok := b.g.largestList(at, nil); ok {
		t.Errorf("%v is, past %d", most, listsMax)
	}
	g := New(Config{WindowTasks: 10, WindowBytes: 1 << 20})
	g.Charge(Charge{ids.LaneKeyed, "shop", "a", false, taskBytes}, 0)
	if most, ok := g.largestList(domainAt{ids.LaneKeyed, "shop"}, nil); ok {
		t.Errorf("%v is, though an order key may have tasks of other tasklists", most)
	}
}

// As many tasklists without a worker as may be split off hold up no other of their domain, though none has half of what fills the lane.
func TestI11_TasklistsWithoutAWorkerHoldUpNoOther(t *testing.T) {
	b := newBench(t)
	dead := []ids.Place{"shop.a", "shop.b", "shop.c", "shop.d"}
	for seq := uint64(1); seq <= 60; seq++ {
		if at := dead[seq%listsMax]; !b.g.IsSplit(Queue{lane, at}) {
			for range 20 * lookAgainMS / congestedMS {
				for _, l := range b.looks() {
					own := uint64(0)
					if l.Place == "shop" {
						own = 5
					}
					b.answer(l, 5, own) // what waits behind is of the domain, and of a tasklist with a worker
				}
				if b.g.Room(lane) {
					break
				}
			}
			if !b.g.Room(lane) {
				t.Fatalf("there is no room behind %d messages, and split off are %+v", seq, b.g.Readings())
			}
		}
		b.file(false, seq, dead[seq%listsMax], 1)
	}
	testkit.Equal(t, "split off", b.g.Splits(), listsMax)
}

// The queue of a domain is looked at like a lane; what it has not read of a tasklist that is split off it, that one reads.
func TestATasklistIsSplitOffTheQueueOfItsDomain(t *testing.T) {
	b := newBench(t)
	b.split("shop")
	b.file(false, 1, "shop.bulk", 1)
	b.file(false, 2, "shop.bulk", 1)
	b.file(false, 3, "shop.mail", 1)
	b.file(true, 1, "shop", 0)
	if b.fileBy("shop", 1, "shop.bulk", 10) {
		t.Fatal("message 1 is read again")
	}
	b.g.Charge(Charge{lane, "shop", "bulk", false, taskBytes}, 0) // one of message 1, and nine more
	b.tasks = append(b.tasks, Charge{lane, "shop", "bulk", false, taskBytes})
	for range 9 {
		b.g.Charge(b.tasks[0], 0)
		b.tasks = append(b.tasks, b.tasks[0])
	}
	look := b.look()
	testkit.MustEqual(t, "the look", look, Look{Queue{lane, "shop.bulk"}, "shop", 1})
	testkit.Equal(t, "another look meanwhile", len(b.looks()), 0)
	b.answer(look, 2, 2)
	if b.g.IsSplit(Queue{lane, "shop.bulk"}) && b.g.queueOf(Queue{lane, "shop.bulk"}).Place != "shop" {
		t.Error("it is split off though it is alone")
	}
	b.answer(b.look(), 2, 1)
	testkit.Equal(t, "the readers", fmt.Sprint(b.g.Readings()), fmt.Sprint([]Reading{
		{Queue{lane, "shop"}, 2, true}, {Queue{lane, "shop.bulk"}, 2, false},
	}))
	if b.fileBy("shop", 2, "shop.bulk", 1) || !b.fileBy("shop", 3, "shop.mail", 1) {
		t.Error("the domain's reader does not pass over it, or over others")
	}
	for seq, want := range map[uint64]bool{1: false, 2: true, 3: false} {
		testkit.Equal(t, fmt.Sprint("message ", seq, " is unread"), b.g.Unread(ids.NewPosition(seq, lane), "shop", map[bool]string{true: "mail", false: "bulk"}[seq == 3]), want)
	}
	levels := b.g.Levels("", 0)
	for at, want := range map[ids.Place]uint64{"": 3, "shop": 3, "shop.mail": 3, "shop.bulk": 1, "flood.x": 3} {
		testkit.Equal(t, "the level of "+string(at), levels.Of(Queue{lane, at}), want)
	}
	b.leave(10)
	if b.fileBy("shop.bulk", 1, "shop.bulk", 1) || !b.fileBy("shop.bulk", 2, "shop.bulk", 1) {
		t.Error("its reader begins elsewhere")
	}
}

// A tasklist goes back to the queue of its domain when that has read all that it passed over: else it would be read twice.
func TestATasklistGoesBackWhenItsDomainHasCaughtUp(t *testing.T) {
	b := newBench(t)
	b.split("shop", "shop.bulk")
	b.file(false, 1, "shop.mail", 1)
	b.file(false, 2, "shop.bulk", 1)
	b.fileBy("shop.bulk", 2, "shop.bulk", 1)
	if b.looks(); b.g.Splits() != 2 {
		t.Errorf("%d are left, want both", b.g.Splits())
	}
	b.fileBy("shop", 1, "shop.mail", 1)
	if b.looks(); b.g.Splits() != 0 {
		t.Errorf("%d are left", b.g.Splits())
	}
	testkit.Equal(t, "in the lane", b.g.rooms[lane].tasks, 2)
}

// TestI3_WhatATasklistHasReadMayBePurged: what the lane passed over for a tasklist alone is in no step of its domain's queue, which may read it late or
// never.
func TestI3_WhatATasklistHasReadMayBePurged(t *testing.T) {
	b := newBench(t)
	b.split("shop", "shop.bulk")
	b.file(false, 1, "shop.bulk", 1)
	b.fileBy("shop.bulk", 1, "shop.bulk", 1)
	levels := b.g.Levels("", 0)
	testkit.Equal(t, "is not needed up to", levels.PurgeTo(Queue{lane, "shop.bulk"}), 1)
	b.g.BeginTurn()
	b.g.EndTurn(nil)
	b.fileBy("shop", 1, "shop.bulk", 1)
	b.file(false, 2, "shop.mail", 1)
	b.file(false, 3, "shop.bulk", 1)
	b.file(false, 4, "shop.mail", 1)
	b.fileBy("shop.bulk", 3, "shop.bulk", 1)
	levels = b.g.Levels("", 0)
	testkit.Equal(t, "beside what its domain has not read it is needed behind", levels.PurgeTo(Queue{lane, "shop.bulk"}), 0)
	b.fileBy("shop", 2, "shop.mail", 1)
	b.fileBy("shop", 3, "shop.bulk", 1)
	b.fileBy("shop", 4, "shop.mail", 1)
	testkit.Equal(t, "the steps", fmt.Sprint(b.g.BeginTurn()), fmt.Sprint([]Step{
		{Queue: Queue{Lane: lane}, To: 4, From: 1, Messages: 3},
		{Queue: Queue{lane, "shop.bulk"}, To: 3, From: 1, Messages: 1},
		{Queue: Queue{lane, "shop"}, To: 4, Messages: 3},
	}))
}

// TestI1_WhatBothPassOverIsRead: the lane passes over later messages of a tasklist before its domain's queue has come to earlier ones.
func TestI1_WhatBothPassOverIsRead(t *testing.T) {
	b := newBench(t)
	b.split("shop")
	b.file(false, 1, "shop.bulk", 1)
	b.split("shop.bulk")
	b.file(false, 2, "shop.bulk", 1)
	b.fileBy("shop", 1, "shop.bulk", 1)
	for seq := range uint64(2) {
		testkit.Equal(t, fmt.Sprint("unread: ", seq+1), b.g.Unread(ids.NewPosition(seq+1, lane), "shop", "bulk"), true)
		testkit.Equal(t, fmt.Sprint("read: ", seq+1), b.fileBy("shop.bulk", seq+1, "shop.bulk", 1), true)
	}
}

// TestI3_NothingIsReadTwiceAfterATasklistHasGoneBack to the queue of its domain, whose reader may come to its messages then, or be another.
func TestI3_NothingIsReadTwiceAfterATasklistHasGoneBack(t *testing.T) {
	b := newBench(t)
	b.split("shop", "shop.bulk")
	b.file(false, 1, "shop.bulk", 1)
	b.fileBy("shop.bulk", 1, "shop.bulk", 1)
	b.g.Replay(Step{Queue: Queue{lane, "shop.bulk"}, Kind: Merge})
	b.file(false, 2, "shop.mail", 1)
	testkit.Equal(t, "the tasklist's comes in", b.fileBy("shop", 1, "shop.bulk", 1), false)
	b.split("shop.bulk")
	testkit.Equal(t, "by its own reader", b.fileBy("shop.bulk", 1, "shop.bulk", 1), false)
	testkit.Equal(t, "the domain's comes in", b.fileBy("shop", 2, "shop.mail", 1), true)
}

// A domain with many queues takes no more turns than one with one, and leaves the others as much.
func TestI11_QueuesOfADomainShareItsPart(t *testing.T) {
	b := newBench(t)
	b.split("shop", "shop.a", "shop.b", "flood")
	own, all := Queue{Lane: lane}, []Queue{{lane, "shop"}, {lane, "shop.a"}, {lane, "shop.b"}, {lane, "flood"}}
	got := reads(t, b.g, nil, 120, append(all, own)...)
	testkit.Equal(t, "the turns", got, map[Queue]int{own: 60, all[0]: 10, all[1]: 10, all[2]: 10, all[3]: 30})

	seq := uint64(0)
	fill := func(at ids.Place) (n int) {
		for {
			seq++
			b.file(false, seq, at, 1)
			if !b.g.QueueRoom(Queue{lane, at}, seq) {
				return n
			}
			b.fileBy(at, seq, at, 1)
			n++
		}
	}
	testkit.Equal(t, "of one tasklist", fill("shop.a"), 10)
	testkit.Equal(t, "of the next", fill("shop.b"), 5)
	testkit.Equal(t, "of the domain", fill("shop"), 5)
	testkit.Equal(t, "of another domain, beside two windows", fill("flood"), 5)
	if tasks, _ := b.g.laneWindow(lane); tasks != 5 {
		t.Errorf("the lane has a window of %d beside it", tasks)
	}
}

// Tasks of a tasklist that is split off may come in messages of several tasklists. When they take too much, the domain is split off, which bounds them.
func TestI7_WhatComesWithOtherTasklistsIsBounded(t *testing.T) {
	b := bulk(t)
	b.tasks[0], b.tasks[9] = b.tasks[9], b.tasks[0]
	b.leave(1) // that of mail
	seq := uint64(2)
	mixed := func(n int) bool {
		seq++
		in := b.g.Admit(Queue{lane, "shop"}, "", seq)
		for range n {
			task := Charge{lane, "shop", "bulk", false, taskBytes}
			if in {
				b.g.Charge(task, 0)
				b.tasks = append(b.tasks, task)
			}
		}
		b.check()
		return in
	}
	for range 3 {
		testkit.Equal(t, "it comes in", mixed(8), true)
		b.looks()
	}
	b.g.BeginTurn()
	b.g.EndTurn(nil)
	b.looks() // nothing has come since, so the domain has caught up, and would be split off again
	testkit.Equal(t, "steps while it overflows", len(b.g.BeginTurn()), 0)
	b.g.EndTurn(nil)
	testkit.Equal(t, "it comes in after that", mixed(1), false)
	testkit.Equal(t, "room beside three windows", b.g.QueueRoom(Queue{lane, "shop"}, seq), true)
	b.g.Charge(Charge{lane, "shop", "bulk", false, taskBytes}, 0)
	for range 10 {
		b.g.Charge(Charge{lane, "shop", "bulk", false, taskBytes}, 0)
	}
	testkit.Equal(t, "room beside four", b.g.QueueRoom(Queue{lane, "shop"}, seq), false)
	if !b.g.Room(lane) {
		t.Error("others have no room")
	}
	for range 30 * 10 { // of messages that domains share
		b.g.Charge(Charge{lane, "shop", "bulk", true, taskBytes}, 0)
	}
	if b.g.Room(lane) {
		t.Error("there is no bound")
	}
}

// A position tells in which part of a lane it is searched.
func TestWhatIsUnreadOfATasklist(t *testing.T) {
	b := newBench(t)
	b.split("shop.bulk")
	b.file(false, 1, "shop.mail", 1)
	b.file(false, 2, "shop.bulk", 1)
	b.file(false, 3, "shop.bulk", 1)
	at := ids.NewPosition(2, lane)
	for _, c := range []struct {
		pos      ids.Position
		tasklist string
		want     bool
	}{
		{at, "bulk", true},
		{at, "mail", false},
		{at, "", true}, // perhaps
		{at.InMixed(), "bulk", false},
		{at.InMixed(), "", false},
		{at.InShared(), "bulk", false},
		{ids.NewPosition(1, lane), "", false},
	} {
		testkit.Equal(t, fmt.Sprint(c, " is unread"), b.g.Unread(c.pos, "shop", c.tasklist), c.want)
	}
	testkit.Equal(t, "of another domain", b.g.Unread(at, "mall", ""), false)
}
