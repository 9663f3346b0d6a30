package matchingsim

import (
	"strconv"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Tables is the tables and slots that all shards share. To forget all is what a server does that was restarted,
// whatever snapshot it has read: what was written under another run id is void.
type Tables struct {
	*table.Table
	lives int
}

// NewTables makes tables that hold nothing.
func NewTables() *Tables { return &Tables{Table: table.New()} }

// Open tells how the tables of a shard stand.
func (t *Tables) Open(domain string, shard int) Opened {
	t.lives++
	return t.Table.Open(domain, shard, strconv.Itoa(t.lives))
}

// Drop forgets limits of a domain.
func (t *Tables) Drop(domain string, limits []Ref) {
	for _, ref := range limits {
		t.Table.Drop(domain, ref)
	}
}

// Slots counts the slots in use of a limit.
func (t *Tables) Slots(domain string, limit Ref, now int64) int {
	return t.Table.Slots(domain, []Ref{limit}, now)[0]
}

// GroupSlots counts the slots in use of one group, of a limit per group, at an instant of the store's clock, Unix µs. It asks as a shard
// that there is not.
func (t *Tables) GroupSlots(domain string, perGroup Ref, group string, nowUS int64) int {
	const nobody = 1 << 20
	opened := t.Open(domain, nobody)
	out := t.Do(Call{
		Domain: domain, Shard: nobody, Shards: 1, Epoch: opened.Epoch, Seq: table.Seq{Epoch: 1, Call: uint64(t.lives)},
		Stances: []table.Stance{{Ref: perGroup, PerGroup: table.PerGroup{Count: 1}}, {Ref: perGroup.Of(group), Of: 1, Max: 1}},
	}, nowUS)
	return out.Limits[1].Used
}
