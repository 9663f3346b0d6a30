package caps

// Key is an order key of a domain.
type Key struct{ Domain, Name string }

// Keys are the order keys that have as many tasks as they may, by partition, as its owner reported last. The zero value knows of none.
type Keys struct{ full map[int]map[Key]int64 }

// Report takes in how many tasks the full keys of a partition have; any other key has room.
func (k *Keys) Report(partition int, full map[Key]int64) {
	if len(full) == 0 {
		delete(k.full, partition)
		return
	}
	if k.full == nil {
		k.full = make(map[int]map[Key]int64)
	}
	k.full[partition] = full
}

// Full is how many tasks a key has, if it is full; 0 = it is not.
func (k *Keys) Full(of Key) int64 {
	for _, full := range k.full {
		if n := full[of]; n > 0 {
			return n
		}
	}
	return 0
}
