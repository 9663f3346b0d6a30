package ids

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTaskIDRoundTripAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1<<47).Draw(t, "ms")
		p := rapid.IntRange(0, 1<<16-1).Draw(t, "p")
		id := NewTaskID(time.UnixMilli(ms), p, rapid.Uint64().Draw(t, "random"))
		if id.Time().UnixMilli() != ms || id.Partition() != p {
			t.Fatalf("time %d, partition %d", id.Time().UnixMilli(), id.Partition())
		}
		got, err := ParseTaskID(id.String())
		if err != nil || got != id {
			t.Fatalf("parse %s: %v %v", id, got, err)
		}
		later := NewTaskID(time.UnixMilli(ms+1), 0, 0)
		if id.String() >= later.String() {
			t.Fatalf("%s does not sort before %s", id, later)
		}
	})
}

func TestTaskIDHasOneSpelling(t *testing.T) {
	id := NewTaskID(time.UnixMilli(1), 2, 3).String()
	for _, s := range []string{"", id[:25], id + "0", strings.ToUpper(id), id[:25] + "z", "!" + id[1:], id[:24] + "\n\n"} {
		if s == id {
			continue
		}
		if got, err := ParseTaskID(s); err == nil {
			t.Errorf("%q parsed as %v", s, got)
		}
	}
}

func drawToken(t *rapid.T) Token {
	pos := NewPosition(rapid.Uint64Range(0, 1<<56-1).Draw(t, "seq"), Lane(rapid.IntRange(0, 5).Draw(t, "lane")))
	return Token{pos, rapid.Uint32().Draw(t, "version"), rapid.Uint64().Draw(t, "nonce")}
}

func TestTriggerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tok := drawToken(t)
		pos := tok.Position
		a := Trigger{NewTaskID(time.UnixMilli(5), 1, tok.Nonce), tok.Version, pos}
		b := Trigger{NewTaskID(time.UnixMilli(6), 2, tok.Nonce), tok.Version + 1, pos}
		packed := AppendTrigger(AppendTrigger(nil, a), b)
		if len(packed) != 2*TriggerBytes || TriggerAt(packed, 0) != a || TriggerAt(packed, 1) != b {
			t.Fatalf("packed %x", packed)
		}
		if Booking(a.ID, a.Version) != string(packed[:BookingBytes]) {
			t.Fatal("a booking is not the head of its trigger")
		}
	})
}

func TestNames(t *testing.T) {
	for s, ok := range map[string]bool{
		"a": true, "Shop_1-x": true, "": false, "a.b": false, "a b": false, "é": false, "a*": false, ">": false,
		strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
	} {
		if err := CheckName(s); (err == nil) != ok {
			t.Errorf("CheckName(%q) = %v", s, err)
		}
	}
	for s, ok := range map[string]bool{"email.send": true, "a.b.c": true, "a": true, "": false, ".": false, ".a": false, "a.": false, "a..b": false, "a b": false} {
		if err := CheckTypeName(s); (err == nil) != ok {
			t.Errorf("CheckTypeName(%q) = %v", s, err)
		}
	}
}
