package ownership

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
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
	testkit.Equal(t, "result", got, want)
	testkit.Equal(t, "no subscriber", assign(nil, 2), []string{"", ""})
}

func loads(owners []string) map[string]int {
	load := map[string]int{}
	for _, node := range owners {
		load[node]++
	}
	return load
}

// TestR45SharesAreEven: each node has n over the number of nodes, rounded down or up.
func TestR45SharesAreEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,12}`), 1, 12, rapid.ID).Draw(t, "nodes")
		n := rapid.IntRange(1, 64).Draw(t, "partitions")
		owners := assign(nodes, n)
		if !slices.Equal(assign(rapid.Permutation(nodes).Draw(t, "order"), n), owners) {
			t.Fatal("the order of the nodes decides")
		}
		load, least, most := loads(owners), n/len(nodes), (n+len(nodes)-1)/len(nodes)
		for _, node := range nodes {
			if load[node] < least || load[node] > most {
				t.Fatalf("%q has %d of %d partitions, there are %d nodes", node, load[node], n, len(nodes))
			}
			delete(load, node)
		}
		if len(load) > 0 {
			t.Fatalf("somebody else has a partition: %v", load)
		}
	})
}

// TestR45LittleMovesWhenANodeLeaves: its partitions must move, and a few more to keep the
// shares even. A node that joins is the same, seen backwards.
func TestR45LittleMovesWhenANodeLeaves(t *testing.T) {
	for _, partitions := range []int{6, 16, 32, 256} {
		for _, n := range []int{3, 5, 16} {
			nodes, moved, most := names(n), 0, 0
			before := assign(nodes, partitions)
			for gone := range nodes {
				after, here := assign(slices.Delete(slices.Clone(nodes), gone, gone+1), partitions), 0
				for p := range partitions {
					if before[p] != after[p] {
						here++
					}
				}
				moved, most = moved+here, max(most, here)
			}
			share := (partitions + n - 1) / n
			t.Logf("%d partitions, %d nodes: %.1f move on average, %d at most; a share is %d", partitions, n, float64(moved)/float64(n), most, share)
			if moved > n*(share+share/2+4) || most > 2*share+5 {
				t.Errorf("%d partitions, %d nodes: %.1f move on average, %d at most; a share is %d", partitions, n, float64(moved)/float64(n), most, share)
			}
		}
	}
}
