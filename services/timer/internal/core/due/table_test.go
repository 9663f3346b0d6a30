package due

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var testTime = time.UnixMilli(1)

var wide = Limits{Tasks: 1000, Bytes: 1 << 20, Messages: 999, MessageTasks: 1000, MessageBytes: 1 << 20}

var one = Limits{Tasks: 1, Bytes: 1 << 20, Messages: 999, MessageTasks: 1, MessageBytes: 1 << 20}

func testID(n int) ids.TaskID { return ids.NewTaskID(testTime, 0, uint64(n)) }

func newTable(tb testing.TB, messages ...Message) *Table {
	tb.Helper()
	table := New(Config{FiredKeepMS: 600_000, FiredMost: 1000})
	table.Resume(Cursor{}, 1, 0)
	for _, m := range messages {
		table.Load(m)
	}
	table.Loaded()
	table.check(tb)
	return table
}

func message(seq uint64, dueMS int64, n ...int) Message {
	m := Message{Seq: seq, Bucket: dueMS / testMinute}
	for _, n := range n {
		m.Tasks = append(m.Tasks, Task{ID: testID(n), DueMS: dueMS, Parkings: 1, Bytes: 10, Group: Group{Domain: "a", Tasklist: "x", Priority: 3}})
	}
	return m
}

// takeOver is the table of an owner that finds these messages and a cursor.
func takeOver(c Cursor, nowMS int64, messages ...Message) *Table {
	table := New(Config{})
	table.Resume(c, 2, nowMS)
	for _, m := range messages {
		table.Load(m)
	}
	table.Loaded()
	return table
}

// have checks the status of tasks.
func have(tb testing.TB, table *Table, want map[int]Status) {
	tb.Helper()
	for n, want := range want {
		if _, got := table.Find(testID(n), ""); got != want {
			tb.Errorf("task %d: status %d, want %d", n, got, want)
		}
	}
}

func fire(t *Table, nowMS int64) (all []ids.TaskID) {
	for {
		chunk, ok := t.NextChunk(nowMS, wide)
		if !ok {
			return all
		}
		for _, m := range chunk.Messages {
			for _, r := range m.Records {
				all = append(all, r.ID)
			}
		}
		t.Commit(nowMS, 0)
	}
}

func TestAClockALittleBehindTheLastOwnersWaits(t *testing.T) {
	table := takeOver(Cursor{Line: Line{Base: Mark{DueMS: 5000, Seq: 1}}}, 4000, message(1, 1000, 1), message(2, 1000, 2))
	if at, _ := table.Next(); at != 5000 {
		t.Fatalf("next at %d", at)
	}
	if got := fire(table, 4000); got != nil {
		t.Fatalf("fired %v", got)
	}
	testkit.MustEqual(t, "fired", fire(table, 5000), []ids.TaskID{testID(2)})
}

func TestTheNewestMessageIsNeverPurgeable(t *testing.T) {
	table := newTable(t, message(1, 1000, 1))
	fire(table, 1000)
	if got := table.Purgeable(1, 1); got != nil {
		t.Fatalf("purgeable: %v", got)
	}
}

func TestDomainsTakeTurnsInAChunk(t *testing.T) {
	m := Message{Seq: 1}
	for i := range 9 {
		domain := "flood"
		if i == 8 {
			domain = "quiet"
		}
		m.Tasks = append(m.Tasks, Task{ID: testID(i), DueMS: 1, Bytes: 10, Group: Group{Domain: domain, Tasklist: "x", Priority: 1}})
	}
	table := newTable(t, m)
	limits := Limits{Tasks: 100, Bytes: 1000, Messages: 5, MessageTasks: 2, MessageBytes: 1000}
	chunk, _ := table.NextChunk(1, limits)
	var domains []string
	for _, m := range chunk.Messages {
		domains = append(domains, fmt.Sprintf("%s %d", m.Domain, len(m.Records)))
	}
	if want := []string{"flood 2", "quiet 1", "flood 2", "flood 2", "flood 2"}; !slices.Equal(domains, want) {
		t.Fatalf("%v, want %v", domains, want)
	}
}

// TestI9_TasksWithOrderKeysStayInOrder: those of a domain may be of one key, so they are fired in the order of their times, whatever their tasklists and
// priorities, in their own lane.
func TestI9_TasksWithOrderKeysStayInOrder(t *testing.T) {
	m := Message{Seq: 1}
	add := func(n int, dueMS int64, tasklist string, priority uint8, keyed bool) {
		m.Tasks = append(m.Tasks, Task{ID: testID(n), DueMS: dueMS, Bytes: 10, Group: Group{Domain: "a", Tasklist: tasklist, Priority: priority, Keyed: keyed}})
	}
	add(0, 4, "x", 1, true)
	add(1, 1, "x", 5, true)
	add(2, 2, "x", 1, false)
	add(3, 3, "y", 1, true)
	add(4, 5, "x", 1, false)
	chunk, _ := newTable(t, m).NextChunk(9, Limits{Tasks: 100, Bytes: 1000, Messages: 9, MessageTasks: 9, MessageBytes: 1000})
	var fired []string
	for _, m := range chunk.Messages {
		var tasks []uint32
		for _, r := range m.Records {
			tasks = append(tasks, r.Index)
		}
		fired = append(fired, fmt.Sprintf("%s %s %d", m.Tasklist, m.Lane, tasks))
	}
	if want := []string{"x keyed [1]", "x p1 [2 4]", "y keyed [3]", "x keyed [0]"}; !slices.Equal(fired, want) {
		t.Fatalf("%v, want %v", fired, want)
	}
}

func TestScanVisitsEveryWaitingTaskOnce(t *testing.T) {
	var numbers []int
	for i := range 10_000 {
		numbers = append(numbers, i)
	}
	table := newTable(t, message(1, 1000, numbers...))
	table.Lose(testID(5))
	seen := map[ids.TaskID]int{}
	for below := table.Slots(); below > 0; {
		below = table.Scan(below, 999, func(s Stay) { seen[s.ID]++ })
	}
	if len(seen) != 9_999 || seen[testID(5)] != 0 {
		t.Fatalf("saw %d", len(seen))
	}
}

func BenchmarkLoadResumeFire(b *testing.B) {
	const n = 1_000_000
	random := rand.New(rand.NewPCG(1, 2))
	messages := make([]Message, n/1000)
	for i := range messages {
		m := Message{Seq: uint64(i + 1), Bucket: int64(i % 10)}
		for j := range 1000 {
			m.Tasks = append(m.Tasks, Task{ID: testID(i*1000 + j), DueMS: int64(i%10)*testMinute + random.Int64N(testMinute), Bytes: 300, Group: Group{Domain: "a", Tasklist: "x", Priority: 3}})
		}
		messages[i] = m
	}
	for b.Loop() {
		table := New(Config{FiredKeepMS: 1, FiredMost: 1000})
		table.Resume(Cursor{}, 1, 0)
		for _, m := range messages {
			table.Load(m)
		}
		table.Loaded()
		if got := len(fire(table, 10*testMinute)); got != n {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
}
