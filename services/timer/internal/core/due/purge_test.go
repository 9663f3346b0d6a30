package due

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestPurgeableNeedsEverythingLoadedAndFired(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(2, 2000, 2), message(3, testMinute, 3), message(4, 2*testMinute, 4))
	fire(table, 1000)
	if got := table.Purgeable(9, 4); got != nil {
		t.Fatalf("purgeable with a task that waits: %v", got)
	}
	fire(table, 2000)
	for _, c := range []struct {
		parked, end uint64
		want        []Purge
	}{{1, 4, nil}, {2, 5, nil}, {2, 4, []Purge{{Bucket: 0, UpTo: 2}}}, {9, 3, []Purge{{Bucket: 0, UpTo: 2}}}} {
		if got := table.Purgeable(c.parked, c.end); !slices.Equal(got, c.want) {
			t.Errorf("parked %d, end %d: %v", c.parked, c.end, got)
		}
	}
	table.Purged(Purge{Bucket: 0, UpTo: 1})
	if got := table.Purgeable(2, 4); len(got) != 1 {
		t.Errorf("after a purge that fell short: %v", got)
	}
	table.Purged(Purge{Bucket: 0, UpTo: 2})
	table.Purged(Purge{Bucket: 77, UpTo: 2})
	if got := table.Purgeable(2, 4); got != nil {
		t.Errorf("after the purge: %v", got)
	}
	table.check(t)
}

// TestABucketOfAnEarlyTaskGoes, though history has parked nothing since the early message.
func TestABucketOfAnEarlyTaskGoes(t *testing.T) {
	table := newTable(t, message(1, 90_000, 1), earlies(2, 500, 1, 1), message(3, 9*testMinute, 9))
	fire(table, 1000)
	if got := table.Purgeable(1, 3); !slices.Equal(got, []Purge{{Bucket: 1, UpTo: 2}}) {
		t.Errorf("%v", got)
	}
}

// TestPurgesAreInOrder of their buckets, the fences last, and so are early messages.
func TestPurgesAreInOrder(t *testing.T) {
	for range 8 { // a map has the buckets
		table := newTable(t, message(1, 3*testMinute, 3), message(2, testMinute, 1), message(3, 2*testMinute, 2), message(4, 9*testMinute, 9))
		fire(table, 3*testMinute)
		var got []int64
		for _, p := range table.Purgeable(9, 4) {
			got = append(got, p.Bucket)
		}
		testkit.MustEqual(t, "purgeable", got, []int64{1, 2, 3})
	}
	table := newTable(t, message(1, testMinute, 1), message(2, 1000, 2))
	needed, _ := table.FireEarly([]Wanted{{ID: testID(1)}, {ID: testID(2)}}, 0)
	if all := EarlyMessages(needed); len(all) != 2 || all[0].Bucket != 0 || all[1].Bucket != 1 {
		t.Errorf("early messages %+v", all)
	}
}
