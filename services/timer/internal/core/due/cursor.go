package due

import "cmp"

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

// Cursor tells which tasks have been fired. It is stored in one atomic batch
// with the tasks it newly covers.
type Cursor struct {
	// Epoch is the writer's: a random number of each ownership, by which an owner
	// knows its own cursor again when it did not hear whether it was stored.
	Epoch uint64
	// Base spans what former rounds fired. It only grows, in both directions.
	Base Mark
	// Round spans the current round, and Base with it; zero between rounds.
	Round Mark
	// Last is the last task of the round that was fired.
	Last Key
}

// Fired tells whether c covers k: it was fired, unless it was void by then.
func (c Cursor) Fired(k Key) bool {
	return c.Base.spans(k) || c.Round.spans(k) && k.Compare(c.Last) <= 0
}

// inRound tells whether a round is under way.
func (c Cursor) inRound() bool { return c.Round != Mark{} }

// seq is the highest sequence that c speaks of.
func (c Cursor) seq() uint64 { return max(c.Base.Seq, c.Round.Seq) }
