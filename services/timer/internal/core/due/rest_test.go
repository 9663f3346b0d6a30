package due

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestVoidTasksThatAreLoadedLast: the fence before the first of them is not purged, and a bucket is purged up to its last message.
func TestVoidTasksThatAreLoadedLast(t *testing.T) {
	table := New(farConfig(100))
	table.Resume(Cursor{EarlyFrom: 1}, 1, 0)
	first, ok := Rest{table}.NearFirst([]int64{0, 60}, nil, 3)
	testkit.MustEqual(t, "loaded first", first, []int64{0})
	testkit.MustEqual(t, "not all", ok, true)
	table.Load(fenceAt(1, 2))
	table.Load(message(3, 1000, 2))
	table.Loaded()
	table.Load(fenceAt(4, 3))
	testkit.Equal(t, "void", table.Load(of(2, message(5, 60*testMinute, 3))), 1)
	testkit.Equal(t, "void", Rest{table}.Load(of(1, message(2, 60*testMinute, 1))), 1)
	testkit.Equal(t, "purgeable before all is loaded", table.Purgeable(9, 5), nil)
	Rest{table}.Whole()
	table.Load(message(6, 1000, 4))
	testkit.Equal(t, "purgeable", table.Purgeable(9, 6), []Purge{{Bucket: 60, UpTo: 5}})
	testkit.Equal(t, "fired", fire(table, 1000), []ids.TaskID{testID(2), testID(4)})
}

// TestAllIsLoadedFirst if the cursor does not say which early messages have fired, if all is near, or if too much is.
func TestAllIsLoadedFirst(t *testing.T) {
	var many []int64
	for n := range int64(firstMost + 1) {
		many = append(many, n-2*firstMost)
	}
	for name, c := range map[string]struct {
		cursor  Cursor
		buckets []int64
	}{"no sequence": {Cursor{}, []int64{0, 60}}, "all is near": {Cursor{EarlyFrom: 1}, []int64{0, 1}}, "too much is near": {Cursor{EarlyFrom: 1}, append(many, 60)}} {
		table := New(farConfig(100))
		table.Resume(c.cursor, 1, 0)
		if first, ok := (Rest{table}).NearFirst(c.buckets, nil, 3); ok || first != nil {
			t.Errorf("%s: %v is loaded first", name, first)
		}
	}
}

// TestOldTasksPutNoneThatJustFiredOutOfMemory: the rest has tasks that fired before the takeover, and history still asks for those that fired since.
func TestOldTasksPutNoneThatJustFiredOutOfMemory(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1, 3))
	s.bring(testID(1))
	s.bring(testID(3))
	needed, _ := s.table.FireEarly([]Wanted{{ID: testID(1)}, {ID: testID(3)}}, 1000)
	for _, m := range EarlyMessages(needed) {
		s.append(Message{Seq: 2, AtMS: 1000, Bucket: m.Bucket, Early: m.All, Domain: m.Domain, Tasklist: m.Tasklist})
	}
	testkit.MustEqual(t, "fired by the owner before", fire(s.table, 1000), []ids.TaskID{testID(1), testID(3)})
	cursor, config := s.table.Cursor(), farConfig(100)
	cursor.EarlyFrom, config.FiredMost = 3, 2
	table := New(config)
	table.Resume(cursor, 2, 1000)
	_, ok := Rest{table}.NearFirst([]int64{0, 60}, nil, 3)
	testkit.MustEqual(t, "not all is loaded first", ok, true)
	table.Load(message(3, 2000, 2))
	table.Loaded()
	testkit.MustEqual(t, "fired", fire(table, 2000), []ids.TaskID{testID(2)})
	for _, m := range s.messages {
		Rest{table}.Load(m)
	}
	Rest{table}.Whole()
	_, status := table.Find(testID(2), "a")
	testkit.Equal(t, "the task that fired last", status, Fired)
	testkit.Equal(t, "wait", table.Len(), 0)
}
