package table

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// Priorities: 1 is the most urgent.
const (
	PriorityFirst = 1
	PriorityLast  = 5
	// PriorityIdle is that of groups of weight 0: they start when nothing else is ready.
	PriorityIdle = PriorityLast + 1
)

// ChunkTriggersMax is how many triggers a chunk holds at most. Larger ones make a
// column's order coarser and cost more to put back when partly used.
const ChunkTriggersMax = 128

// Tasklist names one partition of a tasklist.
type Tasklist struct {
	Domain    string
	Name      string
	Partition int
}

// Column names a column of a tasklist's table: what is ordered by age only, or by rank.
type Column struct {
	Priority int
	Type     string
	// Group is that of all its tasks, of a type that some limit counts per group; NoGroup = they have none. Empty = a column of
	// all tasks of the type, whatever their groups.
	Group string
}

// compare orders columns by priority, type and group.
func (c Column) compare(o Column) int {
	return cmp.Or(cmp.Compare(c.Priority, o.Priority), strings.Compare(c.Type, o.Type), strings.Compare(c.Group, o.Group))
}

// Groups that no task has: none is called so.
const (
	// NoGroup is that of tasks without one, in a column of their own.
	NoGroup = "/"
	// AnyGroup stands for all columns of a priority and type that have a group. No column is called so.
	AnyGroup = "*"
)

// Any stands for all columns of its priority and type that have a group.
func (c Column) Any() Column { return Column{Priority: c.Priority, Type: c.Type, Group: AnyGroup} }

// Chunk is up to ChunkTriggersMax triggers of one column, packed (contracts/ids),
// that are stored and mostly taken together.
type Chunk struct {
	Tasklist
	Column
	// ReadyAt is its age: when its first trigger became ready, Unix µs, which what is left of a partly used chunk
	// keeps. Columns are taken in the order of their heads' ages.
	ReadyAt int64
	// Rank is its place in a column that groups share: the virtual time of its first trigger, and Step how much later
	// each of the others is than the one before. Both are below 2^53. 0 = its age is its place.
	Rank, Step int64
	// Cost is how many starts of a rate each of its triggers uses, 2..CostMax; 0 = 1.
	Cost     int
	Triggers []byte
}

// CostMax is how many starts of a rate one trigger may use.
const CostMax = 1000

// Starts is how many starts of a rate each of its triggers uses.
func (c *Chunk) Starts() int { return max(c.Cost, 1) }

// Cost is what a chunk says of triggers that use n starts each.
func Cost(n int) int {
	if n <= 1 {
		return 0
	}
	return min(n, CostMax)
}

// Place is where it stands in its column.
func (c *Chunk) Place() int64 {
	if c.Rank != 0 {
		return c.Rank
	}
	return c.ReadyAt
}

// Drop takes the first n triggers out.
func (c *Chunk) Drop(n int) {
	c.Rank += int64(n) * c.Step
	c.Triggers = c.Triggers[n*ids.TriggerBytes:]
}

// Rest is what of a batch's chunk was read ahead, as a chunk of its own.
func (b *Batch) Rest() Chunk {
	c := b.Chunk
	c.Drop(c.Len())
	c.Triggers = b.Ahead
	return c
}

// Trigger is the i-th trigger, packed.
func (c *Chunk) Trigger(i int) []byte { return c.Triggers[i*ids.TriggerBytes : (i+1)*ids.TriggerBytes] }

// Len is the number of triggers.
func (c Chunk) Len() int { return len(c.Triggers) / ids.TriggerBytes }

// The end of a packed chunk, behind its triggers, big-endian: its age and its step if it has a rank, then its cost if that is more
// than 1. A trigger has 28 bytes, so what is left over tells which.
const (
	rankBytes = 16
	costBytes = 4
)

// Packed is a chunk as it is stored, at its place: its triggers, and what follows them.
func (c *Chunk) Packed() []byte {
	if c.Rank == 0 && c.Cost <= 1 {
		return c.Triggers
	}
	b := slices.Clip(c.Triggers)
	if c.Rank != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(c.ReadyAt))
		b = binary.BigEndian.AppendUint64(b, uint64(c.Step))
	}
	if c.Cost > 1 {
		b = binary.BigEndian.AppendUint32(b, uint32(c.Cost))
	}
	return b
}

// Unpack reads what was stored at a place, but for tasklist and column.
func Unpack(place int64, packed []byte) Chunk {
	n := len(packed) - len(packed)%ids.TriggerBytes
	c, tail := Chunk{ReadyAt: place, Triggers: packed[:n:n]}, packed[n:]
	switch len(tail) {
	case rankBytes, rankBytes + costBytes:
		c.ReadyAt, c.Rank, c.Step = int64(binary.BigEndian.Uint64(tail)), place, int64(binary.BigEndian.Uint64(tail[8:]))
		tail = tail[rankBytes:]
	}
	if len(tail) == costBytes {
		c.Cost = int(binary.BigEndian.Uint32(tail))
	}
	return c
}

// Candidate is a column that may hold triggers for a want.
type Candidate struct {
	Column
	// Head is the ReadyAt of its oldest chunk as far as is known; it is trusted as
	// a lower bound, so a wrong one costs order and nothing else.
	Head int64
	// Path are the limits that each of its triggers needs a slot of, as indexes into
	// Call.Stances, in the order in which they are asked; empty = no limit.
	Path []int
	// Most makes it one of those of a type that take turns by rank, which only the shard's owner knows: Head counts as its
	// age all the time, of several with the same Head one follows another, and no more than Most are taken. 0 = it is none.
	Most int
}

// Want asks for triggers of one tasklist, of the domain of its Call.
type Want struct {
	Tasklist
	// N is how many at most.
	N int
	// Ahead is how many more may be taken without slots: the rest of a chunk that a limit does not let
	// through. To leave it means to cut the chunk, which costs more than all else.
	Ahead int
	// Candidates by priority, and those of one by head. Their priorities come in the order in which they stand here. No other column is looked at.
	Candidates []Candidate
}

// Taken is what a want got.
type Taken struct {
	Batches []Batch
	// Heads are the columns looked at as they are now.
	Heads []Head
	// Blocked are the limits for which candidates that were looked at have triggers left,
	// each once, in the order in which they were met.
	Blocked []Blocked
}

// Batch is triggers taken from one chunk.
type Batch struct {
	// Chunk is those that have slots.
	Chunk
	// From is its candidate's index.
	From int
	// Booked: each has a slot of every limit of its candidate's path.
	Booked bool
	// Ahead is the rest of the chunk, read ahead: it has no slots.
	Ahead []byte
}

// Head is the first chunk of a column. Those of a want are in the order of its candidates.
type Head struct {
	Column
	ReadyAt int64
	// Rank is as in Chunk; 0 also where the column was not looked at.
	Rank int64
	// Empty: the column holds nothing, and ReadyAt says nothing.
	Empty bool
	// Gone is how many triggers this want took out of the column, those ahead included.
	Gone int
}

// Known is a column as a new owner finds it.
type Known struct {
	Tasklist
	Column
	ReadyAt int64
	// Rank is that of its first chunk; 0 = no groups share it.
	Rank     int64
	Triggers int
}

// Opened is how a shard finds its tables of a domain.
type Opened struct {
	// Epoch names their present life; never empty.
	Epoch string
	// Fresh: this Open began that life. The triggers that were in the table before are lost.
	Fresh bool
	// Columns are in order of tasklist, priority and type.
	Columns []Known
}
