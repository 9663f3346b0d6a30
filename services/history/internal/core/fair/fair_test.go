package fair

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct {
	domain string
	n      int
}

// TestI14_DomainsTakeTurns: what is taken is all that was added, in order within a domain, and
// between two turns of a domain every other that waits has had one.
func TestI14_DomainsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[item]
		waiting := map[string][]item{}
		left, added := 0, 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "add") {
				domain := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "domain")
				for range rapid.IntRange(1, 3*Share).Draw(t, "items") {
					q.Add(domain, item{domain, added})
					waiting[domain] = append(waiting[domain], item{domain, added})
					added, left = added+1, left+1
				}
				continue
			}
			most := rapid.IntRange(1, 5*Share).Draw(t, "most")
			before := map[string]int{}
			for domain, all := range waiting {
				before[domain] = len(all)
			}
			got := q.Take(most)
			if len(got) != min(most, left) {
				t.Fatalf("%d of %d taken, %d asked for", len(got), left, most)
			}
			took := map[string]int{}
			for _, x := range got {
				if all := waiting[x.domain]; all[0] != x {
					t.Fatalf("%v before %v", x, all[0])
				}
				waiting[x.domain] = waiting[x.domain][1:]
				took[x.domain]++
			}
			left -= len(got)
			for domain, n := range before {
				for other := range took {
					if took[domain] < n && took[other] > took[domain]+Share {
						t.Fatalf("%d of %q and %d of %q, of which %d waited", took[other], other, took[domain], domain, n)
					}
				}
			}
			if q.Empty() != (left == 0) {
				t.Fatalf("empty with %d left", left)
			}
		}
	})
}

// TestOneAmongMany: the one thing of a domain is in the first job though a thousand of another's came before.
func TestOneAmongMany(t *testing.T) {
	var q Queue[int]
	for n := range 1000 {
		q.Add("flood", n)
	}
	q.Add("shop", -1)
	if got := q.Take(500); !slices.Contains(got[:Share+1], -1) {
		t.Errorf("taken: %v", got[:Share+1])
	}
}
