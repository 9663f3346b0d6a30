package ids

import (
	"fmt"
	"testing"
)

// Redis keys and stream subjects follow the shard of a tasklist: it is the same forever.
func TestTheShardOfATasklistStays(t *testing.T) {
	for _, c := range []struct {
		domain, tasklist string
		shards, want     int
	}{
		{"shop", "mail", 1, 0},
		{"shop", "mail", 4, 0},
		{"shop", "mail", 1024, 940},
		{"media", "mail", 1024, 134},
		{"shop", "video", 1024, 178},
		{"shopm", "ail", 1024, 334},
	} {
		if m := MatchingShard(c.domain, c.tasklist, 0, c.shards); m != c.want {
			t.Errorf("%s/%s of %d shards is on %d, want %d", c.domain, c.tasklist, c.shards, m, c.want)
		}
	}
}

// Partitions of a tasklist are on as many shards as there are, evenly, and so are the first ones of different tasklists.
func TestPartitionsAreOnDifferentShards(t *testing.T) {
	for _, shards := range []int{1, 3, 4, 7, 64, 100} {
		for _, tasklist := range []string{"mail", "video", "bulk"} {
			on := map[int]int{}
			for p := range PartitionsMax {
				on[MatchingShard("shop", tasklist, p, shards)]++
			}
			least, most := PartitionsMax/shards, (PartitionsMax+shards-1)/shards
			for m, n := range on {
				if m < 0 || m >= shards || n < least || n > most {
					t.Errorf("%s: shard %d of %d has %d partitions", tasklist, m, shards, n)
				}
			}
			if want := min(shards, PartitionsMax); len(on) != want {
				t.Errorf("%s: on %d of %d shards", tasklist, len(on), shards)
			}
		}
	}
	first := map[int]bool{}
	for i := range 200 {
		first[MatchingShard("shop", fmt.Sprint("list", i), 0, 16)] = true
	}
	if len(first) != 16 {
		t.Errorf("200 tasklists are on %d of 16 shards", len(first))
	}
}

// The tree ends at the first partition from each: no poll goes round in it. It is flat, and no partition has more children than its degree.
func TestPartitionsAreATree(t *testing.T) {
	children := map[int]int{}
	for p := 1; p < PartitionsMax; p++ {
		children[ParentPartition(p)]++
		hops := 0
		for at := p; at != 0; hops++ {
			next := ParentPartition(at)
			if next < 0 || next >= at {
				t.Fatalf("the parent of %d is %d", at, next)
			}
			at = next
		}
		if hops > 2 {
			t.Errorf("partition %d is %d hops from the first", p, hops)
		}
	}
	for p, n := range children {
		if n > PartitionDegree {
			t.Errorf("partition %d has %d children", p, n)
		}
	}
	for p, want := range map[int]int{1: 0, 20: 0, 21: 1, 40: 1, 41: 2, 63: 3} {
		if got := ParentPartition(p); got != want {
			t.Errorf("the parent of %d is %d, want %d", p, got, want)
		}
	}
}
