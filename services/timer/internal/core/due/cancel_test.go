package due

import (
	"math"
	"reflect"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R2: who knows an id of another tenant neither cancels the task nor hears of it.
func TestR2_ATaskOfAnotherDomainIsLeftAlone(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(2, 90_000, 2, 3), message(3, 90_000, 4))
	fire(table, 1000)
	ask := func(domain string) []Wanted {
		var all []Wanted
		for n := 1; n <= 5; n++ {
			all = append(all, Wanted{ID: testID(n), Domain: domain}, Wanted{ID: testID(n), Domain: domain})
		}
		return all
	}
	if got := table.Tombstones(ask("b")); got != nil {
		t.Fatalf("tombstones %v", got)
	}
	want := []Tombstones{{Bucket: 1, All: voids(1, testID(2), testID(3), testID(4))}}
	for _, domain := range []string{"a", ""} {
		if got := table.Tombstones(ask(domain)); !reflect.DeepEqual(got, want) {
			t.Fatalf("tombstones %v", got)
		}
	}
	table.Cancel(testID(2))
	table.Fenced()
	if got := table.Answer(ask("b")); !reflect.DeepEqual(got, Answer{}) {
		t.Errorf("another domain hears %+v", got)
	}
	got := table.Answer(ask("a"))
	if len(got.Cancelled) != 1 || got.Cancelled[0].ID != testID(2) || len(got.Fired) != 1 || got.Fired[0].ID != testID(1) || !got.Undone {
		t.Errorf("the domain hears %+v", got)
	}
}

func TestACancelIsFinalAfterTheFence(t *testing.T) {
	table := newTable(t, message(1, 1000, 1))
	wanted := []Wanted{{ID: testID(1)}}
	table.Fenced()
	table.Cancel(testID(1))
	if got := table.Answer(wanted); !table.Unfenced() || !got.Undone {
		t.Fatalf("before the fence: %+v", got)
	}
	table.Fenced()
	if got := table.Answer(wanted); table.Unfenced() || got.Undone || len(got.Cancelled) != 1 {
		t.Fatalf("after it: %+v", got)
	}
}

// An owner that was overtaken reads the tombstone of another one. Whether the task has been fired meanwhile
// only the log can tell it, by refusing its cursor.
func TestI6_ATombstoneOfAnotherOwnerIsFinalAfterTheFence(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(2, 1000, 2))
	table.Fenced()
	table.Cancel(testID(2))
	table.Fenced()
	table.Load(Message{Seq: 3, Tombstones: voids(math.MaxUint32, testID(2), testID(3))})
	if table.Unfenced() {
		t.Error("what it reads of its own, or of no task, costs another cursor")
	}
	table.Load(Message{Seq: 4, Tombstones: voids(math.MaxUint32, testID(1))})
	wanted := []Wanted{{ID: testID(1)}}
	if got := table.Answer(wanted); !table.Unfenced() || !got.Undone {
		t.Fatalf("before the fence: %+v", got)
	}
	table.Fenced()
	if got := table.Answer(wanted); got.Undone || len(got.Cancelled) != 1 {
		t.Fatalf("after it: %+v", got)
	}
}

// R18: what was fired is found with its place in the log.
func TestR18_AFiredTaskIsKnownWithItsPlace(t *testing.T) {
	m := message(1, 1000, 1, 2, 3)
	m.Tasks[1].Group.Tasklist = "y"
	table := newTable(t, m, message(2, 1000, 4))
	if _, ok := table.NextChunk(1000, Limits{Tasks: 9, Bytes: 1000, Messages: 9, MessageTasks: 2, MessageBytes: 1000}); !ok {
		t.Fatal("nothing due")
	}
	table.Commit(1000, 103) // messages of 1 and 3, of 2, of 4; the cursor
	var got []uint64
	for n := 1; n <= 4; n++ {
		stay, status := table.Find(testID(n), "a")
		if status != Fired {
			t.Fatalf("%d has status %d", n, status)
		}
		got = append(got, stay.LogSeq)
	}
	testkit.Equal(t, "they lie at", got, []uint64{100, 101, 100, 102})
	if _, status := table.Find(testID(1), "b"); status != Unknown {
		t.Errorf("another domain finds it with status %d", status)
	}
	for n := 1; n <= 4; n++ {
		if a := table.Answer([]Wanted{{ID: testID(n)}}); len(a.Fired) != 1 || a.Fired[0].LogSeq != got[n-1] {
			t.Errorf("a cancel of %d hears %+v", n, a)
		}
	}
}

// Of two owners the one that has not read the tombstone fires the task, and the other one ends before
// the canceller has its answer. Or the answer came, the task was parked again, and that has been fired. Who asks the next
// owner, or again, gets the record, and hears that it may have been fired.
func TestATaskThatWasVoidBeforeMayHaveBeenFired(t *testing.T) {
	first := newTable(t, message(1, 1000, 1), message(2, 2000, 2))
	fire(first, 1000)
	next := takeOver(
		first.Cursor(), 1000, message(1, 1000, 1), message(2, 2000, 2), message(3, 2000, 3),
		Message{Seq: 4, Tombstones: voids(math.MaxUint32, testID(1), testID(2))},
	)
	next.Fenced()
	next.Cancel(testID(3))
	wanted := []Wanted{{ID: testID(1)}, {ID: testID(2)}, {ID: testID(3)}}
	before := []Fate{{ID: testID(1)}, {ID: testID(2)}}
	if got := next.Answer(wanted); len(got.Cancelled) != 3 || !got.Undone || !reflect.DeepEqual(got.Fired, before) {
		t.Errorf("before the cursor is stored it answers %+v", got)
	}
	next.Fenced()
	if got := next.Answer(wanted); len(got.Cancelled) != 3 || got.Undone || !reflect.DeepEqual(got.Fired, before) {
		t.Errorf("it answers %+v", got)
	}
	if got := next.Answer(wanted); len(got.Cancelled) != 3 || !reflect.DeepEqual(got.Fired, append(before, Fate{ID: testID(3)})) {
		t.Errorf("once more it answers %+v", got)
	}
}

// TestWhatIsParkedAgainIsNotTouched: neither by a call for what the store had before, nor by a tombstone of the stay before that comes late, nor by a
// history owner that has been replaced.
func TestWhatIsParkedAgainIsNotTouched(t *testing.T) {
	table := newTable(t, message(1, 1000, 1))
	old, late := Wanted{ID: testID(1), UpTo: 1}, Wanted{ID: testID(1), UpTo: 2}
	if got := table.Tombstones([]Wanted{old}); len(got) != 1 || got[0].All[0].UpTo != 1 {
		t.Fatalf("%+v", got)
	}
	table.Cancel(testID(1))
	table.Load(Message{Seq: 2, Tombstones: voids(1, testID(1))})
	table.Fenced()
	if a := table.Answer([]Wanted{old}); len(a.Cancelled) != 1 || a.Undone {
		t.Errorf("%+v", a)
	}
	again := message(3, 2000, 1)
	again.Tasks[0].Parkings = 2
	table.Load(again)
	table.Load(Message{Seq: 4, Tombstones: voids(1, testID(1))})
	for _, w := range []Wanted{old, late} {
		if got, a := table.Tombstones([]Wanted{w}), table.Answer([]Wanted{w}); got != nil || len(a.Cancelled) > 0 || len(a.Fired) > 0 {
			t.Errorf("up to %d: %+v, %+v", w.UpTo, got, a)
		}
	}
	have(t, table, map[int]Status{1: Waiting})
	table.Load(Message{Seq: 5, Epoch: 8, Fence: true})
	replaced, present := Wanted{ID: testID(1), UpTo: 5, Epoch: 7}, Wanted{ID: testID(1), UpTo: 5, Epoch: 8}
	if got, a := table.Tombstones([]Wanted{replaced}), table.Answer([]Wanted{replaced}); got != nil || !a.Undone {
		t.Errorf("for a replaced owner: %+v, %+v", got, a)
	}
	if got := table.Tombstones([]Wanted{present}); len(got) != 1 || got[0].All[0].UpTo != 2 {
		t.Errorf("for the present one: %+v", got)
	}
	table.Load(Message{Seq: 6, Tombstones: voids(2, testID(1))})
	have(t, table, map[int]Status{1: Cancelled})
	table.Fenced()
	if a := table.Answer([]Wanted{replaced}); len(a.Cancelled) != 0 || !a.Undone {
		t.Errorf("a replaced owner is given the task: %+v", a)
	}
	if a := table.Answer([]Wanted{old}); len(a.Cancelled)+len(a.Fired) != 0 || a.Undone {
		t.Errorf("a call for the stay before is given the task: %+v", a)
	}
	if a := table.Answer([]Wanted{{ID: testID(1), UpTo: 5}}); len(a.Cancelled) != 1 || a.Undone {
		t.Errorf("an owner that names no epoch gets %+v", a)
	}
	table.check(t)
}

// TestACallIsUndoneAsAWhole, if one of its tasks still waits, wherever it is named. What is answered so was not taken.
func TestACallIsUndoneAsAWhole(t *testing.T) {
	for _, order := range [][]Wanted{{{ID: testID(1)}, {ID: testID(2)}}, {{ID: testID(2)}, {ID: testID(1)}}} {
		table := newTable(t, message(1, 1000, 1), message(2, 2000, 2))
		table.Cancel(testID(1))
		table.Fenced()
		for range 2 {
			if a := table.Answer(order); len(a.Cancelled) != 1 || !a.Undone || len(a.Fired) != 0 {
				t.Errorf("%v: %+v", order, a)
			}
		}
	}
}
