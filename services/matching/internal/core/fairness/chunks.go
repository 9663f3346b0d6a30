package fairness

import (
	"cmp"
	"math"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Puts are triggers on their way into columns that groups share. The zero value has none.
type Puts struct {
	columns []put
	at      map[table.Place]int
}

type put struct {
	table.Place
	all []filed
}

// filed is one trigger.
type filed struct {
	Rank
	cost   int
	packed []byte
}

// Add adds the triggers of a chunk, with their ranks.
func (s *Puts) Add(c table.Chunk, ranks []Rank) {
	column := table.Place{Tasklist: c.Tasklist, Column: c.Column}
	i, ok := s.at[column]
	if !ok {
		if s.at == nil {
			s.at = map[table.Place]int{}
		}
		i = len(s.columns)
		s.at[column] = i
		s.columns = append(s.columns, put{Place: column})
	}
	for j, rank := range ranks {
		s.columns[i].all = append(s.columns[i].all, filed{rank, c.Cost, c.Trigger(j)})
	}
}

// Append adds them to dst in chunks, those of many groups together.
func (s *Puts) Append(dst []table.Chunk) []table.Chunk {
	for i := range s.columns {
		c := &s.columns[i]
		slices.SortStableFunc(c.all, func(a, b filed) int { return cmp.Compare(a.At, b.At) })
		for from := 0; from < len(c.all); {
			to, step := chunkEnd(c.all, from)
			dst = append(dst, c.chunk(c.all[from:to], step))
			from = to
		}
	}
	return dst
}

func (c *put) chunk(all []filed, step int64) table.Chunk {
	chunk := table.Chunk{
		Tasklist: c.Tasklist, Column: c.Column, ReadyAt: all[0].Age, Rank: all[0].At, Step: step, Cost: all[0].cost,
		Triggers: make([]byte, 0, len(all)*ids.TriggerBytes),
	}
	for i := range all {
		chunk.ReadyAt = min(chunk.ReadyAt, all[i].Age)
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
		i, rise := int64(to-from), all[to].At-all[from].At
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
	return to, min(max((all[to-1].At-all[from].At)/int64(to-from-1), least), most)
}

// far tells whether the step to a trigger is much larger than those beside it.
func far(all []filed, from, to int) bool {
	step := func(i int) int64 { // to the i-th
		if i <= from || i >= len(all) {
			return 0
		}
		return all[i].At - all[i-1].At
	}
	return step(to) > rankJump*max(step(to-1), step(to+1), rankStep)
}
