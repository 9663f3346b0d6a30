package ownership

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("history-%d", i)
	}
	return all
}

// TestOwnersNeverChange pins a few answers: nodes of different versions must agree.
func TestOwnersNeverChange(t *testing.T) {
	var got []string
	for p := range 8 {
		got = append(got, Owner([]string{"history-0", "history-1", "history-2"}, p))
	}
	got = append(got, Owner([]string{"a", "b"}, 300), Owner(nil, 0))
	want := []string{
		"history-2", "history-0", "history-2", "history-0", "history-0", "history-0", "history-1", "history-2",
		"b", "",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPartitionsSpread(t *testing.T) {
	const partitions = 1024
	for _, n := range []int{2, 3, 5, 16} {
		load := map[string]int{}
		for p := range partitions {
			load[Owner(names(n), p)]++
		}
		for node, count := range load {
			if fair := partitions / n; count < fair*6/10 || count > fair*14/10 {
				t.Errorf("%d nodes: %s has %d partitions, a fair share is %d", n, node, count, fair)
			}
		}
	}
}

func TestOnlyPartitionsOfTheChangedNodeMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,12}`), 2, 10, rapid.ID).Draw(t, "nodes")
		gone := rapid.IntRange(0, len(nodes)-1).Draw(t, "gone")
		rest := slices.Delete(slices.Clone(nodes), gone, gone+1)
		shuffled := rapid.Permutation(nodes).Draw(t, "order")
		for p := range 64 {
			before, after := Owner(nodes, p), Owner(rest, p)
			if Owner(shuffled, p) != before {
				t.Fatalf("the order of the nodes decides partition %d", p)
			}
			if before != nodes[gone] && after != before {
				t.Fatalf("partition %d moved from %s to %s though %s left", p, before, after, nodes[gone])
			}
		}
	})
}
