package due

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const testHour = 60 * testMinute

// R23: an owner an hour ahead fires a task, the next one has the right time.
func TestR23_AClockAheadDoesNotStopFiring(t *testing.T) {
	table := newTable(t, message(1, 60_000, 1))
	if got := fire(table, 60_000+testHour); len(got) != 1 {
		t.Fatalf("fired %v", got)
	}
	table.Load(message(2, 120_000, 2))
	table.Load(message(3, 119_999, 3))
	next := takeOver(table.Cursor(), 61_000, message(1, 60_000, 1), message(2, 120_000, 2), message(3, 119_999, 3))
	for name, owner := range map[string]*Table{"the same owner": table, "the next owner": next} {
		if got := fire(owner, 61_000); got != nil {
			t.Fatalf("%s: fired %v early", name, got)
		}
		if at, _ := owner.Next(); at != 119_999 {
			t.Errorf("%s: next at %d", name, at)
		}
		if got, want := fire(owner, 120_000), []ids.TaskID{testID(3), testID(2)}; !slices.Equal(got, want) {
			t.Errorf("%s: fired %v, want %v", name, got, want)
		}
		owner.check(t)
		if owner.Cursor().Ahead[0] == (Part{}) || fire(owner, testHour+70_000) != nil {
			t.Errorf("%s: what was fired by the clock ahead is forgotten", name)
		}
	}
}

// R23: the clock ahead is stopped in the middle of a round, and what comes during
// that round need not wait for its end.
func TestR23_ARoundOfAClockAheadIsLeft(t *testing.T) {
	messages := []Message{message(1, 60_000, 1), message(2, 1_000_000, 2), message(3, 1_000_000, 3), message(4, 1_100_000, 4)}
	table := newTable(t, messages...)
	for fired := range 2 {
		if chunk, ok := table.NextChunk(2_000_000, one); !ok || chunk.Messages[0].Records[0].ID != testID(fired+1) {
			t.Fatal("not fired")
		}
		table.Commit(2_000_000, 0)
		table.Load(message(uint64(5+fired), 70_000, 5+fired)) // during the round
		if fired == 0 {
			next := takeOver(table.Cursor(), 70_000, append(slices.Clone(messages), message(5, 70_000, 5))...)
			if got := fire(next, 70_000); !slices.Equal(got, []ids.TaskID{testID(5)}) {
				t.Errorf("fired %v after a round cut short", got)
			}
			if next.Cursor().Ahead != [AheadMost]Part{} {
				t.Error("the round was cut and yet set aside")
			}
			next.check(t)
		}
	}
	if got := fire(table, 80_000); !slices.Equal(got, []ids.TaskID{testID(5), testID(6)}) {
		t.Errorf("fired %v after a round set aside", got)
	}
	table.check(t)
	if got, want := fire(table, 2_000_000), []ids.TaskID{testID(3), testID(4)}; !slices.Equal(got, want) {
		t.Errorf("fired %v, want %v", got, want)
	}
	if table.Cursor().Ahead != [AheadMost]Part{} {
		t.Error("parts are kept that the base covers")
	}
}

// R23: a cursor that is rewound covers the same tasks.
func TestR23_ARewoundCursorCoversTheSame(t *testing.T) {
	key := rapid.Custom(func(t *rapid.T) Key {
		return Key{DueMS: rapid.Int64Range(0, 9).Draw(t, "due"), Seq: rapid.Uint64Range(1, 6).Draw(t, "seq"), Index: rapid.Uint32Range(0, 1).Draw(t, "index")}
	})
	rapid.Check(t, func(t *rapid.T) {
		var c Line
		for range rapid.IntRange(0, AheadMost).Draw(t, "parts") {
			c.setAside(Part{Last: key.Draw(t, "last"), Seq: rapid.Uint64Range(1, 6).Draw(t, "seq")})
		}
		c.Base = Mark{DueMS: rapid.Int64Range(0, 9).Draw(t, "base"), Seq: rapid.Uint64Range(0, 6).Draw(t, "base seq")}
		if rapid.Bool().Draw(t, "in a round") {
			c.Round = Mark{DueMS: rapid.Int64Range(c.Base.DueMS, 9).Draw(t, "round"), Seq: rapid.Uint64Range(max(c.Base.Seq, 1), 6).Draw(t, "round seq")}
			c.Last = key.Draw(t, "last")
			c.Last.DueMS = min(c.Last.DueMS, c.Round.DueMS)
		}
		nowMS := rapid.Int64Range(0, 9).Draw(t, "now")
		got, ok := c.rewound(nowMS)
		if !ok {
			return
		}
		if got.instant() > nowMS {
			t.Fatalf("it speaks of %d", got.instant())
		}
		for due := range int64(10) {
			for seq := range uint64(8) {
				for index := range uint32(2) {
					k := Key{DueMS: due, Seq: seq + 1, Index: index}
					if got.fired(k) != c.fired(k) {
						t.Fatalf("%v: %v, was %v\nfrom %+v\nto %+v", k, got.fired(k), c.fired(k), c, got)
					}
				}
			}
		}
	})
}

func TestR23_WithoutRoomTheClockIsWaitedFor(t *testing.T) {
	c := Cursor{Line: Line{Base: Mark{DueMS: 900_000, Seq: 9}}}
	for i := range AheadMost {
		if !c.setAside(Part{Last: Key{DueMS: int64(2_000_000 - i)}, Seq: uint64(i + 1)}) {
			t.Fatal("no room")
		}
	}
	table := takeOver(c, 0, message(10, 1000, 1))
	if got := fire(table, 899_999); got != nil {
		t.Fatalf("fired %v", got)
	}
	if at, _ := table.Next(); at != 900_000 {
		t.Fatalf("next at %d", at)
	}
	if got := fire(table, 900_000); len(got) != 1 {
		t.Fatalf("fired %v", got)
	}
}

func TestOutcomeOfALostAppend(t *testing.T) {
	mine, other := Cursor{Epoch: 1, Line: Line{Base: Mark{1, 1}}}, Cursor{Epoch: 2}
	for _, c := range []struct {
		last    Cursor
		lastSeq uint64
		want    Outcome
	}{{mine, 7, Stored}, {other, 7, Overtaken}, {other, 5, Again}, {mine, 5, Again}, {mine, 4, Overtaken}} {
		if got := OutcomeOf(mine, 5, c.last, c.lastSeq); got != c.want {
			t.Errorf("last %v at %d: %v, want %v", c.last.Epoch, c.lastSeq, got, c.want)
		}
	}
}

// TestHowFarACursorSpeaks: the store must not end before that.
func TestHowFarACursorSpeaks(t *testing.T) {
	for want, l := range map[uint64]Line{
		0: {}, 5: {Base: Mark{10, 5}, Round: Mark{20, 3}}, 6: {Base: Mark{10, 5}, Round: Mark{20, 6}},
		9: {Base: Mark{10, 5}, Ahead: [AheadMost]Part{{Seq: 7}, {Seq: 9}, {Seq: 8}}}, 10: {Base: Mark{10, 10}, Ahead: [AheadMost]Part{{Seq: 7}}},
	} {
		for name, c := range map[string]Cursor{
			"shared": {Line: l}, "apart": {Line: Line{Base: Mark{1, 0}}, Apart: [ApartMost]Apart{{Domain: "a"}, {Domain: "b", Line: l}}},
		} {
			if got := c.Seq(); got != want {
				t.Errorf("%s %+v: %d, want %d", name, l, got, want)
			}
		}
	}
}

// TestI10_WhatIsSetAside makes room for what it covers, is not kept twice, and is not lost where there is no room: then the cursor stays.
func TestI10_WhatIsSetAside(t *testing.T) {
	part := func(dueMS int64, seq uint64) Part { return Part{Last: Key{DueMS: dueMS, Seq: 1}, Seq: seq} }
	c := Line{Ahead: [AheadMost]Part{part(5_000, 2), part(20_000, 1), part(4_000, 3)}}
	if !c.setAside(part(6_000, 4)) || c.Ahead != [AheadMost]Part{part(20_000, 1), part(6_000, 4)} {
		t.Errorf("one that covers two: %+v", c.Ahead)
	}
	if !c.setAside(part(5_000, 4)) || c.Ahead != [AheadMost]Part{part(20_000, 1), part(6_000, 4)} {
		t.Errorf("one that is covered: %+v", c.Ahead)
	}
	if !c.setAside(part(6_000, 4)) || c.Ahead != [AheadMost]Part{part(20_000, 1), part(6_000, 4)} {
		t.Errorf("one that is there: %+v", c.Ahead)
	}
	full := [AheadMost]Part{part(50_000, 1), part(40_000, 2), part(30_000, 3), part(20_000, 4)}
	for name, c := range map[string]Line{
		"a round": {Round: Mark{9_000, 9}, Last: Key{DueMS: 8_000, Seq: 1}, Ahead: full}, "what former rounds fired": {Base: Mark{9_000, 9}, Ahead: full},
	} {
		if got, ok := c.rewound(1_000); ok || got != c {
			t.Errorf("%s, without room: %+v", name, got)
		}
	}
}

// TestATableGoesOnAsAnotherWriter: its cursors say so, and what they cover is not loaded again.
func TestATableGoesOnAsAnotherWriter(t *testing.T) {
	table := New(Config{FiredMost: 10, FiredKeepMS: 1})
	table.Resume(Cursor{Epoch: 3, Line: Line{Base: Mark{10, 5}}}, 7, 0)
	table.Loaded()
	table.Load(message(4, 1000, 1))
	table.Load(message(5, 1000, 2))
	table.Load(message(6, 1000, 3))
	chunk, _ := table.NextChunk(1000, wide)
	if chunk.Tasks != 1 || chunk.Cursor.Epoch != 7 || table.Cursor().Epoch != 7 {
		t.Errorf("%d tasks, %+v", chunk.Tasks, chunk.Cursor)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it goes on while a chunk is being stored")
			}
		}()
		table.Loaded()
	}()
}

// R23: a cursor a second ahead of the clock is waited for, one that is further ahead is not. So an owner that begins while less is left waits for the rest.
func TestR23_ACursorASecondAheadIsWaitedFor(t *testing.T) {
	messages := []Message{message(1, 1000, 1), message(2, 1000, 2)}
	ahead := Cursor{Line: Line{Base: Mark{DueMS: 60_000, Seq: 1}}}
	for now, fires := range map[int64]int{60_000 - rewindAboveMS - 1: 1, 60_000 - rewindAboveMS: 0, 59_999: 0, 60_000: 1} {
		testkit.Equal(t, fmt.Sprint("fired at ", now), len(fire(takeOver(ahead, now, messages...), now)), fires)
	}
}
