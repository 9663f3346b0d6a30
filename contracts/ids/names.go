// Package ids holds the typed identifiers of the system: names chosen by
// users, the task id, the attempt token and the trigger.
//
// Owns: how each is parsed, printed, packed and hashed. Never does: I/O, or
// reading a clock or a random source; both come in as values.
// On failure: parsing returns an error that says what was expected.
package ids

import (
	"fmt"
	"hash/fnv"
)

// NameBytesMax bounds domain, tasklist and type names, in bytes.
const NameBytesMax = 64

// CheckName says why s cannot be a domain or tasklist name, or nil.
// Names are [A-Za-z0-9_-]{1,64}: they are subject tokens.
func CheckName(s string) error { return check(s, false) }

// CheckTypeName is CheckName for task types and groups, which may also hold single '.' between other characters: the catalog
// stores each under its name.
func CheckTypeName(s string) error { return check(s, true) }

func check(s string, dots bool) error {
	if s == "" {
		return fmt.Errorf("is missing")
	}
	if len(s) > NameBytesMax {
		return fmt.Errorf("is %d bytes long, at most %d are allowed", len(s), NameBytesMax)
	}
	for i, c := range s {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || dots && c == '.'
		if !ok {
			allowed := "A-Z a-z 0-9 _ -"
			if dots {
				allowed += " ."
			}
			return fmt.Errorf("has %q at byte %d, only %s are allowed", c, i, allowed)
		}
		if c == '.' && (i == 0 || i == len(s)-1 || s[i-1] == '.') {
			return fmt.Errorf("has '.' at byte %d, which must be between two other characters", i)
		}
	}
	return nil
}

// MatchingShard tells which of the m matching shards serves a partition of a tasklist: for the first one
// FNV-1a over domain and tasklist; the others follow it, each on the next shard. It must be the same
// in every process and forever, since Redis keys and stream subjects follow it.
func MatchingShard(domain, tasklist string, partition, m int) int {
	h := fnv.New64a()
	h.Write([]byte(domain))
	h.Write([]byte{0})
	h.Write([]byte(tasklist))
	h.Write([]byte{0, 0, 0})
	return int((h.Sum64()%uint64(m) + uint64(partition)) % uint64(m))
}

// Partitions of a tasklist form a tree: each but the first, 0, has a parent, and up to PartitionDegree children.
const (
	PartitionsMax   = 64
	PartitionDegree = 20
)

// ParentPartition is the parent of a partition other than the first (as in Cadence's scalable task lists).
func ParentPartition(partition int) int { return (partition - 1) / PartitionDegree }
