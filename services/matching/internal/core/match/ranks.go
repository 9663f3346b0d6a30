package match

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// rankStep is by how much the ranks of a group of weight 1 differ.
	rankStep = 10_000
	// weightMin is the least weight but for 0.
	weightMin = 0.01
	// idleFrom is where the ranks of groups of weight 0 begin, and their ages: behind all others, and below 2^53.
	idleFrom = 1 << 52
	// groupsKeptMin is how many groups of a column are known before those are looked for that are behind.
	groupsKeptMin = 64
	// rankOff is by how many places triggers of a chunk may stand before or behind where they are.
	rankOff = 8
	// rankJump is how much larger than those beside it a step between two ranks is at which a chunk is cut: within a chunk
	// all steps count as equal.
	rankJump = 8
)

// ranks gives triggers of one column their ranks, by start-time fair queueing: that of a group's trigger is the
// virtual time, which is the rank of what was taken last, or follows that of the trigger before by a step that is the smaller
// the greater the group's weight. So a group that waits with a hundred thousand tasks holds another up by one of them.
type ranks struct {
	// now is the virtual time; 0 = nothing waits.
	now int64
	// aside is the least rank of what is put aside, since its partition is silent: the virtual time of those who come meanwhile is not
	// later. 0 = nothing is.
	aside int64
	// last is the latest rank so far.
	last int64
	// next are the ranks of the next trigger of each group. A rank that is not after now says nothing, and is forgotten in time.
	next map[string]int64
	// sweepAt is how many of them there may be until then.
	sweepAt int
}

// begin has the virtual time begin at a place.
func (t *ranks) begin(now int64) {
	*t = ranks{now: now, next: map[string]int64{}, sweepAt: groupsKeptMin}
}

// give returns the rank of one more trigger of a group, which counts as several if it uses several starts of a rate. Behind 2^52 all are equal.
func (t *ranks) give(group string, weight float64, starts int) int64 {
	rank := max(t.now, t.next[group])
	if t.aside != 0 {
		rank = max(min(t.now, t.aside), t.next[group])
	}
	t.next[group] = min(rank+stepOf(weight)*int64(starts), idleFrom-1)
	t.last = max(t.last, rank)
	if len(t.next) >= t.sweepAt {
		maps.DeleteFunc(t.next, func(_ string, next int64) bool { return next <= t.now })
		t.sweepAt = max(2*len(t.next), groupsKeptMin)
	}
	return rank
}

// ranked is where one trigger stands.
type ranked struct{ at, age int64 }

// giveRanks gives the triggers of a chunk that is to be filed their ranks, if groups share its column. A trigger that comes before
// others of its column has their age, too: else those would wait for the columns that it has to wait for.
func (s *Shard) giveRanks(a *arrival) {
	if a.Rank != 0 || a.ranks != nil {
		return
	}
	at := ranksAt(a.Column)
	head, _ := a.list.index.Waits(at)
	if head == 0 || head >= idleFrom {
		head = a.ReadyAt
	}
	t := a.list.ranks[at]
	if t == nil {
		if a.groups == nil && at.Group == "" {
			return
		}
		t = &ranks{}
		a.list.ranks[at] = t
	}
	if t.now == 0 {
		t.begin(head)
	}
	weights := s.catalog.Weights(a.Domain)
	a.ranks = make([]ranked, a.Len())
	own := a.ReadyAt
	for i := range a.ranks {
		group := groupOf(a.Column)
		if a.groups != nil {
			group = a.groups[i]
		}
		last, age := t.last, own
		at := t.give(group, weightOf(weights, group), a.Starts())
		if at < last {
			age = min(own, head)
		}
		a.ranks[i] = ranked{at, age}
		a.ReadyAt = min(a.ReadyAt, age)
	}
}

// ranksAt is the column whose ranks one has: all groups of a priority and type have one virtual time.
func ranksAt(at table.Column) table.Column {
	if at.Group == "" {
		return at
	}
	return at.Any()
}

// groupOf is the group of a column's tasks; "" = none, or several.
func groupOf(at table.Column) string {
	if at.Group == table.NoGroup {
		return ""
	}
	return at.Group
}

// stepOf is by how much the ranks of a group differ.
func stepOf(weight float64) int64 { return max(1, int64(math.Round(rankStep/max(weight, weightMin)))) }

func weightOf(weights map[string]float64, group string) float64 {
	if w, ok := weights[group]; ok {
		return w
	}
	return 1
}

// tookRanks notes that a chunk was taken out of the table.
func (l *list) tookRanks(c *table.Chunk) {
	if t := l.ranks[ranksAt(c.Column)]; t != nil && t.now > 0 && c.Rank < idleFrom && c.Len() > 0 {
		t.now = max(t.now, c.Rank+int64(c.Len()-1)*c.Step+l.index.Shift(c.Column))
	}
}

// asideRank notes that a trigger is put aside.
func (l *list) asideRank(at table.Column, rank int64) {
	if t := l.ranks[ranksAt(at)]; t != nil && rank != 0 && rank < idleFrom && (t.aside == 0 || rank < t.aside) {
		t.aside = rank
	}
}

// backRank notes that a chunk that was put aside comes back, with its rank: the virtual time goes back to it. A chunk that another partition has
// aside is noted again with its next trigger.
func (l *list) backRank(c *table.Chunk) {
	if t := l.ranks[ranksAt(c.Column)]; t != nil && t.aside != 0 {
		t.now, t.aside = min(t.now, t.aside), 0
	}
}

// endRanks forgets the groups of a column that is empty: who comes next waits for no one. It is remembered that it has some, so that
// a flood without a group is not taken for the only one.
func (l *list) endRanks(at table.Column) {
	at = ranksAt(at)
	t := l.ranks[at]
	if _, waits := l.index.Waits(at); t != nil && !waits && l.putting == 0 {
		*t = ranks{}
	}
}

// withoutIdle has the triggers of groups of weight 0 arrive behind all others, and returns the rest.
func (s *Shard) withoutIdle(t *Triggers, l *list, from *delivery) (packed []byte, groups []string) {
	weights := s.catalog.Weights(t.Domain)
	idle := func(group string) bool { return weightOf(weights, group) == 0 }
	if len(weights) == 0 || !slices.ContainsFunc(t.Groups, idle) {
		return t.Packed, t.Groups
	}
	behind := arrival{list: l, from: from, groups: t.Groups, Chunk: table.Chunk{
		Tasklist: l.Tasklist, Column: table.Column{Priority: table.PriorityIdle, Type: t.Type}, ReadyAt: idleFrom + t.ReadyAt,
		Cost: table.Cost(t.Cost), Triggers: t.Packed,
	}}
	rest := behind
	behind.keep(func(i int) bool { return idle(t.Groups[i]) })
	rest.keep(func(i int) bool { return !idle(t.Groups[i]) })
	behind.groups, behind.ranks = nil, slices.Repeat([]ranked{{behind.ReadyAt, behind.ReadyAt}}, behind.Len())
	from.left++
	s.arrivals = append(s.arrivals, behind)
	return rest.Triggers, rest.groups
}

// sharedPuts are triggers on their way into columns that groups share.
type sharedPuts struct {
	columns []sharedPut
	at      map[sharedColumn]int
}

type sharedColumn struct {
	table.Tasklist
	table.Column
}

type sharedPut struct {
	sharedColumn
	all []filed
}

// filed is one trigger.
type filed struct {
	ranked
	cost   int
	packed []byte
}

func (s *sharedPuts) add(a *arrival) {
	column := sharedColumn{a.Tasklist, a.Column}
	i, ok := s.at[column]
	if !ok {
		if s.at == nil {
			s.at = map[sharedColumn]int{}
		}
		i = len(s.columns)
		s.at[column] = i
		s.columns = append(s.columns, sharedPut{sharedColumn: column})
	}
	c := &s.columns[i]
	for i, rank := range a.ranks {
		c.all = append(c.all, filed{rank, a.Cost, a.Trigger(i)})
	}
}

// append adds them to dst in chunks, those of many groups together.
func (s *sharedPuts) append(dst []table.Chunk) []table.Chunk {
	for i := range s.columns {
		c := &s.columns[i]
		slices.SortStableFunc(c.all, func(a, b filed) int { return cmp.Compare(a.at, b.at) })
		for from := 0; from < len(c.all); {
			to, step := chunkEnd(c.all, from)
			dst = append(dst, c.chunk(c.all[from:to], step))
			from = to
		}
	}
	return dst
}

func (c *sharedPut) chunk(all []filed, step int64) table.Chunk {
	chunk := table.Chunk{
		Tasklist: c.Tasklist, Column: c.Column, ReadyAt: all[0].age, Rank: all[0].at, Step: step, Cost: all[0].cost,
		Triggers: make([]byte, 0, len(all)*ids.TriggerBytes),
	}
	for i := range all {
		chunk.ReadyAt = min(chunk.ReadyAt, all[i].age)
		chunk.Triggers = append(chunk.Triggers, all[i].packed...)
	}
	return chunk
}

// chunkEnd is the end of the chunk that begins with a trigger, and its step: it is full, or the rank of the next one is far, or its cost
// another, or with any step some trigger would stand more than rankOff places from where it is. So where the group of the most weight
// has no more triggers, and those after it have larger steps, another chunk begins.
func chunkEnd(all []filed, from int) (to int, step int64) {
	least, most := int64(0), int64(math.MaxInt64)
	for to = from + 1; to < len(all) && to-from < table.ChunkTriggersMax && all[to].cost == all[from].cost && !far(all, from, to); to++ {
		i, rise := int64(to-from), all[to].at-all[from].at
		low, high := max(least, (rise+i+rankOff-1)/(i+rankOff)), most
		if i > rankOff {
			high = min(most, rise/(i-rankOff))
		}
		if low > high {
			break
		}
		least, most = low, high
	}
	if to-from == 1 {
		return to, 0
	}
	return to, min(max((all[to-1].at-all[from].at)/int64(to-from-1), least), most)
}

// far tells whether the step to a trigger is much larger than those beside it.
func far(all []filed, from, to int) bool {
	step := func(i int) int64 { // to the i-th
		if i <= from || i >= len(all) {
			return 0
		}
		return all[i].at - all[i-1].at
	}
	return step(to) > rankJump*max(step(to-1), step(to+1), rankStep)
}
