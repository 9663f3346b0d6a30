package admission

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// reads counts which queues are read, n messages in all, while all of some have more.
func reads(t *testing.T, g *Gate, weights map[string]int, n int, of ...Queue) map[Queue]int {
	t.Helper()
	counts := map[Queue]int{}
	for range n {
		at, ok := g.NextQueue(func(at Queue) bool {
			for _, q := range of {
				if q == at {
					return true
				}
			}
			return false
		}, func(domain string) int { return max(1, weights[domain]) })
		if !ok {
			break
		}
		counts[at]++
	}
	return counts
}

func TestLanesAreReadByTheWeightsOfTheirPriorities(t *testing.T) {
	g := newBench(t).g
	var all []Queue
	for lane := range ids.Lane(ids.Lanes) {
		all = append(all, Queue{Lane: lane})
	}
	got := reads(t, g, nil, 47, all...)
	for lane, want := range []int{8, 16, 8, 4, 2, 1, 8} {
		testkit.Equal(t, all[lane].Lane.String(), got[all[lane]], want)
	}
	testkit.Equal(t, "one alone", reads(t, g, nil, 10, all[5])[all[5]], 10)
	testkit.Equal(t, "none", len(reads(t, g, nil, 10)), 0)
}

// A domain that is split off has no more than half of what its lane has while others wait there, and several have equal parts of that.
func TestDomainsThatAreSplitOffTakeTurnsWithTheirLane(t *testing.T) {
	g := newBench(t).g
	own, a, b := Queue{Lane: lane}, Queue{lane, "a"}, Queue{lane, "b"}
	for _, q := range []Queue{a, b} {
		g.Replay(Step{Queue: q, Kind: Split})
	}
	testkit.Equal(t, "all", reads(t, g, nil, 80, own, a, b), map[Queue]int{own: 40, a: 20, b: 20})
	testkit.Equal(t, "two of them", reads(t, g, nil, 80, a, b), map[Queue]int{a: 40, b: 40})
	testkit.Equal(t, "one of them", reads(t, g, nil, 80, own, b), map[Queue]int{own: 40, b: 40})
	g.Replay(Step{Queue: a, Kind: Merge})
	testkit.Equal(t, "after one went back", reads(t, g, nil, 80, own, a, b), map[Queue]int{own: 40, b: 40})
	g.Replay(Step{Queue: a, Kind: Split})
	testkit.Equal(t, "after it was split off again", reads(t, g, nil, 80, own, a, b), map[Queue]int{own: 40, a: 20, b: 20})
}

// Domains that are split off share what they have by their weights, which may change at any time.
func TestDomainsThatAreSplitOffTakeTurnsByWeight(t *testing.T) {
	g := newBench(t).g
	a, b := Queue{lane, "a"}, Queue{lane, "b"}
	for _, q := range []Queue{a, b} {
		g.Replay(Step{Queue: q, Kind: Split})
	}
	testkit.Equal(t, "three to one", reads(t, g, map[string]int{"a": 3}, 40, a, b), map[Queue]int{a: 30, b: 10})
	testkit.Equal(t, "alike", reads(t, g, nil, 40, a, b), map[Queue]int{a: 20, b: 20})
	testkit.Equal(t, "one alone", reads(t, g, map[string]int{"a": 100}, 40, b), map[Queue]int{b: 40})
}
