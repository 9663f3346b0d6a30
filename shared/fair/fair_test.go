package fair

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct {
	domain string
	place  int
	weight int
}

// Whatever is added and cut: each item comes out once, the items of a domain in their order, and no cut
// is heavier than it may be, or empty while there is something.
func TestEachItemComesOnceInTheOrderOfItsDomain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[item]
		added, next, left := map[string]int{}, map[string]int{}, 0
		cut := func(most int) {
			items, weight := q.Cut(most), 0
			for _, it := range items {
				if weight += it.weight; it.place != next[it.domain] {
					t.Fatalf("item %d of %s where %d belongs", it.place, it.domain, next[it.domain])
				}
				next[it.domain]++
			}
			if left -= len(items); left < 0 || len(items) > 1 && weight > most || len(items) == 0 && left > 0 {
				t.Fatalf("a cut of %d items, %d of %d, %d left", len(items), weight, most, left)
			}
		}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				cut(rapid.IntRange(1, 100).Draw(t, "most"))
				continue
			}
			domain := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "domain")
			weight := rapid.IntRange(1, 60).Draw(t, "weight")
			q.Add(domain, item{domain, added[domain], weight}, weight)
			added[domain]++
			left++
		}
		for left > 0 {
			cut(50)
		}
		if len(q.lines) != 0 || q.heads.Len() != 0 || len(q.Cut(1)) != 0 {
			t.Fatalf("%d lines are kept", len(q.lines))
		}
	})
}

// I11: domains that always have something waiting are served alike, in weight, whatever the size of their
// items; and who comes newly neither waits for the others' past nor is paid for its absence.
func TestI11_DomainsAreServedByWeight(t *testing.T) {
	var q Queue[item]
	sizes := map[string]int{"tiny": 1, "middle": 30, "huge": 300}
	for domain, size := range sizes {
		for range 30_000 / size {
			q.Add(domain, item{domain: domain}, size)
		}
	}
	served := map[string]int{}
	for range 30 {
		for _, it := range q.Cut(1500) {
			served[it.domain] += sizes[it.domain]
		}
	}
	for domain := range sizes {
		if n := served[domain]; n < 14_000 || n > 16_000 {
			t.Errorf("%s was served %d of 45000", domain, n)
		}
	}
	q.Add("late", item{domain: "late"}, 1)
	for range 1000 {
		q.Add("late", item{domain: "late"}, 100)
	}
	first, late := q.Cut(650), 0
	for _, it := range first {
		if it.domain == "late" {
			late++
		}
	}
	if late < 1 || late > 3 {
		t.Errorf("%d of the first %d are of who came late", late, len(first))
	}
}

// A domain with three turns is served three times as much, and alone all.
func TestDomainsAreServedByTheirTurns(t *testing.T) {
	q := Queue[item]{Turns: func(domain string) int { return map[string]int{"a": 3, "b": 1}[domain] }}
	for range 400 {
		q.Add("a", item{domain: "a"}, 10)
		q.Add("b", item{domain: "b"}, 10)
	}
	served := map[string]int{}
	for _, it := range q.Cut(4000) {
		served[it.domain]++
	}
	if served["a"] < 299 || served["a"] > 301 {
		t.Errorf("served were %v", served)
	}
	if rest := len(q.Cut(10_000)); rest != 400 {
		t.Errorf("%d were left", rest)
	}
}

// I11: beside a thousand floods a small item waits for one item of each at most.
func TestI11_ASmallItemPassesAThousandFloods(t *testing.T) {
	var q Queue[item]
	for d := range 1000 {
		for range 10 {
			q.Add(fmt.Sprint(d), item{domain: "flood"}, 300)
		}
	}
	q.Cut(100_000)
	q.Add("small", item{domain: "small"}, 1)
	before := 0
	for {
		items := q.Cut(1)
		if len(items) == 0 {
			t.Fatal("it never came")
		}
		if items[0].domain == "small" {
			break
		}
		before++
	}
	if before > 1000 {
		t.Errorf("%d items came before", before)
	}
}

// Of items that would be served at the same time the one whose domain had its turn first comes first.
func TestEqualTurnsGoByArrival(t *testing.T) {
	var q Queue[string]
	domains := []string{"f", "b", "e", "a", "d", "c"}
	for range 2 {
		for _, domain := range domains {
			q.Add(domain, domain, 1)
		}
	}
	if got, want := q.Cut(100), append(domains, domains...); !slices.Equal(got, want) {
		t.Errorf("served as %v, want %v", got, want)
	}
}

// I11: however much one domain has waiting, a cut has its share of that at most, and goes on with the others. The rest is the first of the
// next cut, and keeps its order. An item that is larger than the share goes alone.
func TestI11_ADomainHasAShareOfEachCut(t *testing.T) {
	q := Queue[item]{Share: 30}
	for i := range 5 {
		q.Add("flood", item{domain: "flood", place: i}, 10)
	}
	q.Add("fat", item{domain: "fat"}, 100)
	q.Add("fat", item{domain: "fat", place: 1}, 1)
	q.Add("small", item{domain: "small"}, 40)
	flood := func(from, to int) (all []item) {
		for i := from; i < to; i++ {
			all = append(all, item{domain: "flood", place: i})
		}
		return all
	}
	if got, want := q.Cut(1000), append(flood(0, 3), item{domain: "small"}, item{domain: "fat"}); !slices.Equal(got, want) {
		t.Errorf("the first cut has %v, want %v", got, want)
	}
	q.Add("late", item{domain: "late"}, 30)
	if got, want := q.Cut(1000), []item{{domain: "flood", place: 3}, {domain: "fat", place: 1}, {domain: "flood", place: 4}, {domain: "late"}}; !slices.Equal(got, want) {
		t.Errorf("the second cut has %v, want %v", got, want)
	}
}

// What is taken out of the middle, or from the front, is missing, and nothing else is.
func TestRemovedItemsDoNotCome(t *testing.T) {
	var q Queue[int]
	for n := range 6 {
		q.Add(fmt.Sprint(n%2), n, 1)
	}
	is := func(n int) func(int) bool { return func(other int) bool { return n == other } }
	for _, c := range []struct {
		domain string
		n      int
		want   bool
	}{{"0", 0, true}, {"0", 0, false}, {"0", 4, true}, {"1", 4, false}, {"none", 1, false}, {"0", 2, true}} {
		if got := q.Remove(c.domain, is(c.n)); got != c.want {
			t.Errorf("remove %d of %s: %v", c.n, c.domain, got)
		}
	}
	if q.Len() != 3 || len(q.lines) != 1 {
		t.Errorf("%d items wait in %d lines", q.Len(), len(q.lines))
	}
	if got := q.Cut(10); !slices.Equal(got, []int{1, 3, 5}) || q.Len() != 0 {
		t.Errorf("taken were %v, %d wait", got, q.Len())
	}
}
