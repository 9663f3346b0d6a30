package natslog

import (
	"errors"
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

// TestMarksOfAWriterAreBounded: one purge of a million would have the marks of all others stay for half a day.
func TestMarksOfAWriterAreBounded(t *testing.T) {
	var m Marks
	now := time.Now()
	n := 0
	for !m.full(now) && n < 1_000_000 {
		m.kept(now)
		n++
	}
	if most := int(markedAhead / markEvery); n > most || n < most-int(markKept/markEvery) {
		t.Errorf("%d marks of a writer", n)
	}
	for range 500 { // that much time has gone by
		m.kept(now)
	}
	if err := m.Put(t.Context(), nil, []Place{{"a", 1}}, nil); !errors.Is(err, ErrNotStored) {
		t.Errorf("one more: %v", err)
	}
	if m.full(now.Add(time.Minute)) {
		t.Error("later none are taken either")
	}
}
