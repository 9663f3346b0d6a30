package due

import (
	"cmp"
	"math"
	"slices"
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

// within tells that o spans all that m spans.
func (m Mark) within(o Mark) bool { return m.DueMS <= o.DueMS && m.Seq <= o.Seq }

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

// ApartMost bounds Cursor.Apart.
const ApartMost = 16

// Cursor tells which tasks have been fired. It is stored in one atomic batch
// with the tasks it newly covers.
type Cursor struct {
	// Epoch is the writer's: a random number of each ownership, by which an owner
	// knows its own cursor again when it did not hear whether it was stored.
	Epoch uint64
	// EarlyFrom is a sequence of the store: what the early messages before it fire is covered, all of it; 0 = that is not known.
	EarlyFrom uint64
	// Line is that of all domains but those that are apart.
	Line
	// Apart are the domains that have lines of their own. Unused ones are zero and come last.
	Apart [ApartMost]Apart
}

// Apart is a domain that fires in turn with the others, so that they do not wait for all it has due.
type Apart struct {
	Domain string
	Line
}

// Line tells which tasks of some domains have been fired: in the order of their keys, round by round.
type Line struct {
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

// Fired tells whether c covers a task of a domain: it was fired, unless it was void by then.
func (c *Cursor) Fired(domain string, k Key) bool { return c.line(c.apart(domain)).fired(k) }

// apart is the number of the line of a domain: 0 is that of all domains that are not apart, n that of Apart[n-1].
func (c *Cursor) apart(domain string) int {
	return 1 + slices.IndexFunc(c.Apart[:c.lines()-1], func(a Apart) bool { return a.Domain == domain })
}

// line is the one with a number.
func (c *Cursor) line(number int) *Line {
	if number == 0 {
		return &c.Line
	}
	return &c.Apart[number-1].Line
}

// lines is how many there are, 1 at least.
func (c *Cursor) lines() int {
	for i := range c.Apart {
		if c.Apart[i].Domain == "" {
			return 1 + i
		}
	}
	return 1 + ApartMost
}

// Seq is the highest sequence that c speaks of.
func (c *Cursor) Seq() (seq uint64) {
	seq = max(c.EarlyFrom, 1) - 1
	for n := range c.lines() {
		seq = max(seq, c.line(n).highest())
	}
	return seq
}

// instant is the latest one that a base or a round speaks of.
func (c *Cursor) instant() (dueMS int64) {
	for n := range c.lines() {
		dueMS = max(dueMS, c.line(n).instant())
	}
	return dueMS
}

// fired tells whether l covers k.
func (l *Line) fired(k Key) bool {
	for _, p := range l.Ahead {
		if p.spans(k) {
			return true
		}
	}
	return l.Base.spans(k) || l.Round.spans(k) && k.Compare(l.Last) <= 0
}

// highest is the highest sequence that l speaks of.
func (l *Line) highest() uint64 {
	seq := max(l.Base.Seq, l.Round.Seq)
	for _, p := range l.Ahead {
		seq = max(seq, p.Seq)
	}
	return seq
}

// inRound tells whether a round is under way.
func (l *Line) inRound() bool { return l.Round != Mark{} }

// instant is the latest one that the base or the round speaks of: the next round
// cannot end before it.
func (l *Line) instant() int64 { return max(l.Base.DueMS, l.Round.DueMS) }

// rewound is l for a writer whose clock says nowMS, so that it need not wait for
// what a clock ahead has written (R23). It covers the same tasks, those of the store
// and those to come, and only Ahead speaks of later instants. It is false where
// Ahead has no room.
//
// A round of which the last task fired is due by now is cut at now: what it covers
// is up to Last, and that is unchanged. Another one, and the base, become parts.
func (l Line) rewound(nowMS int64) (Line, bool) {
	switch {
	case l.Round.DueMS <= nowMS:
	case l.Last.DueMS <= nowMS:
		l.Round.DueMS = nowMS
	default:
		if !l.setAside(Part{Last: l.Last, Seq: l.Round.Seq}) {
			return l, false
		}
		l.Round, l.Last = Mark{}, Key{}
	}
	if l.Base.DueMS > nowMS {
		if !l.setAside(l.Base.part()) {
			return l, false
		}
		l.Base = Mark{}
	}
	return l, true
}

// setAside adds a part to Ahead, and drops those within it.
func (l *Line) setAside(p Part) bool {
	l.forgetWithin(p)
	for i, a := range l.Ahead {
		if p.within(a) {
			return true
		}
		if a == (Part{}) {
			l.Ahead[i] = p
			return true
		}
	}
	return false
}

// forgetWithin drops the parts that p covers.
func (l *Line) forgetWithin(p Part) {
	var kept [AheadMost]Part
	n := 0
	for _, a := range l.Ahead {
		if !a.within(p) {
			kept[n] = a
			n++
		}
	}
	l.Ahead = kept
}

// roundEnded is l when all of its round was fired.
func (l *Line) roundEnded() Line {
	ended := Line{Base: l.Round, Ahead: l.Ahead}
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
