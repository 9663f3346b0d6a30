package dispatch

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"

// Effects are what goes to matching. It may be lost.
type Effects struct {
	Releases []ReleaseGroup
	Triggers []TriggerBatch
	// Sent counts the triggers, Resent those that were sent again.
	Sent, Resent int64
	// TracedTriggers are the tasks with a trace context whose triggers are sent.
	TracedTriggers []*taskstate.Task
}

// Reset empties fx for the next turn and keeps its memory.
func (fx *Effects) Reset() {
	clear(fx.Triggers)
	clear(fx.Releases)
	clear(fx.TracedTriggers)
	*fx = Effects{Releases: fx.Releases[:0], Triggers: fx.Triggers[:0], TracedTriggers: fx.TracedTriggers[:0]}
}

// TriggerBatch is ready tasks of one partition of a tasklist, of one type, priority and cost.
type TriggerBatch struct {
	Shard                  int
	Domain, Tasklist, Type string
	Partition, Priority    int32
	// Cost is how many starts of a rate each of them uses; 0 = 1.
	Cost int32
	// ReadyAt is when the first became ready, Unix ms.
	ReadyAt int64
	// Packed triggers (contracts/ids).
	Packed []byte
	// Groups are the groups of these tasks, each once; GroupAt tells per trigger which one is its own, as an unsigned
	// varint: 0 = none, else its place in Groups, from 1. Both are empty where none has a group.
	Groups  []string
	GroupAt []byte
	// names is what Groups take in a message, in bytes.
	names int
}

// Bytes is about what it takes in a message.
func (g *TriggerBatch) Bytes() int {
	return g.triggerBytes() + len(g.Domain) + len(g.Tasklist) + len(g.Type)
}

// triggerBytes is what of that its triggers take.
func (g *TriggerBatch) triggerBytes() int { return len(g.Packed) + len(g.GroupAt) + g.names }

// ReleaseGroup is attempts that are over and held the same path.
type ReleaseGroup struct {
	Shard        int
	Domain, Type string
	Limits       *taskstate.Path
	// Packed bookings (contracts/ids).
	Packed []byte
}
