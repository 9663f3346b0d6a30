package due

import (
	"runtime"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I7: a waiting task takes as much as operators are to plan with, at sizes between those at which a part of the index doubles.
func TestI7_AWaitingTaskTakes75Bytes(t *testing.T) {
	testkit.Slow(t, "measures the memory of many tasks")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, n := range []int{300_000, 500_000} {
		before := heap()
		table := New(Config{})
		table.Resume(Cursor{}, 1, 0)
		for i := range n / 100 {
			table.Load(message(uint64(i+1), 1000+int64(i)*100, upFrom(i*100, 100)...))
		}
		table.Loaded()
		took := float64(heap()-before) / float64(n)
		if table.Len() != n || took < 56 || took > 75 {
			t.Errorf("%d tasks take %.1f bytes each", table.Len(), took)
		}
		runtime.KeepAlive(table)
	}
}

func upFrom(first, n int) (all []int) {
	for i := range n {
		all = append(all, first+i)
	}
	return all
}

// R23: a clock that is where the cursor is needs no part set aside.
func TestR23_NothingIsSetAsideAtTheVeryInstant(t *testing.T) {
	for what, c := range map[string]Line{
		"base":  {Base: Mark{DueMS: 10, Seq: 5}},
		"round": {Base: Mark{DueMS: 5, Seq: 5}, Round: Mark{DueMS: 20, Seq: 6}, Last: Key{DueMS: 10, Seq: 1}},
	} {
		if got, ok := c.rewound(10); !ok || got.Ahead != [AheadMost]Part{} || got.instant() != 10 {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// I12: the fence of an owner that claims again raises nothing, and nothing is purged for it.
func TestI12_AFenceOfTheSameEpochMeansNothing(t *testing.T) {
	table := newTable(t, fenceAt(1, 5), fenceAt(2, 5))
	if got := table.Purgeable(2, 2); got != nil {
		t.Errorf("purgeable: %v", got)
	}
}

// I10: what is due at the very instant of the round belongs to it if it was there when it began, and
// fires after it if not, also for the next owner.
func TestI10_TheInstantOfARoundBelongsToIt(t *testing.T) {
	messages := []Message{message(1, 1000, 1), message(2, 5000, 2), message(3, 5000, 3)}
	table := newTable(t, messages[:2]...)
	table.NextChunk(5000, one)
	table.Commit(5000, 0)
	testkit.MustEqual(t, "the round", table.Cursor().Round, (Mark{5000, 2}))
	table.Load(messages[2])
	next := takeOver(table.Cursor(), 5000, messages...)
	for name, owner := range map[string]*Table{"the same owner": table, "the next owner": next} {
		owner.check(t)
		testkit.Equal(t, name+": fired", fire(owner, 5000), []ids.TaskID{testID(2), testID(3)})
	}
}
