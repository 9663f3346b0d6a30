package due

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func of(epoch uint64, m Message) Message {
	m.Epoch = epoch
	return m
}

func fenceAt(seq, epoch uint64) Message { return Message{Seq: seq, Epoch: epoch, Fence: true} }

// A history owner that was stopped for long parks a task that its successor has
// seen cancelled (R24), or a second copy of one that was fired and purged (R14).
func TestI12_WhatAReplacedOwnerParksIsVoid(t *testing.T) {
	messages := []Message{
		of(1, message(1, 60_000, 1)), fenceAt(2, 2), of(2, message(3, 600_000, 9)),
	}
	table := newTable(t, messages...)
	testkit.MustEqual(t, "fired", fire(table, 61_000), []ids.TaskID{testID(1)})
	gone := table.Purgeable(1, 3)
	testkit.MustEqual(t, "purgeable", gone, []Purge{{Bucket: 1, UpTo: 1}})
	table.Purged(gone[0])
	late := []Message{of(1, message(4, 60_000, 1)), of(1, message(5, 70_000, 2, 3))}

	next := New(Config{FiredKeepMS: 600_000, FiredMost: 1000})
	next.Resume(table.Cursor(), 2, 62_000)
	for _, m := range messages[1:] {
		next.Load(m)
	}
	next.Loaded()
	for name, owner := range map[string]*Table{"the same owner": table, "the next owner": next} {
		testkit.Equal(t, name+": tasks are void", owner.Load(late[0])+owner.Load(late[1]), 3)
		if got := fire(owner, 100_000); got != nil {
			t.Errorf("%s: fired %v", name, got)
		}
		if _, status := owner.Find(testID(2), ""); status != Unknown {
			t.Errorf("%s: found with status %d", name, status)
		}
		owner.check(t)
	}
}

func TestI12_AFenceNeverLowersTheEpoch(t *testing.T) {
	table := newTable(t, fenceAt(1, 5), fenceAt(2, 3), of(4, message(3, 1000, 1)), message(4, 1000, 2), of(5, message(5, 1000, 3)))
	if got, want := fire(table, 1000), []ids.TaskID{testID(2), testID(3)}; !slices.Equal(got, want) {
		t.Fatalf("fired %v, want %v: those of the epoch and of no epoch", got, want)
	}
}

func TestI12_AFenceStaysWhileSomethingItVoidsIsStored(t *testing.T) {
	table := newTable(t, fenceAt(1, 2), fenceAt(2, 3), of(2, message(3, 60_000, 1)), fenceAt(4, 4), fenceAt(5, 5), of(5, message(6, 120_000, 2)))
	purge := func(want ...Purge) {
		t.Helper()
		got := table.Purgeable(8, 6)
		testkit.MustEqual(t, "purgeable", got, want)
		for _, p := range got {
			table.Purged(p)
		}
		table.check(t)
	}
	// The message at 3 is void by the fence at 2; nothing is void by the one at 1.
	purge(Purge{Bucket: 1, UpTo: 3}, Purge{Fences: true, UpTo: 1})
	purge(Purge{Fences: true, UpTo: 4})
	purge()
	if n := table.Load(of(4, message(7, 60_000, 3))); n != 1 {
		t.Fatal("the last fence is forgotten")
	}
	table.Load(fenceAt(8, 6))
	purge(Purge{Bucket: 1, UpTo: 7}) // and not the fence at 5, before the message is gone
	purge(Purge{Fences: true, UpTo: 5})
}

// A replaced owner writes between the look for what is purgeable and the purge.
func TestI12_AFenceStaysForWhatAPurgeLeft(t *testing.T) {
	table := newTable(t, fenceAt(1, 2), of(1, message(2, 60_000, 1)), fenceAt(3, 3))
	gone := table.Purgeable(9, 3)
	table.Load(of(2, message(4, 60_000, 2)))
	table.Load(fenceAt(5, 4))
	for _, p := range gone {
		table.Purged(p)
	}
	if got, want := table.Purgeable(2, 5), []Purge{{Fences: true, UpTo: 1}}; !slices.Equal(got, want) {
		t.Fatalf("purgeable: %v, want %v: the message at 4 is void by the fence at 3", got, want)
	}
}
