package admission

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1_ATasklistReadsWhatItsDomainHasNotComeTo: it is split off a domain's queue that is behind, and reads its messages before that queue passes over them.
func TestI1_ATasklistReadsWhatItsDomainHasNotComeTo(t *testing.T) {
	b := newBench(t)
	b.split("shop")
	b.file(false, 1, "shop.bulk", 1)
	b.split("shop.bulk")
	at := Queue{lane, "shop.bulk"}
	level := func() uint64 {
		levels := b.g.Levels("", 0)
		return levels.Of(at)
	}
	testkit.Equal(t, "it is unread", b.g.Unread(ids.NewPosition(1, lane), "shop", "bulk"), true)
	testkit.Equal(t, "the level before", level(), 0)
	testkit.Equal(t, "it comes in", b.fileBy("shop.bulk", 1, "shop.bulk", 1), true)
	testkit.Equal(t, "the level after", level(), 1)
	testkit.Equal(t, "it comes in again", b.fileBy("shop", 1, "shop.bulk", 1), false)
	b.looks()
	testkit.Equal(t, "queues that are left", b.g.Splits(), 0)
}

// TestI1_WhatAQueueHasNotReadIsNeeded, whatever the lane and the queue of its domain have read.
func TestI1_WhatAQueueHasNotReadIsNeeded(t *testing.T) {
	b := newBench(t)
	b.split("shop")
	b.file(false, 1, "shop.bulk", 1)
	b.file(false, 2, "shop.mail", 1)
	b.split("shop.bulk")
	b.fileBy("shop", 1, "shop.bulk", 1)
	b.fileBy("shop", 2, "shop.mail", 1)
	b.file(false, 3, "shop.mail", 1)
	levels := b.g.Levels("", 0)
	testkit.Equal(t, "the lane is not needed up to", levels.Lowest(lane), 0)
	testkit.Equal(t, "the tasklist is not needed up to", levels.PurgeTo(Queue{lane, "shop.bulk"}), 0)
	testkit.Equal(t, "its domain's other tasklist is read up to", levels.Of(Queue{lane, "shop.mail"}), 2)
	testkit.Equal(t, "all of its domain is read", b.g.Passed(lane, 3, "shop"), false)
	testkit.Equal(t, "all of another domain is read", b.g.Passed(lane, 3, "bank"), true)
}

// TestI3_NoQueueBeginsOrEndsWhileATurnIsBeingStored: the step would be in no turn.
func TestI3_NoQueueBeginsOrEndsWhileATurnIsBeingStored(t *testing.T) {
	b := splitOff(t)
	b.file(true, 3, "flood", 1)
	b.leave(len(b.tasks)) // it could go back
	b.g.BeginTurn()
	b.looks()
	testkit.Equal(t, "queues", b.g.Splits(), 1)
	b.g.EndTurn(nil)
	b.looks()
	testkit.Equal(t, "queues after the turn", b.g.Splits(), 0)

	b = newBench(t)
	b.file(false, 1, "flood", 10)
	found := b.look()
	b.g.BeginTurn()
	b.answer(found, 9, 1)
	testkit.Equal(t, "queues after an answer", b.g.Splits(), 0)

	b = newBench(t)
	b.split("shop.bulk")
	for range 30 {
		b.charge("bulk", false)
	}
	b.g.BeginTurn()
	b.looks()
	testkit.Equal(t, "queues beside three windows of a tasklist", b.g.Splits(), 1)
}

// charge has one more task of shop come in, in a message of which the gate hears nothing else.
func (b *bench) charge(tasklist string, shared bool) {
	task := Charge{lane, "shop", tasklist, shared, taskBytes}
	b.g.Charge(task, 0)
	b.tasks = append(b.tasks, task)
}

// A queue goes back if half of the window that it goes to is left beside it, in tasks and in bytes; and if it holds nothing.
func TestWhereAQueueGoesBack(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		splits []ids.Place
		held   map[string]int
		want   int
	}{
		"half is left":                        {Config{WindowTasks: 10, WindowBytes: 1 << 20}, []ids.Place{"shop.bulk"}, map[string]int{"bulk": 2, "mail": 3}, 0},
		"less is left":                        {Config{WindowTasks: 10, WindowBytes: 1 << 20}, []ids.Place{"shop.bulk"}, map[string]int{"bulk": 3, "mail": 3}, 1},
		"less is left of the bytes":           {Config{WindowTasks: 100, WindowBytes: 10 * taskBytes}, []ids.Place{"shop.bulk"}, map[string]int{"bulk": 3, "mail": 3}, 1},
		"it holds nothing":                    {Config{WindowTasks: 10, WindowBytes: 1 << 20}, []ids.Place{"shop.bulk"}, map[string]int{"mail": 9}, 0},
		"less is left of its domain's window": {Config{WindowTasks: 10, WindowBytes: 1 << 20}, []ids.Place{"shop", "shop.bulk"}, map[string]int{"bulk": 3, "mail": 6}, 2},
	} {
		b := &bench{T: t, g: New(c.cfg)}
		b.split(c.splits...)
		for tasklist, n := range c.held {
			for range n {
				b.charge(tasklist, false)
			}
		}
		b.g.MergeBack()
		b.check()
		testkit.Equal(t, name, b.g.Splits(), c.want)
	}
}

// TestI7_QueuesAreBoundedInBytes like in tasks: few fat tasks fill a queue, the lane beside it, and the other queues of its domain.
func TestI7_QueuesAreBoundedInBytes(t *testing.T) {
	b := &bench{T: t, g: New(Config{WindowTasks: 1000, WindowBytes: 10 * taskBytes})}
	b.split("shop", "shop.bulk", "shop.mail")
	room := func() (rooms [3]bool) {
		for i, r := range b.g.Readings() {
			rooms[i] = r.Room
		}
		return rooms
	}
	for range 9 {
		b.charge("bulk", false)
	}
	testkit.Equal(t, "room beside nine of ten", room(), [3]bool{true, true, true})
	for range 3 {
		b.charge("mail", false)
	}
	b.charge("bulk", false)
	testkit.Equal(t, "room beside a window", room(), [3]bool{true, false, true})
	for range 30 {
		b.charge("bulk", false)
	}
	testkit.Equal(t, "room beside four windows", room(), [3]bool{false, false, false})
	for range 100 {
		b.charge("bulk", true)
	}
	testkit.Equal(t, "room of the lane beside eleven", b.g.Room(lane), false)
}

// A tasklist that is split off has a window of its own, however much the domain's others take in messages of several tasklists.
func TestATasklistIsReadBesideFourWindowsOfItsDomain(t *testing.T) {
	b := newBench(t)
	b.split("shop", "shop.bulk")
	b.file(false, 1, "shop.bulk", 1)
	for range 40 {
		b.charge("mail", false)
	}
	b.looks()
	testkit.Equal(t, "queues", b.g.Splits(), 2)
	testkit.Equal(t, "room of the tasklist", b.g.QueueRoom(Queue{lane, "shop.bulk"}, 1), true)
	testkit.Equal(t, "room of the domain", b.g.QueueRoom(Queue{lane, "shop"}, 1), false)
}

// What has ended leaves when a lane is full, or the pool of the queues: if it is a quarter of the window, or anything if the bytes are full.
func TestWhenWhatHasEndedShouldLeave(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    Config
		splits []ids.Place
		held   int
		ended  int
		want   bool
	}{
		"the lane has room":                  {Config{WindowTasks: 10, WindowBytes: 1 << 20}, nil, 9, 9, false},
		"the lane is full":                   {Config{WindowTasks: 10, WindowBytes: 1 << 20}, nil, 10, 2, true},
		"few have ended":                     {Config{WindowTasks: 10, WindowBytes: 1 << 20}, nil, 10, 1, false},
		"few have ended, the bytes are full": {Config{WindowTasks: 100, WindowBytes: 10 * taskBytes}, nil, 10, 0, true},
		"the pool is full":                   {Config{WindowTasks: 10, WindowBytes: 1 << 20}, []ids.Place{"shop"}, 10, 2, true},
		"the pool is full of bytes":          {Config{WindowTasks: 100, WindowBytes: 10 * taskBytes}, []ids.Place{"shop"}, 10, 0, true},
		"the pool has room":                  {Config{WindowTasks: 10, WindowBytes: 1 << 20}, []ids.Place{"shop"}, 9, 9, false},
	} {
		b := &bench{T: t, g: New(c.cfg)}
		b.split(c.splits...)
		for range c.held {
			b.charge("mail", false)
		}
		testkit.Equal(t, name, b.g.Full(c.ended), c.want)
	}
}

// hold has a domain take ten tasks of a tasklist, in a lane.
func (b *bench) hold(at Queue) {
	for range 10 {
		task := Charge{at.Lane, at.Place.Domain(), at.Place.Tasklist(), false, taskBytes}
		b.g.Charge(task, 0)
		b.tasks = append(b.tasks, task)
	}
}

// TestI11_OnlyWhoTakesTheLaneIsLookedAt: not who is split off it, holds as much in another lane, or was alone before the lane had room.
func TestI11_OnlyWhoTakesTheLaneIsLookedAt(t *testing.T) {
	b := splitOff(t)
	b.leave(11) // but one of shop
	b.hold(Queue{lane, "flood.mail"})
	b.hold(Queue{lane + 1, "aaa.mail"})
	b.file(false, 5, "bank", 5)
	b.now += congestedMS
	var in []Look
	for _, l := range append(b.looks(), b.looks()...) {
		if l.Lane == lane && l.In == "" {
			in = append(in, l)
		}
	}
	testkit.Equal(t, "looks", in, []Look{{Queue{lane, "bank"}, "", 5}})

	b = newBench(t)
	b.flood(5, 5)
	b.leave(len(b.tasks))
	b.looks()
	b.file(false, 3, "flood", 4)
	b.file(false, 4, "bank", 6)
	testkit.Equal(t, "the look after there was room", b.look(), Look{Queue{lane, "bank"}, "", 4})
}

// TestI11_QueuesOfDomainsAreLookedAtInTurn, and none of a tasklist.
func TestI11_QueuesOfDomainsAreLookedAtInTurn(t *testing.T) {
	b := newBench(t)
	b.split("a", "b", "c.x")
	for _, at := range []ids.Place{"a.x", "b.x", "c.x"} {
		b.hold(Queue{lane, at})
	}
	var found []ids.Place
	for range 8 {
		for _, l := range b.looks() {
			found = append(found, l.Place)
		}
	}
	testkit.Equal(t, "looks", found, []ids.Place{"a.x", "b.x"})
}

// TestOnlyWhatWasCountedIsSplitOff: another tasklist takes most by the time of the answer.
func TestOnlyWhatWasCountedIsSplitOff(t *testing.T) {
	b := newBench(t)
	b.split("shop")
	b.hold(Queue{lane, "shop.bulk"})
	found := b.look()
	b.hold(Queue{lane, "shop.mail"})
	b.charge("mail", false)
	b.answer(found, 9, 1)
	testkit.Equal(t, "queues", b.g.Splits(), 1)
}

// TestI7_SoManyTasklistsAreSplitOff with all other queues: no tasklist is out of a domain's, and no domain is for what its tasklists take.
func TestI7_SoManyTasklistsAreSplitOff(t *testing.T) {
	for _, own := range []ids.Place{"shop", "shop.bulk"} {
		b := newBench(t)
		b.g.Replay(Step{Queue: Queue{lane, own}, Kind: Split})
		for n := range queuesMax - 1 {
			b.g.Replay(Step{Queue: Queue{lane, ids.Place(fmt.Sprint("flood-", n))}, Kind: Split})
		}
		for range 3 {
			b.hold(Queue{lane, "shop.bulk"})
		}
		b.g.Congested(b.now)
		b.answer(Look{Queue{lane, "shop.bulk"}, own, 0}, 9, 1)
		testkit.Equal(t, "queues beside that of "+string(own), b.g.Splits(), queuesMax)
	}
}

// A split that is there already is taken once.
func TestASplitIsTakenOnce(t *testing.T) {
	b := newBench(t)
	b.split("shop", "shop")
	testkit.Equal(t, "queues", b.g.Splits(), 1)
}
