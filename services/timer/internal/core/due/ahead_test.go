package due

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// countAhead has all tasks counted, and returns the result and how many steps the far ones took.
func countAhead(table *Table, a Ahead) (_ *Ahead, steps int) {
	for below := table.Slots(); below > 0; {
		below = table.Scan(below, 3, func(s Stay) { a.Near(&s, s.DueMS/testMinute) })
	}
	for more := true; more; steps++ {
		more = a.Far(table.Counts())
	}
	return &a, steps
}

// ofKind makes the tasks of a message those of a tasklist and a type.
func ofKind(m Message, domain, tasklist, typ string) Message {
	for i := range m.Tasks {
		g := &m.Tasks[i].Group
		g.Domain, g.Tasklist, g.Type = domain, tasklist, typ
	}
	return m
}

// TestTasksAreCountedBySpan: whatever is near or far, of the domain alone, and of a tasklist or a type if one is wanted.
func TestTasksAreCountedBySpan(t *testing.T) {
	s := newFarStore(t, 100,
		ofKind(message(1, testMinute, 1), "a", "x", "t"),
		ofKind(message(2, 5*testMinute+7, 2, 3), "a", "y", "t"),
		ofKind(message(3, 60*testMinute+59_999, 4, 5, 6), "a", "x", "u"),
		ofKind(message(4, 61*testMinute, 7), "b", "x", "t"),
		ofKind(message(5, 180*testMinute, 8), "a", "x", "t"),
	)
	for name, c := range map[string]struct {
		a     Ahead
		spans []SpanCount
		kinds string
	}{
		"all by the minute":   {Ahead{Domain: "a", Until: 1000, Width: 1, Most: 9}, []SpanCount{{1, 1}, {5, 2}, {60, 3}, {180, 1}}, "[{{x u} 3} {{x t} 2} {{y t} 2}]"},
		"by the hour":         {Ahead{Domain: "a", Until: 1000, Width: 60, Most: 9}, []SpanCount{{0, 3}, {60, 3}, {180, 1}}, "[{{x u} 3} {{x t} 2} {{y t} 2}]"},
		"overdue at a minute": {Ahead{Domain: "a", Until: 1000, First: 4, Width: 2, Most: 9}, []SpanCount{{4, 3}, {60, 3}, {180, 1}}, "[{{x u} 3} {{x t} 2} {{y t} 2}]"},
		"of a tasklist":       {Ahead{Domain: "a", Tasklist: "y", Until: 1000, Width: 1, Most: 9}, []SpanCount{{5, 2}}, "[{{y t} 2}]"},
		"of a type":           {Ahead{Domain: "a", Type: "t", Until: 1000, Width: 1, Most: 9}, []SpanCount{{1, 1}, {5, 2}, {180, 1}}, "[{{x t} 2} {{y t} 2}]"},
		"until a minute":      {Ahead{Domain: "a", Until: 180, Width: 1, Most: 9}, []SpanCount{{1, 1}, {5, 2}, {60, 3}}, "[{{x u} 3} {{y t} 2} {{x t} 1}]"},
		"from a minute":       {Ahead{Domain: "a", From: 5, Until: 180, Width: 1, Most: 9}, []SpanCount{{5, 2}, {60, 3}}, "[{{x u} 3} {{y t} 2}]"},
		"the first two":       {Ahead{Domain: "a", Until: 1000, Width: 1, Most: 2}, []SpanCount{{1, 1}, {5, 2}}, "[{{y t} 2} {{x t} 1}]"},
		"of another domain":   {Ahead{Domain: "c", Until: 1000, Width: 1, Most: 2}, nil, "[]"},
	} {
		got, _ := countAhead(s.table, c.a)
		testkit.Equal(t, name, got.Spans(), c.spans)
		testkit.Equal(t, name+", kinds", fmt.Sprint(got.Kinds(9)), c.kinds)
	}
	if got, _ := countAhead(s.table, Ahead{Domain: "a", Until: 1000, Width: 1, Most: 9}); len(got.Kinds(1)) != 1 {
		t.Errorf("one kind was wanted: %v", got.Kinds(1))
	}
}

// TestACountIsShort: one step visits so many buckets that firing goes on, also if the next one is months away.
func TestACountIsShort(t *testing.T) {
	const months = 7 * farVisits / 2
	s := newFarStore(t, 100, message(1, months*testMinute, 1))
	got, steps := countAhead(s.table, Ahead{Domain: "a", Until: months + 1, Width: 1, Most: 9})
	testkit.Equal(t, "counted", got.Spans(), []SpanCount{{months, 1}})
	testkit.Equal(t, "steps", steps, 4)
}

// TestATaskThatFiredEarlyIsNotCounted, also if the owner that counts found the early message in the store and does not know the type.
func TestATaskThatFiredEarlyIsNotCounted(t *testing.T) {
	s := newFarStore(t, 100, ofKind(message(1, 60*testMinute, 1), "a", "x", "t"), ofKind(message(2, 60*testMinute, 2, 3), "a", "x", "u"))
	s.fireEarly(1000, 2)
	testkit.Equal(t, "fired", fire(s.table, 1000), []ids.TaskID{testID(2)})
	want := []SpanCount{{60, 2}}
	got, _ := countAhead(s.table, Ahead{Domain: "a", Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "counted", got.Spans(), want)
	testkit.Equal(t, "kinds", fmt.Sprint(got.Kinds(9)), "[{{x t} 1} {{x u} 1}]")
	s.takeOver(s.table.Cursor(), 100, 2000)
	got, _ = countAhead(s.table, Ahead{Domain: "a", Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "counted by the next owner", got.Spans(), want)
	testkit.Equal(t, "and waits", s.table.Counts().Waiting("a", "x"), 2)
	s.approach(55 * testMinute)
	got, _ = countAhead(s.table, Ahead{Domain: "a", Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "kinds when it is near", fmt.Sprint(got.Kinds(9)), "[{{x t} 1} {{x u} 1}]")
}

// TestCountsAgreeWithATable of which tasks come near and fire, by seeds.
func TestCountsAgreeWithATable(t *testing.T) {
	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 1))
		waits := map[ids.TaskID]int64{} // its minute
		s := newFarStore(t, 1+draw.IntN(30))
		now := int64(0)
		for n := 1; n < 60; n++ {
			minute := now/testMinute + draw.Int64N(40)
			s.append(ofKind(message(uint64(n), minute*testMinute+draw.Int64N(testMinute), n), "a", "x", fmt.Sprint(draw.IntN(3))))
			waits[testID(n)] = minute
			now += draw.Int64N(testMinute)
			s.approach(now)
			for _, id := range fire(s.table, now) {
				delete(waits, id)
			}
			want := map[int64]int64{}
			for minute := range maps.Values(waits) {
				want[minute-minute%5]++
			}
			a, _ := countAhead(s.table, Ahead{Domain: "a", Until: 1 << 30, Width: 5, Most: 1000})
			got, sum := map[int64]int64{}, int64(0)
			for _, c := range a.Spans() {
				got[c.Bucket] = c.Tasks
			}
			for _, k := range a.Kinds(9) {
				sum += k.Tasks
			}
			if !maps.Equal(got, want) || sum != int64(len(waits)) || !slices.IsSortedFunc(a.Spans(), func(a, b SpanCount) int { return int(a.Bucket - b.Bucket) }) {
				t.Fatalf("seed %d: counted %v, want %v; kinds %v", seed, got, want, a.Kinds(9))
			}
		}
	}
}
