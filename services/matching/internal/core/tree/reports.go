package tree

import (
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Reports are what a turn sends to other partitions and to frontends.
type Reports struct {
	// Moves are polls that are given up to their frontends. If no one takes one, it comes back.
	Moves []Move
	// Branches go to the shards of the parents of these partitions; they may be lost.
	Branches []Branch
	// Loads go to frontends; they may be lost.
	Loads []Load
}

// Reset empties reports and keeps their memory.
func (fx *Reports) Reset() {
	*fx = Reports{Moves: fx.Moves[:0], Branches: fx.Branches[:0], Loads: fx.Loads[:0]}
}

// Move is a poll that is given up to its frontend, to be sent to another partition of its tasklist.
type Move struct {
	// Poll is the poll's ID.
	Poll      uint64
	Partition int
}

// Branch is what a partition other than the first sends its parent.
type Branch struct {
	table.Tasklist
	// Present are types that it or a partition below it holds, PresentMax of them at most.
	Present []string
	// Wanted is what polls are wanted for, most urgent first, wantedMax at most.
	Wanted []Wanted
}

// triggers is for how many of them polls are wanted.
func (b *Branch) triggers() (n int) {
	for i := range b.Wanted {
		n += b.Wanted[i].Triggers
	}
	return n
}

// wanted is what is wanted of a column, or nil.
func (b *Branch) wanted(at table.Column) *Wanted {
	if i := slices.IndexFunc(b.Wanted, func(w Wanted) bool { return w.Column == at }); i >= 0 {
		return &b.Wanted[i]
	}
	return nil
}

// Wanted is triggers of one column that wait for a poll.
type Wanted struct {
	table.Column
	// ReadyAt is when the first became ready, Unix µs.
	ReadyAt int64
	// Limited: they need slots or starts too, which they may not get: one poll is enough.
	Limited bool
	// Triggers is how many there are, as far as is known, at least 1.
	Triggers int
}

func (w Wanted) compare(o Wanted) int {
	return cmp.Or(cmp.Compare(w.Priority, o.Priority), cmp.Compare(w.ReadyAt, o.ReadyAt))
}

// Load is what frontends hear of a partition of a tasklist that has several, or may get them.
type Load struct {
	table.Tasklist
	// Triggers wait, of Types and perhaps of others. PerSecond came in a second since the last time.
	Triggers  int
	Types     []string
	PerSecond float64
}
