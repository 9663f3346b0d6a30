package dispatch

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// PackTriggers is how many triggers matching stores together, under one age. A batch may have more where all are of the
// same age.
const PackTriggers = 128

// partitions is how many a tasklist has.
func (x *Lists) partitions(l *tasklist) int32 {
	if x.cfg.Partitions == nil {
		return 1
	}
	return int32(max(1, min(x.cfg.Partitions(l.key.domain, l.key.tasklist), ids.PartitionsMax)))
}

// partitionFor is the partition that a task of a tasklist is given. Those of one turn get the same one, as many as make a batch of
// triggers: else each turn would send to all shards, and batches would be small. History partitions begin at different ones.
func (x *Lists) partitionFor(l *tasklist, id ids.TaskID) int32 {
	t := &l.turn
	if t.of == x.turn && t.given < PackTriggers {
		t.given++
		return t.at
	}
	first, next := int32(id.Partition()), t.at+1
	if t.of == 0 {
		next = first
	}
	*t = partitionTurn{of: x.turn, at: next % x.partitions(l), given: 1}
	return t.at
}

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

// GrantedTo notes which shard has the running attempt of e, by its number in the log.
func (x *Lists) GrantedTo(e *Entry, number uint32) {
	if e.State != taskstate.Running || number == uint32(e.column.list.shard)+1 || number > uint32(x.cfg.Shards) {
		number = 0
	}
	e.Attempt.Shard = uint16(number)
}

// attemptShard is the shard of the attempt of e that runs, or is ending.
func (e *Entry) attemptShard() int {
	if e.Attempt.Shard > 0 {
		return int(e.Attempt.Shard) - 1
	}
	return e.column.list.shard
}
