package due

import (
	"cmp"
	"math"
)

// Key is the place of a task in the order of firing: by due time, then by the
// message it was stored in, then by its place in that message. No two tasks share one.
type Key struct {
	// DueMS is when it is due, Unix ms.
	DueMS int64
	// Seq is the stream sequence of its message, from 1.
	Seq uint64
	// Index is its place in the message, from 0.
	Index uint32
}

// Compare is negative where k fires before o.
func (k Key) Compare(o Key) int {
	if c := cmp.Compare(k.DueMS, o.DueMS); c != 0 {
		return c
	}
	if c := cmp.Compare(k.Seq, o.Seq); c != 0 {
		return c
	}
	return cmp.Compare(k.Index, o.Index)
}

// Mark spans the tasks due by DueMS among the messages up to Seq. The zero Mark
// spans none.
type Mark struct {
	DueMS int64
	Seq   uint64
}

func (m Mark) spans(k Key) bool { return k.DueMS <= m.DueMS && k.Seq <= m.Seq }

// part spans the same tasks as m.
func (m Mark) part() Part {
	return Part{Last: Key{DueMS: m.DueMS, Seq: m.Seq, Index: math.MaxUint32}, Seq: m.Seq}
}

// Part spans the tasks up to Last in the order of firing, among the messages up
// to Seq. The zero Part spans none.
type Part struct {
	Last Key
	Seq  uint64
}

func (p Part) spans(k Key) bool { return k.Seq <= p.Seq && k.Compare(p.Last) <= 0 }

// within tells that o spans all that p spans.
func (p Part) within(o Part) bool { return p.Seq <= o.Seq && p.Last.Compare(o.Last) <= 0 }

// AheadMost bounds Cursor.Ahead.
const AheadMost = 4

// rewindAboveMS is how far a cursor is ahead of the clock when it is rewound, ms.
// Less is waited for: clocks are never quite alike.
const rewindAboveMS = 1000

// Cursor tells which tasks have been fired. It is stored in one atomic batch
// with the tasks it newly covers.
type Cursor struct {
	// Epoch is the writer's: a random number of each ownership, by which an owner
	// knows its own cursor again when it did not hear whether it was stored.
	Epoch uint64
	// Base spans what former rounds fired.
	Base Mark
	// Round spans the current round, and Base with it; zero between rounds.
	Round Mark
	// Last is the last task of the round that was fired.
	Last Key
	// Ahead spans what was fired by clocks ahead of the last writer's. Unused
	// parts are zero and come last.
	Ahead [AheadMost]Part
}

// Fired tells whether c covers k: it was fired, unless it was void by then.
func (c Cursor) Fired(k Key) bool {
	for _, p := range c.Ahead {
		if p.spans(k) {
			return true
		}
	}
	return c.Base.spans(k) || c.Round.spans(k) && k.Compare(c.Last) <= 0
}

// Seq is the highest sequence that c speaks of.
func (c Cursor) Seq() uint64 {
	seq := max(c.Base.Seq, c.Round.Seq)
	for _, p := range c.Ahead {
		seq = max(seq, p.Seq)
	}
	return seq
}

// inRound tells whether a round is under way.
func (c Cursor) inRound() bool { return c.Round != Mark{} }

// instant is the latest one that the base or the round speaks of: the next round
// cannot end before it.
func (c Cursor) instant() int64 { return max(c.Base.DueMS, c.Round.DueMS) }

// rewound is c for a writer whose clock says nowMS, so that it need not wait for
// what a clock ahead has written (R23). It covers the same tasks, those of the store
// and those to come, and only Ahead speaks of later instants. It is false where
// Ahead has no room.
//
// A round of which the last task fired is due by now is cut at now: what it covers
// is up to Last, and that is unchanged. Another one, and the base, become parts.
func (c Cursor) rewound(nowMS int64) (Cursor, bool) {
	switch {
	case c.Round.DueMS <= nowMS:
	case c.Last.DueMS <= nowMS:
		c.Round.DueMS = nowMS
	default:
		if !c.setAside(Part{Last: c.Last, Seq: c.Round.Seq}) {
			return c, false
		}
		c.Round, c.Last = Mark{}, Key{}
	}
	if c.Base.DueMS > nowMS {
		if !c.setAside(c.Base.part()) {
			return c, false
		}
		c.Base = Mark{}
	}
	return c, true
}

// setAside adds a part to Ahead, and drops those within it.
func (c *Cursor) setAside(p Part) bool {
	c.forgetWithin(p)
	for i, a := range c.Ahead {
		if p.within(a) {
			return true
		}
		if a == (Part{}) {
			c.Ahead[i] = p
			return true
		}
	}
	return false
}

// forgetWithin drops the parts that p covers.
func (c *Cursor) forgetWithin(p Part) {
	var kept [AheadMost]Part
	n := 0
	for _, a := range c.Ahead {
		if !a.within(p) {
			kept[n] = a
			n++
		}
	}
	c.Ahead = kept
}

// roundEnded is c when all of its round was fired.
func (c Cursor) roundEnded() Cursor {
	ended := Cursor{Epoch: c.Epoch, Base: c.Round, Ahead: c.Ahead}
	ended.forgetWithin(ended.Base.part())
	return ended
}

// Outcome is what became of an append that was refused or whose answer was lost.
type Outcome uint8

const (
	// Again: it was not stored and may be repeated.
	Again Outcome = iota
	// Stored: it was, by a first try.
	Stored
	// Overtaken: another owner has written the cursor.
	Overtaken
)

// OutcomeOf tells what became of an append of mine that was to follow the cursor at
// sequence expected, when the last cursor is last, at lastSeq.
func OutcomeOf(mine Cursor, expected uint64, last Cursor, lastSeq uint64) Outcome {
	switch {
	case lastSeq > expected && last == mine:
		return Stored
	case lastSeq != expected:
		return Overtaken
	}
	return Again
}
