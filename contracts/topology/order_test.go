package topology

import "testing"

// TestAUniqueKeyWithinAnOrderKeyIsNoOther: not that of another order key, nor one without.
func TestAUniqueKeyWithinAnOrderKeyIsNoOther(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range [][2]string{{"", "abc"}, {"a", "bc"}, {"ab", "c"}, {"b", "bc"}, {"1", ".abc"}, {"", "\xff1.abc"[1:]}} {
		subject := UniqueKey(0, "shop", UniqueWithin(of[0], of[1]))
		if seen[subject] {
			t.Errorf("%q is another one's too", of)
		}
		seen[subject] = true
	}
}

// TestOrderKeysAreSpread over partitions, and are not where their unique keys of the same name are.
func TestOrderKeysAreSpread(t *testing.T) {
	n, apart := Partitioning{History: 4}, 0
	var of [4]int
	for i := range 400 {
		key := string(rune('a'+i%26)) + string(rune('a'+i/26))
		p := OrderKeyPartition("shop", key, n)
		if of[p]++; p != UniqueKeyPartition("shop", key, n) || p != OrderKeyPartition("bank", key, n) {
			apart++
		}
	}
	for p, keys := range of {
		if keys < 50 {
			t.Errorf("partition %d has %d of 400 keys", p, keys)
		}
	}
	if apart == 0 {
		t.Error("all keys are where unique keys, and those of another domain, are")
	}
}
