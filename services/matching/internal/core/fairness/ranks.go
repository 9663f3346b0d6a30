package fairness

import (
	"maps"
	"math"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// rankStep is by how much the ranks of a group of weight 1 differ.
	rankStep = 10_000
	// weightMin is the least weight but for 0.
	weightMin = 0.01
	// IdleFrom is where the ranks of groups of weight 0 begin, and their ages: behind all others, and below 2^53.
	IdleFrom = 1 << 52
	// groupsKeptMin is how many groups of a column are known before those are looked for that are behind.
	groupsKeptMin = 64
	// rankOff is by how many places triggers of a chunk may stand before or behind where they are.
	rankOff = 8
	// rankJump is how much larger than those beside it a step between two ranks is at which a chunk is cut: within a chunk
	// all steps count as equal.
	rankJump = 8
)

// Weights are those of a domain's groups, of at least 0; the others have 1.
type Weights map[string]float64

// Idle reports whether triggers of a group come behind those of all other groups.
func (w Weights) Idle(group string) bool { return w.of(group) == 0 }

// Step is by how much the ranks of a column of one group differ.
func (w Weights) Step(at table.Column) int64 { return stepOf(w.of(groupOf(at))) }

func (w Weights) of(group string) float64 {
	if weight, ok := w[group]; ok {
		return weight
	}
	return 1
}

// stepOf is by how much the ranks of a group differ.
func stepOf(weight float64) int64 { return max(1, int64(math.Round(rankStep/max(weight, weightMin)))) }

// groupOf is the group of a column's tasks; "" = none, or several.
func groupOf(at table.Column) string {
	if at.Group == table.NoGroup {
		return ""
	}
	return at.Group
}

// Rank is where one trigger stands in its column, and how old it counts as.
type Rank struct{ At, Age int64 }

// Ranks are those of a tasklist's columns that groups share, while something waits there. The zero value is ready for use.
type Ranks struct {
	lines map[table.Column]*line
}

// Shared is the column whose ranks a column has: all groups of a priority and type have one virtual time.
func Shared(at table.Column) table.Column {
	if at.Group == "" {
		return at
	}
	return at.Any()
}

func (r *Ranks) line(at table.Column) *line { return r.lines[Shared(at)] }

func (r *Ranks) add(at table.Column) *line {
	if r.lines == nil {
		r.lines = map[table.Column]*line{}
	}
	t := &line{}
	r.lines[Shared(at)] = t
	return t
}

// Assign assigns ranks to the triggers of a chunk that is to be stored, if groups share its column; else it returns nil. groups are theirs,
// in their order; nil = none has one. head is the age of the first trigger that waits in the column, 0 = of none. The age of the chunk
// becomes that of its oldest trigger. A trigger that comes before others of its column has their age, too: else those would wait for
// the columns that it has to wait for.
func (r *Ranks) Assign(c *table.Chunk, groups []string, head int64, weights Weights) []Rank {
	if head == 0 || head >= IdleFrom {
		head = c.ReadyAt
	}
	t := r.line(c.Column)
	if t == nil {
		if groups == nil && c.Group == "" {
			return nil
		}
		t = r.add(c.Column)
	}
	if t.now == 0 {
		t.begin(head)
	}
	ranks := make([]Rank, c.Len())
	own := c.ReadyAt
	for i := range ranks {
		group := groupOf(c.Column)
		if groups != nil {
			group = groups[i]
		}
		last, age := t.last, own
		at := t.assign(group, weights.of(group), c.Starts())
		if at < last {
			age = min(own, head)
		}
		ranks[i] = Rank{at, age}
		c.ReadyAt = min(c.ReadyAt, age)
	}
	return ranks
}

// Found notes a column that the tables hold: what comes next of its group follows what waits.
func (r *Ranks) Found(k *table.Known, step int64) {
	if k.Rank == 0 || k.Rank >= IdleFrom {
		return
	}
	t := r.line(k.Column)
	switch {
	case t == nil:
		t = r.add(k.Column)
		t.begin(k.Rank)
	case k.Rank < t.now:
		t.now = k.Rank
	}
	if k.Group != "" {
		t.next[groupOf(k.Column)] = k.Rank + int64(k.Triggers)*step
	}
}

// Taken notes that a chunk was taken out of the table, shift behind the ranks that it has there.
func (r *Ranks) Taken(c *table.Chunk, shift int64) {
	if t := r.line(c.Column); t != nil && t.now > 0 && c.Rank < IdleFrom && c.Len() > 0 {
		t.now = max(t.now, c.Rank+int64(c.Len()-1)*c.Step+shift)
	}
}

// Aside notes that a trigger is put aside.
func (r *Ranks) Aside(at table.Column, rank int64) {
	if t := r.line(at); t != nil && rank != 0 && rank < IdleFrom && (t.aside == 0 || rank < t.aside) {
		t.aside = rank
	}
}

// Back notes that what was put aside comes back, with its rank: the virtual time goes back to it. A chunk that another partition has
// aside is noted again with its next trigger.
func (r *Ranks) Back(at table.Column) {
	if t := r.line(at); t != nil && t.aside != 0 {
		t.now, t.aside = min(t.now, t.aside), 0
	}
}

// Now is the virtual time of a column; 0 = nothing waits.
func (r *Ranks) Now(at table.Column) int64 {
	if t := r.line(at); t != nil {
		return t.now
	}
	return 0
}

// Sweep forgets the groups of columns of which waits is false: who comes next waits for no one. It is remembered that such a column has
// some, so that a flood without a group is not taken for the only one.
func (r *Ranks) Sweep(waits func(at table.Column) bool) {
	for at, t := range r.lines {
		if !waits(at) {
			*t = line{}
		}
	}
}

// End is Sweep for one column.
func (r *Ranks) End(at table.Column, waits func(at table.Column) bool) {
	if t := r.line(at); t != nil && !waits(Shared(at)) {
		*t = line{}
	}
}

// Clear forgets all columns.
func (r *Ranks) Clear() { clear(r.lines) }

// line gives triggers of one column their ranks, by start-time fair queueing: that of a group's trigger is the
// virtual time, which is the rank of what was taken last, or follows that of the trigger before by a step that is the smaller
// the greater the group's weight. So a group that waits with a hundred thousand tasks holds another up by one of them.
type line struct {
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
func (t *line) begin(now int64) {
	*t = line{now: now, next: map[string]int64{}, sweepAt: groupsKeptMin}
}

// assign returns the rank of one more trigger of a group, which counts as several if it uses several starts of a rate. Behind 2^52 all are equal.
func (t *line) assign(group string, weight float64, starts int) int64 {
	rank := max(t.now, t.next[group])
	if t.aside != 0 {
		rank = max(min(t.now, t.aside), t.next[group])
	}
	t.next[group] = min(rank+stepOf(weight)*int64(starts), IdleFrom-1)
	t.last = max(t.last, rank)
	if len(t.next) >= t.sweepAt {
		maps.DeleteFunc(t.next, func(_ string, next int64) bool { return next <= t.now })
		t.sweepAt = max(2*len(t.next), groupsKeptMin)
	}
	return rank
}
