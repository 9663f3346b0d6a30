package partition

import (
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/deadline"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// entry is one task in memory with what the owner keeps about it.
type entry struct {
	taskstate.Task
	lease deadline.Entry
	list  *tasklist
	// column is where its triggers stand in line.
	column *column
	// index is its place in the message it was submitted with.
	index int32
	// counted is the state under which list counts the task.
	counted taskstate.State
	// triggeredAt is when its trigger was last sent, Unix ms.
	triggeredAt int64
	// parkedBy is the log record that sent the task to the timer store.
	parkedBy source
	// carriedAsOf, where not 0, is the last event seen by the state that was rewritten
	// at the log's tail: the submit pins the log no more, this does.
	carriedAsOf uint64
	// cancels wait until the task's way into the timer store is over.
	cancels []waitingVerdict
	// gone: superseded by a later stay of the same task.
	gone bool
}

// source is a record of the log: an event, or a submit of a lane.
type source struct {
	event bool
	lane  ids.Lane
	seq   uint64
}

type waitingVerdict struct {
	event  taskstate.Event
	seq    uint64
	at     int64
	answer *answer
	index  int
}

type tasklistKey struct{ domain, tasklist string }

// tasklist counts the tasks of one tasklist in this partition.
type tasklist struct {
	key    tasklistKey
	shard  int
	active [taskstate.Cancelled + 1]int64
	// Ends since this owner took over.
	completed, failed, dead int64
	columns                 map[columnKey]*column
}

// column is the tasks of one type and priority of a tasklist: matching grants
// them in the order in which they became ready.
type column struct {
	// grantedReadyAt is the latest ReadyAt among those granted. A task that was ready well
	// before, and was not granted, has been overtaken: its trigger is lost.
	grantedReadyAt int64
}

type columnKey struct {
	taskType string
	priority int32
}

// lineUp files e under its tasklist and column.
func (o *Owner) lineUp(e *entry) {
	e.list = o.tasklist(e.Domain, e.Tasklist)
	key := columnKey{e.Type, e.Priority}
	if e.column = e.list.columns[key]; e.column == nil {
		e.column = &column{}
		e.list.columns[key] = e.column
	}
}

// recount moves e to the count of its current state.
func (e *entry) recount() {
	if e.counted == e.State {
		return
	}
	if e.counted != taskstate.None {
		e.list.active[e.counted]--
	}
	e.counted = e.State
	if e.counted.Finished() {
		e.counted = taskstate.None
	}
	if e.counted != taskstate.None {
		e.list.active[e.counted]++
	}
}

func (e *entry) uncount() {
	if e.counted != taskstate.None {
		e.list.active[e.counted]--
		e.counted = taskstate.None
	}
}

// tasklist finds or makes the counts of a tasklist.
func (o *Owner) tasklist(domain, name string) *tasklist {
	key := tasklistKey{domain, name}
	l, ok := o.lists[key]
	if !ok {
		l = &tasklist{
			key: key, shard: ids.MatchingShard(domain, name, 0, o.Shards), columns: make(map[columnKey]*column),
		}
		o.lists[key] = l
	}
	return l
}
