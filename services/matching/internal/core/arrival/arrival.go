package arrival

import (
	"cmp"
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

// List is a tasklist as triggers see it that arrive.
type List interface {
	// UnknownGroups reports whether a column holds triggers of groups that are to be known, and are not.
	UnknownGroups(at table.Column) bool
	// Weights are those of the groups of its domain.
	Weights() fairness.Weights
}

// Arrival is a chunk on its way from a hint to a poll or the table of a tasklist.
type Arrival[L List] struct {
	part
	List L
	from *Delivery
}

// Of is a chunk that is of no message any more.
func Of[L List](l L, c table.Chunk) Arrival[L] { return Arrival[L]{part: part{Chunk: c}, List: l} }

// Arrivals are those of a turn. The zero value has none.
type Arrivals[L List] struct {
	All []Arrival[L]
	out *[]uint64
}

// Begin begins a turn. Messages that are taken care of are added to out.
func (s *Arrivals[L]) Begin(out *[]uint64) { s.out = out }

// Finish notes that a part of a message is taken care of. A message of which one never is comes again: to the next owner, or after a while.
func (s *Arrivals[L]) Finish(d *Delivery) {
	if d == nil { // a trigger that was put back is of none
		return
	}
	if d.left--; d.left == 0 {
		*s.out = append(*s.out, d.id)
	}
}

// FinishAll does so with all parts that some arrivals are of.
func (s *Arrivals[L]) FinishAll(all []Arrival[L]) {
	for i := range all {
		s.Finish(all[i].from)
	}
}

// PutBack has a chunk arrive again that found no poll.
func (s *Arrivals[L]) PutBack(l L, c table.Chunk) {
	s.All = append(s.All, Of(l, c))
}

// Add cuts triggers of one column into chunks. History's times are of milliseconds: the
// microseconds keep the chunks in order.
func (s *Arrivals[L]) Add(l L, t *Triggers, from *Delivery) {
	all := Arrival[L]{List: l, from: from, part: part{groups: t.Groups, Chunk: table.Chunk{
		Tasklist: t.Tasklist, Column: table.Column{Priority: min(max(t.Priority, table.PriorityFirst), table.PriorityLast), Type: t.Type},
		ReadyAt: t.ReadyAt, Cost: table.Cost(t.Cost), Triggers: t.Packed,
	}}}
	if l.UnknownGroups(all.Column) {
		s.byGroup(&all)
		return
	}
	s.withoutIdle(&all)
	for readyAt := t.ReadyAt; len(all.Triggers) > 0; readyAt++ {
		from.left++
		one := all
		one.ReadyAt = readyAt
		n := min(all.Len(), table.ChunkTriggersMax)
		if one.Triggers = all.Triggers[:n*ids.TriggerBytes]; all.groups != nil {
			one.groups = all.groups[:n]
		}
		all.Drop(n)
		s.All = append(s.All, one)
	}
}

// withoutIdle has the triggers of groups of weight 0 arrive behind all others, and leaves the rest.
func (s *Arrivals[L]) withoutIdle(a *Arrival[L]) {
	weights := a.List.Weights()
	if len(weights) == 0 || !slices.ContainsFunc(a.groups, weights.Idle) {
		return
	}
	behind := *a
	behind.Priority, behind.ReadyAt = table.PriorityIdle, fairness.IdleFrom+a.ReadyAt
	behind.Keep(func(i int) bool { return weights.Idle(a.groups[i]) })
	behind.groups, behind.ranks = nil, slices.Repeat([]fairness.Rank{{At: behind.ReadyAt, Age: behind.ReadyAt}}, behind.Len())
	groups := a.groups
	a.Keep(func(i int) bool { return !weights.Idle(groups[i]) })
	a.from.left++
	s.All = append(s.All, behind)
}

// byGroup has triggers arrive by their groups, in columns of one group each.
func (s *Arrivals[L]) byGroup(a *Arrival[L]) {
	weights := a.List.Weights()
	at := map[string]int{}
	for i := range a.Len() {
		name := ""
		if a.groups != nil {
			name = a.groups[i]
		}
		group := cmp.Or(name, table.NoGroup)
		k, ok := at[group]
		if !ok || s.All[k].Len() >= table.ChunkTriggersMax {
			one := Arrival[L]{List: a.List, from: a.from, part: part{Chunk: table.Chunk{Tasklist: a.Tasklist, Column: a.Column, ReadyAt: a.ReadyAt, Cost: a.Cost}}}
			one.Group = group
			if weights.Idle(name) {
				one.Priority, one.ReadyAt = table.PriorityIdle, fairness.IdleFrom+a.ReadyAt
			}
			k, at[group] = len(s.All), len(s.All)
			s.All = append(s.All, one)
			a.from.left++
		}
		one := &s.All[k]
		one.Triggers = append(one.Triggers, a.Trigger(i)...)
		if one.ReadyAt >= fairness.IdleFrom {
			one.ranks = append(one.ranks, fairness.Rank{At: one.ReadyAt, Age: one.ReadyAt})
		}
	}
}

// Sort has the most urgent and oldest first.
func (s *Arrivals[L]) Sort() {
	slices.SortStableFunc(s.All, func(a, b Arrival[L]) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.ReadyAt, b.ReadyAt))
	})
}

// Release releases those of which out is true.
func (s *Arrivals[L]) Release(out func(l L) bool) {
	s.All = slices.DeleteFunc(s.All, func(a Arrival[L]) bool {
		out := out(a.List)
		if out {
			s.Done(&a)
		}
		return out
	})
}

// Done notes that an arrival is done with.
func (s *Arrivals[L]) Done(a *Arrival[L]) { s.Finish(a.from) }
