package natslog

import (
	"testing"
	"time"
)

// TestMarksGoOneByOne: each is removed by the server with a sync of its own.
func TestMarksGoOneByOne(t *testing.T) {
	var m Marks
	now := time.Unix(1_800_000_000, 0)
	if first, second := m.kept(now), m.kept(now); first != markKept || second != markKept+markEvery {
		t.Errorf("the first stays for %v, the second for %v", first, second)
	}
	for range 1000 {
		m.kept(now)
	}
	if later, last := m.kept(now.Add(time.Second)), m.kept(now.Add(time.Hour)); later != markKept+1002*markEvery-time.Second || last != markKept {
		t.Errorf("a later one stays for %v, one long after for %v", later, last)
	}
}
