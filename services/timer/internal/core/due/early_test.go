package due

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// earlies is an early message for the first stays of tasks.
func earlies(seq uint64, atMS, bucket int64, n ...int) Message {
	m := Message{Seq: seq, AtMS: atMS, Bucket: bucket}
	for _, n := range n {
		m.Early = append(m.Early, Early{ID: testID(n), Generation: 1})
	}
	return m
}

// TestAnEarlyStayFiresWhereItsRecordLies, in the lane of tasks that are not due, and late by the early message.
func TestAnEarlyStayFiresWhereItsRecordLies(t *testing.T) {
	m := message(1, 90_000, 1, 2, 3, 4)
	for i := range m.Tasks {
		m.Tasks[i].Group.Keyed = i < 3
	}
	table := newTable(t, m)
	table.Load(earlies(2, 1000, 1, 2, 4))
	table.check(t)
	for n, want := range map[int]bool{1: false, 2: true} {
		stay, status := table.Find(testID(n), "")
		if status != Waiting || stay.Early != want || stay.DueMS != 90_000 || stay.Seq != 1 || stay.Index != uint32(n-1) {
			t.Errorf("%+v, status %d", stay, status)
		}
	}
	if at, _ := table.Next(); at != 1000 || fire(table, 999) != nil {
		t.Errorf("next at %d", at)
	}
	chunk, _ := table.NextChunk(1000, wide)
	if len(chunk.Messages) != 1 || chunk.Tasks != 2 || chunk.Cursor.Last != (Key{1000, 2, 1}) {
		t.Fatalf("%+v", chunk)
	}
	early := chunk.Messages[0]
	if early.Lane != ids.LaneLater || early.Domain != "a" || early.Tasklist != "x" || !slices.Equal(early.DueMS, []int64{1000, 1000}) ||
		!slices.Equal(early.Records, []Ref{{1, 1, testID(2)}, {1, 3, testID(4)}}) {
		t.Errorf("%+v", early)
	}
	table.Commit(1000, 0)
	have(t, table, map[int]Status{1: Waiting, 2: Fired, 3: Waiting, 4: Fired})
	chunk, _ = table.NextChunk(90_000, wide)
	if chunk.Tasks != 2 || chunk.Messages[0].Lane != ids.LaneKeyed || len(table.early) != 0 {
		t.Errorf("%+v", chunk)
	}
}

// TestAnEarlyMessageMeansOneStay, and the first message counts.
func TestAnEarlyMessageMeansOneStay(t *testing.T) {
	for name, m := range map[string]Message{
		"another bucket": {Seq: 2, AtMS: 1000, Bucket: 2, Early: []Early{{ID: testID(1), Generation: 2}}}, "another task": earlies(2, 1000, 1, 2), "the stay before": {Seq: 2, AtMS: 1000, Bucket: 1, Early: []Early{{ID: testID(1), Generation: 1}}},
		"the next stay": {Seq: 2, AtMS: 1000, Bucket: 1, Early: []Early{{ID: testID(1), Generation: 3}}}, "none that can be read": {Seq: 2, AtMS: 1000, Bucket: 1, Early: make([]Early, 2)},
		"due by then": {Seq: 2, AtMS: 90_000, Bucket: 1, Early: []Early{{ID: testID(1), Generation: 2}}},
	} {
		table := newTable(t, later(message(1, 90_000, 1), 2), m)
		if stay, _ := table.Find(testID(1), ""); stay.Early || fire(table, 89_999) != nil {
			t.Errorf("%s: fires early", name)
		}
	}
	messages := []Message{message(1, 90_000, 1, 2), earlies(2, 5000, 1, 1), earlies(3, 2000, 1, 1, 2, 2)}
	loaded, lived := newTable(t, messages...), newTable(t, messages[0])
	lived.Load(messages[1])
	lived.Load(messages[2])
	for _, table := range []*Table{loaded, lived} {
		table.check(t)
		testkit.Equal(t, "fired", fire(table, 2000), []ids.TaskID{testID(2)})
		testkit.Equal(t, "then", fire(table, 5000), []ids.TaskID{testID(1)})
	}
	loaded.Load(later(message(4, 90_000, 1), 2)) // into the slot of one that was early
	if stay, status := loaded.Find(testID(1), ""); status != Waiting || stay.Early {
		t.Errorf("the next stay: %+v", stay)
	}
}

// TestI10_AnEarlyStayOfARound: a round that began without the early message fires the stay under the key of its record, another one under the early key,
// whether the same owner goes on with it or another one.
func TestI10_AnEarlyStayOfARound(t *testing.T) {
	messages := []Message{message(1, 1000, 1), message(2, 5000, 2), message(3, 6000, 3), earlies(4, 2000, 0, 3)}
	for _, c := range []struct {
		name  string
		known int
		want  []ids.TaskID
	}{
		{"begun without the early message", 3, []ids.TaskID{testID(1), testID(2), testID(3)}},
		{"begun with it", 4, []ids.TaskID{testID(1), testID(3), testID(2)}},
	} {
		for _, takenOver := range []bool{false, true} {
			table := newTable(t, messages[:c.known]...)
			var fired []ids.TaskID
			for range 4 {
				if chunk, ok := table.NextChunk(10_000, one); ok {
					fired = append(fired, chunk.Messages[0].Records[0].ID)
					table.Commit(10_000, 0)
				}
				table.Load(messages[3])
				if takenOver {
					table = takeOver(table.Cursor(), 10_000, messages...)
				}
			}
			testkit.Equal(t, fmt.Sprintf("a round %s, taken over %v", c.name, takenOver), fired, c.want)
			table.check(t)
		}
	}
}

// R23: if the round of a clock ahead is left, the stay fires early after all.
func TestR23_AnEarlyStayOfARoundThatIsLeft(t *testing.T) {
	messages := []Message{message(1, 60_000, 1), message(2, 1_000_000, 2), message(3, 1_100_000, 3)}
	table := newTable(t, messages...)
	for fired := range 2 { // the round is cut, or set aside
		table.NextChunk(2_000_000, one)
		table.Commit(2_000_000, 0)
		messages = append(messages, earlies(uint64(4+fired), 70_000, 1_100_000/testMinute, 3))
		table.Load(messages[3+fired])
		table.check(t)
		for _, owner := range []*Table{takeOver(table.Cursor(), 70_000, messages...), table} {
			if owner != table || fired == 1 {
				testkit.Equal(t, "fired", fire(owner, 70_000), []ids.TaskID{testID(3)})
			}
			owner.check(t)
		}
	}
}

// Many due times in no order, and some that fire early anywhere in between.
func TestFiringIsInOrderAmongEarlyStays(t *testing.T) {
	const tasks = 2_000
	due := func(n int) int64 { return int64(n*7919%tasks) + tasks }
	load := func(table *Table, n int) {
		m := message(uint64(n+1), due(n), n)
		m.Bucket = 0
		table.Load(m)
	}
	for _, before := range []int{0, 1, 2, 5, 6, tasks / 2, tasks} { // loaded before Loaded
		table := New(Config{})
		table.Resume(Cursor{}, 1, 0)
		for n := range before {
			load(table, n)
		}
		table.Loaded()
		for n := before; n < tasks; n++ {
			load(table, n)
		}
		firesAt := map[ids.TaskID]int64{}
		for n := range tasks {
			if firesAt[testID(n)] = due(n); n%3 == 1 {
				firesAt[testID(n)] = due(n) / 2
				table.Load(earlies(uint64(tasks+n+1), due(n)/2, 0, n))
			}
		}
		table.check(t)
		fired := fire(table, 2*tasks)
		if len(fired) != tasks || !slices.IsSortedFunc(fired, func(a, b ids.TaskID) int { return int(firesAt[a] - firesAt[b]) }) {
			t.Fatalf("%d loaded before: fired %d, or out of order", before, len(fired))
		}
	}
}

// R2: who knows an id of another tenant neither fires the task nor hears of it. Others hear what becomes of it.
func TestR2_ATaskOfAnotherDomainIsLeftAlone(t *testing.T) {
	table := newTable(t, message(1, 1000, 1), message(2, 90_000, 2, 3, 6), message(3, 90_000, 4))
	fire(table, 1000)
	table.Load(earlies(4, 80_000, 1, 6))
	ask := func(domain string) []Wanted {
		var all []Wanted
		for n := 1; n <= 6; n++ {
			all = append(all, Wanted{ID: testID(n), Domain: domain}, Wanted{ID: testID(n), Domain: domain})
		}
		return all
	}
	if messages, a := table.FireEarly(ask("b"), 0); messages != nil || !reflect.DeepEqual(a, Answer{}) {
		t.Fatalf("%+v, %+v", messages, a)
	}
	want := Answer{Coming: []ids.TaskID{testID(2), testID(3), testID(4), testID(6)}, Fired: []Fate{{ID: testID(1)}}}
	for _, domain := range []string{"a", ""} {
		messages, a := table.FireEarly(ask(domain), 89_999)
		all := EarlyMessages(messages)
		if len(all) != 1 || all[0].Bucket != 1 || all[0].Domain != "a" || all[0].Tasklist != "x" || !reflect.DeepEqual(a, want) {
			t.Fatalf("%+v, %+v", messages, a)
		}
		wantEarly := []Early{
			{testID(2), 1, far.Place{Seq: 2, Index: 0}, 10}, {testID(3), 1, far.Place{Seq: 2, Index: 1}, 10}, {testID(4), 1, far.Place{Seq: 3}, 10},
		}
		testkit.Equal(t, "early", all[0].All, wantEarly)
		if messages, a := table.FireEarly(ask(domain), 90_000); messages != nil || !reflect.DeepEqual(a, want) {
			t.Errorf("when all are due: %+v, %+v", messages, a)
		}
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
	for n, want := range map[int]uint64{1: 100, 2: 101, 3: 100, 4: 102} {
		stay, status := table.Find(testID(n), "a")
		_, a := table.FireEarly([]Wanted{{ID: testID(n)}}, 0)
		testkit.Equal(t, fmt.Sprint("task ", n), [2]uint64{stay.LogSeq, a.Fired[0].LogSeq}, [2]uint64{want, want})
		if _, hidden := table.Find(testID(n), "b"); status != Fired || hidden != Unknown {
			t.Errorf("%d has status %d, and another domain finds it with status %d", n, status, hidden)
		}
	}
}
