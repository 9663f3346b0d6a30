package ownership

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// assign is Assign for nodes that refuse nothing.
func assign(nodes []string, n int) []string {
	all := make([]Candidate, len(nodes))
	for i, node := range nodes {
		all[i].Node = node
	}
	return Assign(all, n)
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("history-%d", i)
	}
	return all
}

// TestOwnersNeverChange pins an answer: nodes of different versions must agree.
func TestOwnersNeverChange(t *testing.T) {
	got := assign([]string{"history-0", "history-1", "history-2"}, 8)
	want := []string{
		"history-2", "history-0", "history-2", "history-1", "history-0", "history-0", "history-1", "history-2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := assign(nil, 2); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("nobody there: %q", got)
	}
}

func loads(owners []string) map[string]int {
	load := map[string]int{}
	for _, node := range owners {
		load[node]++
	}
	return load
}

func TestNobodyHasMoreThanItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,12}`), 1, 12, rapid.ID).Draw(t, "nodes")
		n := rapid.IntRange(1, 64).Draw(t, "partitions")
		owners := assign(nodes, n)
		if !slices.Equal(assign(rapid.Permutation(nodes).Draw(t, "order"), n), owners) {
			t.Fatal("the order of the nodes decides")
		}
		for node, count := range loads(owners) {
			if !slices.Contains(nodes, node) || count > (n+len(nodes)-1)/len(nodes) {
				t.Fatalf("%q has %d of %d partitions, there are %d nodes", node, count, n, len(nodes))
			}
		}
	})
}

// TestLittleMovesWhenANodeLeaves: its partitions must move, and a few more to keep the
// shares even.
func TestLittleMovesWhenANodeLeaves(t *testing.T) {
	const partitions = 256
	for _, n := range []int{3, 5, 16} {
		nodes := names(n)
		before, moved := assign(nodes, partitions), 0
		for gone := range nodes {
			after := assign(slices.Delete(slices.Clone(nodes), gone, gone+1), partitions)
			for p := range partitions {
				if before[p] != after[p] {
					moved++
				}
			}
		}
		if average, fair := moved/n, partitions/n; average > 3*fair {
			t.Errorf("%d nodes: %d partitions move when one leaves, its share is %d", n, average, fair)
		}
	}
}
