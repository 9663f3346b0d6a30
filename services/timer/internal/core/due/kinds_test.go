package due

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/ahead"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI7_AFarTaskOfItsOwnTypeTakes20Bytes, and one of its own tasklist, also if few are due at one minute.
func TestI7_AFarTaskOfItsOwnTypeTakes20Bytes(t *testing.T) {
	testkit.Slow(t, "measures the memory of many tasks")
	const n, perMinute = 1_000_000, 100
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, named := range map[string]func(i int, g *Group){
		"type":     func(i int, g *Group) { g.Type = fmt.Sprint("type-", i) },
		"tasklist": func(i int, g *Group) { g.Tasklist = fmt.Sprint("tasklist-", i) },
	} {
		before := heap()
		table := New(farConfig(1000))
		table.Resume(Cursor{}, 1, 0)
		for i := range n / 10 {
			m := message(uint64(i+1), int64(60+i%(n/perMinute))*testMinute, upFrom(i*10, 10)...)
			for j := range m.Tasks {
				named(i*10+j, &m.Tasks[j].Group)
			}
			table.Load(m)
		}
		table.Loaded()
		took := float64(heap()-before) / n
		if t.Logf("%s: %.1f bytes", name, took); table.Len() != n || took > 20 {
			t.Errorf("%d tasks that each have a %s of their own take %.1f bytes each", table.Len(), name, took)
		}
		runtime.KeepAlive(table)
	}
}

// TestACountOfManyTypesIsShort: a turn visits no more kinds than are counted of a domain, and no task is missed.
func TestACountOfManyTypesIsShort(t *testing.T) {
	const n = 20_000
	s := newFarStore(t, 100)
	for i := range n {
		s.load(ofKind(message(uint64(i+1), 60*testMinute, i), "a", fmt.Sprint("list-", i%3), fmt.Sprint("type-", i)))
	}
	s.load(ofKind(message(n+1, 60*testMinute, n), "b", "x", "y"))
	s.table.check(t)
	visits, tasks := 0, 0
	s.table.Counts().Far("a", 0, 61, func(_ int64, _ *Group, n int) bool {
		visits, tasks = visits+1, tasks+n
		return false
	})
	testkit.Equal(t, "visits and tasks", [2]int{visits, tasks}, [2]int{kindsMost + 3, n})
	for i := range 3 {
		testkit.Equal(t, "of a tasklist", s.table.Counts().Waiting("a", fmt.Sprint("list-", i)), (n+2-i)/3)
	}
	got, _ := countAhead(s.table, ahead.Question{Domain: "b", Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "of another domain", fmt.Sprint(got.Kinds(9)), "[{{b x y} 1}]")
	got, _ = countAhead(s.table, ahead.Question{Domain: "a", Type: fmt.Sprint("type-", n-1), Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "of a type that is not counted, and may be one of the others", got.Spans(), []ahead.Span{{Bucket: 60, Tasks: n - kindsMost}})
}

// TestCountsOfManyKindsAreRight as tasks come and fire early, and owners take over, by seeds: those of a domain exactly, and none of a tasklist is missed.
func TestCountsOfManyKindsAreRight(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 6, 2)) {
		draw := rand.New(rand.NewPCG(seed, 2))
		lists := []int{5, 4 * kindsMost}[seed%2]
		s := newFarStore(t, 1000)
		waits := map[int]string{} // by number: its tasklist
		add := func() {
			n := len(s.messages) + 1
			waits[n] = fmt.Sprint("list-", draw.IntN(lists))
			m := ofKind(message(uint64(n), (60+draw.Int64N(3))*testMinute, n), "a", waits[n], fmt.Sprint("type-", draw.IntN(3*kindsMost)))
			m.Tasks[0].Bytes = uint32(1 + draw.IntN(100))
			s.messages = append(s.messages, m)
			s.load(m)
		}
		early := func() {
			for n := range waits {
				s.bring(testID(n))
				needed, _ := s.table.FireEarly([]Wanted{{ID: testID(n)}}, 1000)
				for _, m := range EarlyMessages(needed) {
					one := Message{Seq: uint64(len(s.messages) + 1), AtMS: 1000, Bucket: m.Bucket, Early: m.All, Domain: m.Domain, Tasklist: m.Tasklist}
					s.messages = append(s.messages, one)
					s.load(one)
				}
				testkit.MustEqual(t, "fired", fire(s.table, 1000), []ids.TaskID{testID(n)})
				delete(waits, n)
				return
			}
		}
		for range 4 {
			for range 2500 {
				add()
			}
			for range 800 {
				early()
			}
			s.table.check(t)
			s.takeOver(s.table.Cursor(), 1000, 1000)
			s.countsOf(t, waits)
		}
		s.approach(62 * testMinute)
		testkit.Equal(t, "wait", s.table.Len(), len(waits))
	}
}

// countsOf compares the counts with what waits: the tasklists of tasks by their numbers.
func (s *farStore) countsOf(t *testing.T, waits map[int]string) {
	t.Helper()
	bytes, buckets, ofList := int64(0), map[string]map[int64]bool{}, map[string]int{}
	for n, list := range waits {
		task := s.messages[n-1].Tasks[0]
		bytes += int64(task.Bytes)
		if ofList[list]++; buckets[list] == nil {
			buckets[list] = map[int64]bool{}
		}
		buckets[list][task.DueMS/testMinute] = true
	}
	counts := s.table.Counts()
	all := counts.Domains(func(yield func(string) bool) { yield("a") })
	testkit.Equal(t, "waits of the domain", all["a"], Total{Tasks: int64(len(waits)), Bytes: bytes})
	for list, n := range ofList {
		if got := counts.Waiting("a", list); got > n || got+counts.Others("a") < n {
			t.Errorf("%d and %d others wait of %s, want %d", got, counts.Others("a"), list, n)
		}
		found := map[int64]bool{}
		for _, number := range farBuckets(s.table, "a", list) {
			found[number] = true
		}
		for number := range buckets[list] {
			if !found[number] {
				t.Errorf("a list of %s skips bucket %d", list, number)
			}
		}
	}
}
