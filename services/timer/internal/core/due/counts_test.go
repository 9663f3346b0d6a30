package due

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/ahead"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// countAhead has all tasks counted, and returns the sums and how many steps the far ones took.
func countAhead(table *Table, q ahead.Question) (sums *ahead.Sums, steps int) {
	sums = ahead.New(q)
	for below := table.Slots(); below > 0; {
		below = table.Scan(below, 3, func(s Stay) {
			sums.Add(s.DueMS/testMinute, ahead.Kind{Domain: s.Group.Domain, Tasklist: s.Group.Tasklist, Type: s.Group.Type}, 1)
		})
	}
	for next, more := q.From, true; more; steps++ {
		next, more = table.Counts().Far(q.Domain, next, q.Until, func(bucket int64, g *Group, tasks int) bool {
			sums.Add(bucket, ahead.Kind{Domain: g.Domain, Tasklist: g.Tasklist, Type: g.Type}, int64(tasks))
			return sums.Enough(bucket)
		})
	}
	return sums, steps
}

// ofKind makes the tasks of a message those of a tasklist and a type.
func ofKind(m Message, domain, tasklist, typ string) Message {
	for i := range m.Tasks {
		g := &m.Tasks[i].Group
		g.Domain, g.Tasklist, g.Type = domain, tasklist, typ
	}
	return m
}

// TestACountIsShort: one step visits so many buckets that firing goes on, also if the next one is months away.
func TestACountIsShort(t *testing.T) {
	const months = 7 * farVisits / 2
	s := newFarStore(t, 100, message(1, months*testMinute, 1))
	got, steps := countAhead(s.table, ahead.Question{Domain: "a", Until: months + 1, Width: 1, Most: 9})
	testkit.Equal(t, "counted", got.Spans(), []ahead.Span{{Bucket: months, Tasks: 1}})
	testkit.Equal(t, "steps", steps, 4)
}

// TestACountEndsBeforeABucket, also in a step: nothing that is due later is visited.
func TestACountEndsBeforeABucket(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, 70*testMinute, 2), message(3, 80*testMinute, 3))
	var visited []int64
	next, more := s.table.Counts().Far("a", 0, 80, func(bucket int64, _ *Group, _ int) bool {
		visited = append(visited, bucket)
		return false
	})
	testkit.Equal(t, "visited", visited, []int64{60, 70})
	testkit.Equal(t, "at the end", fmt.Sprint(next, more), "80 false")
}

// TestWhatIsNear: it is not known while messages are read, and the first bucket that is not near is named.
func TestWhatIsNear(t *testing.T) {
	s := newFarStore(t, 100, message(1, 60*testMinute, 1), message(2, 300*testMinute, 2))
	near := func(what string, upTo int64, ok bool, firstFar int64) {
		t.Helper()
		got, known := s.table.Counts().NearUpTo()
		if known != ok || ok && got != upTo {
			t.Errorf("%s: near up to %d, %t", what, got, known)
		}
		ms, any := s.table.Counts().FirstFarMS()
		testkit.Equal(t, what+": the first far bucket", fmt.Sprint(ms, any), fmt.Sprint(firstFar*testMinute, firstFar > 0))
	}
	near("at first", 10, true, 60)
	buckets, _ := s.table.Approach(58 * testMinute)
	testkit.Equal(t, "come near", buckets, []int64{60})
	near("while the bucket is read", 0, false, 60)
	s.table.LoadBucket(s.messages[0])
	near("while other messages of it may come", 0, false, 60)
	s.table.Loaded()
	near("when it was read", 60, true, 300)
	s.approach(298 * testMinute)
	near("when all are near", 308, true, 0)
	started := New(farConfig(100))
	started.Resume(Cursor{}, 1, 0)
	if _, ok := started.Counts().NearUpTo(); ok {
		t.Error("it is known while an owner starts")
	}
}

// TestATaskThatFiredEarlyIsNotCounted, also if the owner that counts found the early message in the store and does not know the type.
func TestATaskThatFiredEarlyIsNotCounted(t *testing.T) {
	s := newFarStore(t, 100, ofKind(message(1, 60*testMinute, 1), "a", "x", "t"), ofKind(message(2, 60*testMinute, 2, 3), "a", "x", "u"))
	s.fireEarly(1000, 2)
	testkit.Equal(t, "fired", fire(s.table, 1000), []ids.TaskID{testID(2)})
	want := []ahead.Span{{Bucket: 60, Tasks: 2}}
	got, _ := countAhead(s.table, ahead.Question{Domain: "a", Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "counted", got.Spans(), want)
	testkit.Equal(t, "kinds", fmt.Sprint(got.Kinds(9)), "[{{a x t} 1} {{a x u} 1}]")
	s.takeOver(s.table.Cursor(), 100, 2000)
	got, _ = countAhead(s.table, ahead.Question{Domain: "a", Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "counted by the next owner", got.Spans(), want)
	testkit.Equal(t, "and waits", s.table.Counts().Waiting("a", "x"), 2)
	s.approach(55 * testMinute)
	got, _ = countAhead(s.table, ahead.Question{Domain: "a", Until: 1000, Width: 1, Most: 9})
	testkit.Equal(t, "kinds when it is near", fmt.Sprint(got.Kinds(9)), "[{{a x t} 1} {{a x u} 1}]")
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
			a, _ := countAhead(s.table, ahead.Question{Domain: "a", Until: 1 << 30, Width: 5, Most: 1000})
			got, sum := map[int64]int64{}, int64(0)
			for _, c := range a.Spans() {
				got[c.Bucket] = c.Tasks
			}
			for _, k := range a.Kinds(9) {
				sum += k.Tasks
			}
			if !maps.Equal(got, want) || sum != int64(len(waits)) || !slices.IsSortedFunc(a.Spans(), func(a, b ahead.Span) int { return int(a.Bucket - b.Bucket) }) {
				t.Fatalf("seed %d: counted %v, want %v; kinds %v", seed, got, want, a.Kinds(9))
			}
		}
	}
}

// TestEachDomainHasItsNextTask: near tasks say when the next one is due; far ones are counted.
func TestEachDomainHasItsNextTask(t *testing.T) {
	s := newFarStore(t, 100, ofKind(message(1, 2*testMinute, 1, 2), "shop", "mail", "t"), ofKind(message(2, testMinute, 3), "shop", "sms", "t"), ofKind(message(3, 900*testMinute, 4), "far", "mail", "t"))
	s.approach(testMinute)
	all := s.table.Counts().OfDomains()
	slices.SortFunc(all, func(a, b OfDomain) int { return strings.Compare(a.Domain, b.Domain) })
	testkit.Equal(t, "domains", all, []OfDomain{{Domain: "far", Waiting: 1}, {Domain: "shop", Waiting: 3, NextMS: testMinute}})
}
