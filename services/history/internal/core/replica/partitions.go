package replica

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// partitionTurn is which partition of a tasklist tasks are given now.
type partitionTurn struct {
	// of is the turn of the replica in which it was chosen; 0 = none is yet.
	of uint64
	at int32
	// given is how many tasks have got it.
	given int32
}

// partitions is how many a tasklist has.
func (r *Replica) partitions(l *tasklist) int32 {
	if r.cfg.Partitions == nil {
		return 1
	}
	return int32(max(1, min(r.cfg.Partitions(l.key.domain, l.key.tasklist), ids.PartitionsMax)))
}

// partitionFor is the partition that a task of a tasklist is given. Those of one turn of the replica get the same one, as many as make a batch of
// triggers: else each turn would send to all shards, and batches would be small. History partitions begin at different ones.
func (r *Replica) partitionFor(l *tasklist, id ids.TaskID) int32 {
	t := &l.turn
	if t.of == r.turn && t.given < packTriggers {
		t.given++
		return t.at
	}
	first, next := int32(id.Partition()), t.at+1
	if t.of == 0 {
		next = first
	}
	*t = partitionTurn{of: r.turn, at: next % r.partitions(l), given: 1}
	return t.at
}

// relocate moves e, whose trigger is to be sent, out of a partition that is no more.
func (r *Replica) relocate(e *Entry) {
	old := e.column
	l := old.list
	if old.key.partition == 0 {
		return
	}
	n := r.partitions(l)
	if old.key.partition < n {
		return
	}
	if l.turn.at >= n {
		l.turn.given = packTriggers
	}
	key := old.key
	key.partition = r.partitionFor(l, e.ID)
	to := r.columnOf(l, key)
	to.tasks++
	r.stepOut(e)
	e.column = to
}

// runs are the tasks of a tasklist that run, of one shard: those whose attempt holds a slot, and the others.
type runs struct{ booked, unbooked entryList }

// runsAt are those of a shard; nil = there have been none.
func (l *tasklist) runsAt(shard int) *runs {
	if shard == l.shard {
		return &l.here
	}
	return l.elsewhere[uint16(shard)+1]
}

// running is the list that e is in while it runs.
func (e *Entry) running() *entryList {
	l := e.column.list
	at := &l.here
	if shard := e.Attempt.Shard; shard > 0 {
		if at = l.elsewhere[shard]; at == nil {
			at = new(runs)
			if l.elsewhere == nil {
				l.elsewhere = make(map[uint16]*runs)
			}
			l.elsewhere[shard] = at
		}
	}
	if e.booked {
		return &at.booked
	}
	return &at.unbooked
}

// grantedTo notes which shard has the running attempt of e, by its number in the log.
func (r *Replica) grantedTo(e *Entry, number uint32) {
	if e.State != taskstate.Running || number == uint32(e.column.list.shard)+1 || number > uint32(r.cfg.Shards) {
		number = 0
	}
	e.Attempt.Shard = uint16(number)
}

// heldAt is the shard of the attempt of e that runs, or is ending.
func (e *Entry) heldAt() int {
	if e.Attempt.Shard > 0 {
		return int(e.Attempt.Shard) - 1
	}
	return e.column.list.shard
}
