package arrival

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Triggers is ready tasks of one column.
type Triggers struct {
	table.Tasklist
	table.Column
	// ReadyAt is when the first became ready, Unix µs.
	ReadyAt int64
	// Packed (ids.TriggerBytes each).
	Packed []byte
	// Groups are those of the triggers, in their order, "" where one has none; nil = none has one.
	Groups []string
	// Cost is how many starts of a rate each uses; 0 = 1.
	Cost int
}

// WellFormed reports whether there are triggers of a column, and a group for each or for none.
func (t *Triggers) WellFormed() bool {
	n := len(t.Packed) / ids.TriggerBytes
	return t.Domain != "" && t.Name != "" && t.Type != "" && n > 0 && len(t.Packed)%ids.TriggerBytes == 0 && (t.Groups == nil || len(t.Groups) == n)
}

// Without are triggers without those of some groups.
func (t *Triggers) Without(groups map[string]bool) *Triggers {
	if len(groups) == 0 || t.Groups == nil {
		return t
	}
	a := part{Chunk: table.Chunk{Triggers: t.Packed}, groups: t.Groups}
	a.Keep(func(i int) bool { return !groups[t.Groups[i]] })
	rest := *t
	rest.Packed, rest.Groups = a.Triggers, a.groups
	return &rest
}

// Delivery is a message of the hint stream until all of it is taken care of.
type Delivery struct {
	id   uint64
	left int
}

// NewDelivery is a message of which one part is left.
func NewDelivery(id uint64) *Delivery { return &Delivery{id: id, left: 1} }

// part is some triggers of a chunk.
type part struct {
	table.Chunk
	// groups are those of its triggers, in their order; nil = none has one. ranks are theirs, in their order, from when it
	// is to be stored in a column that groups share.
	groups []string
	ranks  []fairness.Rank
}

// Drop takes the first n triggers out, which found a poll.
func (a *part) Drop(n int) {
	a.Chunk.Drop(n)
	if a.groups != nil {
		a.groups = a.groups[n:]
	}
	if a.ranks != nil {
		a.ranks = a.ranks[n:]
	}
}

// Keep leaves the triggers for which keeps is true, by index, and returns how many it took out. Memory that the chunk shares with
// others stays as it is.
func (a *part) Keep(keeps func(i int) bool) (out int) {
	for i := range a.Len() {
		if !keeps(i) {
			out++
		}
	}
	if out == 0 {
		return 0
	}
	left := *a
	left.Triggers, left.groups, left.ranks = make([]byte, 0, len(a.Triggers)), nil, nil
	for i := range a.Len() {
		if !keeps(i) {
			continue
		}
		left.Triggers = append(left.Triggers, a.Trigger(i)...)
		if a.groups != nil {
			left.groups = append(left.groups, a.groups[i])
		}
		if a.ranks != nil {
			left.ranks = append(left.ranks, a.ranks[i])
		}
	}
	*a = left
	return out
}

// Place is where its first trigger stands in its column.
func (a *part) Place() int64 {
	if len(a.ranks) > 0 {
		return a.ranks[0].At
	}
	return a.Chunk.Place()
}

// Ranks are those of its triggers, if groups share its column and they are assigned.
func (a *part) Ranks() []fairness.Rank { return a.ranks }

// AssignRanks assigns ranks to triggers that are to be stored, if groups share their column. head is the age of the first trigger that waits there.
func (a *part) AssignRanks(ranks *fairness.Ranks, head int64, weights fairness.Weights) {
	if a.Rank == 0 && a.ranks == nil {
		a.ranks = ranks.Assign(&a.Chunk, a.groups, head, weights)
	}
}

// idle has triggers come behind all others.
func (a *part) idle() {
	a.groups, a.ranks = nil, slices.Repeat([]fairness.Rank{{At: a.ReadyAt, Age: a.ReadyAt}}, a.Len())
}
