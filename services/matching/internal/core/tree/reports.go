package tree

import (
	"cmp"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Reports are what a turn sends to other partitions and to frontends.
type Reports struct {
	// Moves are polls that are given up to their frontends. If no one takes one, it is to be answered.
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
	// Poll is the poll's ID, ReplyTo and JSON are the poll's.
	Poll    uint64
	ReplyTo string
	JSON    bool
	// From is the partition that gives it up, Partition is the one to which it goes. Wanted is the column that it is wanted for there, if it goes down.
	From      table.Tasklist
	Partition int
	Wanted    table.Column
}

// Empty is the answer that the wait of a poll is over that no frontend takes.
func (m *Move) Empty() grab.Answer { return grab.Answer{ReplyTo: m.ReplyTo, JSON: m.JSON} }

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
