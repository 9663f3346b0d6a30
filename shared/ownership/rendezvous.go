package ownership

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Assign tells the node of each of n partitions: rendezvous hashing with exact shares.
// Of all pairs of node and partition, the one with the highest weight is taken
// first. A node takes n over the number of nodes, rounded down; and as many nodes as the
// division leaves over, the first ones to want it, take one more. Every node computes the same
// from the same set, in any order. A node that joins or leaves moves little more than
// its own share. Each is "" where there are no nodes.
//
// A partition that a node refuses goes to the least loaded of the others, beyond that
// one's share where all have theirs; it is "" where all refuse.
//
// Sources: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates"
// (1998); Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads" (2016).
//
// The weights are part of what nodes of different versions must agree on: they
// never change.
func Assign(nodes []Candidate, n int) []string {
	owners := make([]string, n)
	if len(nodes) == 0 {
		return owners
	}
	pairs := pairsOf(nodes, n)
	share, over := n/len(nodes), n%len(nodes)
	load := make(map[string]int, len(nodes))
	for _, one := range pairs {
		had := load[one.node]
		if owners[one.partition] != "" || had > share || had == share && over == 0 {
			continue
		}
		if had == share {
			over--
		}
		owners[one.partition] = one.node
		load[one.node]++
	}
	for p := range owners { // left over only where a node refuses
		if owners[p] == "" {
			owners[p] = leastLoaded(pairs, p, load)
			load[owners[p]]++
		}
	}
	return owners
}

// pair is a node and a partition that it does not refuse.
type pair struct {
	node      string
	partition int
	weight    uint64
}

// pairsOf is all of them, the heaviest first.
func pairsOf(nodes []Candidate, n int) []pair {
	pairs := make([]pair, 0, len(nodes)*n)
	for _, c := range nodes {
		for p := range n {
			if !slices.Contains(c.Refuses, p) {
				pairs = append(pairs, pair{c.Node, p, weight(c.Node, p)})
			}
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.node, b.node), cmp.Compare(a.partition, b.partition))
	})
	return pairs
}

// leastLoaded is the node with the fewest partitions among those willing to serve p, the
// first in line where several have as few; "" where none is willing.
func leastLoaded(pairs []pair, p int, load map[string]int) (node string) {
	for _, one := range pairs {
		if one.partition == p && (node == "" || load[one.node] < load[node]) {
			node = one.node
		}
	}
	return node
}

// weight is FNV-1a over the name and the partition, finished with splitmix64's
// mixer: FNV alone hardly changes its high bits for names that differ at the end,
// and those decide here.
func weight(node string, partition int) uint64 {
	name := []byte(node)
	for p := partition; ; p >>= 8 {
		name = append(name, byte(p))
		if p < 0x100 {
			break
		}
	}
	sum := fnv.New64a()
	_, _ = sum.Write(name) // a hash never fails
	h := sum.Sum64()
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
