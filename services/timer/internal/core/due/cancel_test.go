package due

import (
	"reflect"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// R2: who knows an id of another tenant neither cancels the task nor hears of it.
func TestR2_ATaskOfAnotherDomainIsLeftAlone(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(2, 90_000, 2, 3), message(3, 90_000, 4))
	fire(table, 1000)
	ask := func(domain string) []Wanted {
		var all []Wanted
		for n := 1; n <= 5; n++ {
			all = append(all, Wanted{testID(n), domain}, Wanted{testID(n), domain})
		}
		return all
	}
	if got := table.Tombstones(ask("b")); got != nil {
		t.Fatalf("tombstones %v", got)
	}
	want := []Tombstones{{Bucket: 1, IDs: []ids.TaskID{testID(2), testID(3), testID(4)}}}
	for _, domain := range []string{"a", ""} {
		if got := table.Tombstones(ask(domain)); !reflect.DeepEqual(got, want) {
			t.Fatalf("tombstones %v", got)
		}
	}
	table.Cancel(testID(2), 0)
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
	table.Cancel(testID(1), 0)
	if got := table.Answer(wanted); !table.Unfenced() || !got.Undone {
		t.Fatalf("before the fence: %+v", got)
	}
	table.Fenced()
	if got := table.Answer(wanted); table.Unfenced() || got.Undone || len(got.Cancelled) != 1 {
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
	if want := []uint64{100, 101, 100, 102}; !slices.Equal(got, want) {
		t.Errorf("they lie at %v, want %v", got, want)
	}
	if _, status := table.Find(testID(1), "b"); status != Unknown {
		t.Errorf("another domain finds it with status %d", status)
	}
	for n := 1; n <= 4; n++ {
		if a := table.Answer([]Wanted{{ID: testID(n)}}); len(a.Fired) != 1 || a.Fired[0].LogSeq != got[n-1] {
			t.Errorf("a cancel of %d hears %+v", n, a)
		}
	}
}
