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
	// turnStep is by how much the turns of a group of weight 1 differ.
	turnStep = 10_000
	// weightMin is the least weight but for 0.
	weightMin = 0.01
	// idleFrom is where the turns of groups of weight 0 begin, and their ages: behind all others, and below 2^53.
	idleFrom = 1 << 52
	// groupsKeptMin is how many groups of a column are known before those are looked for that are behind.
	groupsKeptMin = 64
	// turnJump is how much larger than those beside it a step between two turns is at which a chunk is cut: within a chunk
	// all steps count as equal.
	turnJump = 8
)

// turns gives triggers of one column their turns, by start-time fair queueing: that of a group's trigger is the
// virtual time, which is the turn of what was taken last, or follows that of the trigger before by a step that is the smaller
// the greater the group's weight. So a group that waits with a hundred thousand tasks holds another up by one of them.
type turns struct {
	now int64
	// next are the turns of the next trigger of each group. What is not after now says nothing, and is forgotten in time.
	next map[string]int64
	// sweepAt is how many of them there may be until then.
	sweepAt int
}

// newTurns begins at the place of a column's head.
func newTurns(now int64) *turns {
	return &turns{now: now, next: map[string]int64{}, sweepAt: groupsKeptMin}
}

// give returns the turn of one more trigger of a group. Behind 2^52 all are equal.
func (t *turns) give(group string, weight float64) int64 {
	turn := max(t.now, t.next[group])
	t.next[group] = min(turn+max(1, int64(math.Round(turnStep/max(weight, weightMin)))), idleFrom-1)
	if len(t.next) >= t.sweepAt {
		maps.DeleteFunc(t.next, func(_ string, next int64) bool { return next <= t.now })
		t.sweepAt = max(2*len(t.next), groupsKeptMin)
	}
	return turn
}

// giveTurns gives the triggers of a chunk that is to be stored their turns, if groups share its column. A chunk that comes before
// others of its column takes their place among columns, too: else those would wait for the columns that it has to wait for.
func (s *Shard) giveTurns(a *arrival) {
	if a.Turn != 0 || a.turns != nil {
		return
	}
	age, waits := a.list.index.Head(a.Column)
	t := a.list.turns[a.Column]
	if t == nil {
		if a.groups == nil {
			return
		}
		if !waits {
			age = a.ReadyAt
		}
		t = newTurns(age)
		a.list.turns[a.Column] = t
	}
	weights := s.catalog.Weights(a.Domain)
	a.turns = make([]int64, a.Len())
	for i := range a.turns {
		group := ""
		if a.groups != nil {
			group = a.groups[i]
		}
		a.turns[i] = t.give(group, weightOf(weights, group))
	}
	if waits {
		a.ReadyAt = min(a.ReadyAt, age)
	}
}

func weightOf(weights map[string]float64, group string) float64 {
	if w, ok := weights[group]; ok {
		return w
	}
	return 1
}

// tookTurns notes that a chunk was taken out of the table.
func (l *list) tookTurns(c *table.Chunk) {
	if t := l.turns[c.Column]; t != nil && c.Turn < idleFrom && c.Len() > 0 {
		t.now = max(t.now, c.Turn+int64(c.Len()-1)*c.Step)
	}
}

// endTurns forgets the turns of a column that is empty: who comes next waits for no one.
func (l *list) endTurns(at table.Column) {
	if _, waits := l.index.Head(at); !waits && l.putting == 0 {
		delete(l.turns, at)
	}
}

// withoutIdle has the triggers of groups of weight 0 arrive behind all others, and returns the rest.
func (s *Shard) withoutIdle(t *Triggers, l *list, from *delivery) (packed []byte, groups []string) {
	weights := s.catalog.Weights(t.Domain)
	idle := func(group string) bool { return weightOf(weights, group) == 0 }
	if len(weights) == 0 || !slices.ContainsFunc(t.Groups, idle) {
		return t.Packed, t.Groups
	}
	behind := arrival{list: l, from: from, Chunk: table.Chunk{
		Tasklist: l.Tasklist, Column: table.Column{Priority: table.PriorityLast, Type: t.Type}, ReadyAt: idleFrom + t.ReadyAt,
	}}
	for i, group := range t.Groups {
		one := t.Packed[i*ids.TriggerBytes : (i+1)*ids.TriggerBytes]
		if idle(group) {
			behind.Triggers = append(behind.Triggers, one...)
			behind.turns = append(behind.turns, behind.ReadyAt)
			continue
		}
		packed, groups = append(packed, one...), append(groups, group)
	}
	from.left++
	s.arrivals = append(s.arrivals, behind)
	return packed, groups
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
	age int64
	all []turned
}

// turned is one trigger.
type turned struct {
	turn   int64
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
		s.columns = append(s.columns, sharedPut{sharedColumn: column, age: a.ReadyAt})
	}
	c := &s.columns[i]
	c.age = min(c.age, a.ReadyAt)
	for i, turn := range a.turns {
		c.all = append(c.all, turned{turn, a.Triggers[i*ids.TriggerBytes : (i+1)*ids.TriggerBytes]})
	}
}

// append adds them to dst in chunks, those of many groups together.
func (s *sharedPuts) append(dst []table.Chunk) []table.Chunk {
	for i := range s.columns {
		c := &s.columns[i]
		slices.SortStableFunc(c.all, func(a, b turned) int { return cmp.Compare(a.turn, b.turn) })
		for from := 0; from < len(c.all); {
			to := chunkEnd(c.all, from)
			dst = append(dst, c.chunk(c.all[from:to]))
			from = to
		}
	}
	return dst
}

func (c *sharedPut) chunk(all []turned) table.Chunk {
	n := len(all)
	chunk := table.Chunk{
		Tasklist: c.Tasklist, Column: c.Column, ReadyAt: c.age, Turn: all[0].turn, Triggers: make([]byte, 0, n*ids.TriggerBytes),
	}
	if n > 1 {
		chunk.Step = (all[n-1].turn - all[0].turn) / int64(n-1)
	}
	for i := range all {
		chunk.Triggers = append(chunk.Triggers, all[i].packed...)
	}
	return chunk
}

// chunkEnd is the end of the chunk that begins with a trigger: it is full, or the turn of the next one is far.
func chunkEnd(all []turned, from int) int {
	step := func(i int) int64 { // to the i-th
		if i <= from || i >= len(all) {
			return 0
		}
		return all[i].turn - all[i-1].turn
	}
	to := from + 1
	for to < len(all) && to-from < table.ChunkTriggersMax && step(to) <= turnJump*max(step(to-1), step(to+1), turnStep) {
		to++
	}
	return to
}
