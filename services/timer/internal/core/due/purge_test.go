package due

import (
	"math"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestPurgeableNeedsEverythingLoadedAndFired(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(2, 2000, 2), message(3, testMinute, 3), message(4, 2*testMinute, 4))
	fire(table, 1000)
	if got := table.Purgeable(9, 4, 0); got != nil {
		t.Fatalf("purgeable with a task that waits: %v", got)
	}
	fire(table, 2000)
	for _, c := range []struct {
		parked, end uint64
		want        []Purge
	}{{1, 4, nil}, {2, 5, nil}, {2, 4, []Purge{{Bucket: 0, UpTo: 2}}}, {9, 3, []Purge{{Bucket: 0, UpTo: 2}}}} {
		if got := table.Purgeable(c.parked, c.end, 0); !slices.Equal(got, c.want) {
			t.Errorf("parked %d, end %d: %v", c.parked, c.end, got)
		}
	}
	table.Purged(Purge{Bucket: 0, UpTo: 1})
	if got := table.Purgeable(2, 4, 0); len(got) != 1 {
		t.Errorf("after a purge that fell short: %v", got)
	}
	table.Purged(Purge{Bucket: 0, UpTo: 2})
	table.Purged(Purge{Bucket: 77, UpTo: 2})
	if got := table.Purgeable(2, 4, 0); got != nil {
		t.Errorf("after the purge: %v", got)
	}
	table.check(t)
}

func TestAPurgeForgetsCancelledTasksUpToItsMessage(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(2, 1000, 2), message(3, testMinute, 3))
	table.Cancel(testID(1))
	table.Cancel(testID(2))
	table.Cancel(testID(3))
	table.Purged(Purge{Bucket: 0, UpTo: 1})
	have(t, table, map[int]Status{1: Unknown, 2: Cancelled, 3: Cancelled})
	table.Load(message(4, 1000, 4)) // into the bucket that was purged in part
	table.Purged(Purge{Bucket: 0, UpTo: 4})
	have(t, table, map[int]Status{2: Unknown, 3: Cancelled, 4: Waiting})
	table.check(t)
	table.Load(message(5, 9*testMinute, 5))
	fire(table, 1000)
	table.check(t)
	testkit.Equal(t, "when nothing cancelled is left of it", table.Purgeable(5, 5, 0), []Purge{{Bucket: 0, UpTo: 4}})
}

// TestAPurgeForgetsNoLaterStay of a cancelled task: neither one that waits, nor one that was cancelled in its turn and lies in another bucket.
func TestAPurgeForgetsNoLaterStay(t *testing.T) {
	table := newTable(t, message(1, 1000, 1, 2), message(2, 1000, 9))
	table.Cancel(testID(1))
	table.Cancel(testID(2))
	table.Load(later(message(3, testMinute, 1), 2))
	table.Load(later(message(4, testMinute, 2), 2))
	table.Cancel(testID(2))
	table.Load(message(7, 1000, 8))
	table.Purged(Purge{Bucket: 0, UpTo: 7})
	have(t, table, map[int]Status{1: Waiting, 2: Cancelled})
	table.check(t)
}

// TestPurgesAreInOrder of their buckets, the fences last, and so are the tombstones of a cancel.
func TestPurgesAreInOrder(t *testing.T) {
	for range 8 { // a map has the buckets
		table := newTable(t, message(1, 3*testMinute, 3), message(2, testMinute, 1), message(3, 2*testMinute, 2), message(4, 9*testMinute, 9))
		fire(table, 3*testMinute)
		var got []int64
		for _, p := range table.Purgeable(9, 4, 0) {
			got = append(got, p.Bucket)
		}
		testkit.MustEqual(t, "purgeable", got, []int64{1, 2, 3})
	}
	table := newTable(t, message(1, testMinute, 1), message(2, 1000, 2))
	if all := table.Tombstones([]Wanted{{ID: testID(1)}, {ID: testID(2)}}); len(all) != 2 || all[0].Bucket != 0 || all[1].Bucket != 1 {
		t.Errorf("tombstones %+v", all)
	}
}

// What the checkpoint must be later than is the last of the cancels.
func TestABucketWaitsForItsLastCancel(t *testing.T) {
	table := newTable(t, message(1, 1000, 1, 2), message(2, 9*testMinute, 3))
	table.Cancel(testID(1))
	table.Cancel(testID(2))
	table.Load(Message{Seq: 3, AtMS: 100, Tombstones: voids(math.MaxUint32, testID(1))})
	table.Load(Message{Seq: 4, AtMS: 40, Tombstones: voids(math.MaxUint32, testID(2))})
	table.Cancel(testID(2)) // already void
	table.Load(message(5, 9*testMinute, 4))
	for savedMS, want := range map[int64]int{150: 0, 151: 1} {
		if got := table.Purgeable(5, 5, savedMS); len(got) != want {
			t.Errorf("by a checkpoint of %d: %v", savedMS, got)
		}
	}
}
