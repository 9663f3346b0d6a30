package ownership

// Owner is the node that a partition belongs to: the one with the highest weight
// for it. Every node computes the same from the same set, in any order. When a
// node joins or leaves, only partitions that go to it or come from it move. It is
// "" where there are no nodes.
//
// The weights are part of what nodes of different versions must agree on: they
// never change.
func Owner(nodes []string, partition int) string {
	best, bestWeight := "", uint64(0)
	for _, n := range nodes {
		w := weight(n, partition)
		if best == "" || w > bestWeight || w == bestWeight && n < best {
			best, bestWeight = n, w
		}
	}
	return best
}

// weight is FNV-1a over the name and the partition, finished with splitmix64's
// mixer: FNV alone hardly changes its high bits for names that differ at the end,
// and those decide here.
func weight(node string, partition int) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(node) {
		h = (h ^ uint64(node[i])) * prime
	}
	for p := uint64(partition); ; p >>= 8 {
		h = (h ^ p&0xff) * prime
		if p < 0x100 {
			break
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
