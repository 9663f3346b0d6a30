// Package admission decides which submits of a partition come into its state next, and says so in the log.
//
// Owns: how far each lane is read, and each domain or tasklist that is split off one; the steps since the last turn; what tasks
// take of each lane's window; when a place is split off, and when it goes back (decisions 0003, 0022, 0051, 0055).
// Never does: know tasks, read the log or a clock. On failure: a message that is read twice is a defect of the caller and panics.
package admission

import "github.com/yardmaster-io/yardmaster/contracts/ids"

// Gate is what is known of the lanes of one partition.
type Gate struct {
	windows
	// lanes are how far each lane is read.
	lanes     [ids.Lanes]uint64
	congested [ids.Lanes]congestion
	// watched is the queue that was last looked at.
	watched  Queue
	schedule schedule
	budgets
	// steps are those since the last turn. They go into the next one: a takeover takes the same steps between the same turns, so the
	// state is a function of the log. While a turn is being stored there are none, since it would be open on which side of it they lie.
	steps    []Step
	underWay bool
}

// New makes the gate of a partition of which nothing is read.
func New(cfg Config) *Gate {
	if cfg.FullWeight == nil {
		cfg.FullWeight = func(string) FullWeight { return FullWeight{} }
	}
	g := &Gate{
		windows: windows{cfg: cfg, domains: make(map[domainAt]*domain), queues: make(map[Queue]*queue)},
		budgets: budgets{of: cfg.FullWeight, left: make(map[string]float64)},
	}
	g.schedule.budgets = &g.budgets
	return g
}

// StepKind says what a step does to its queue.
type StepKind uint8

// The kinds: its messages up to a sequence are in the state; it is split off its lane, or the queue of its domain; it goes back.
const (
	Read StepKind = iota
	Split
	Merge
)

// Step is one step of how tasks came into the state. A queue without a place is a lane.
type Step struct {
	Queue
	Kind StepKind
	// To is the last message that was read. Of a split it is that of the lane, or of the domain's queue, at that moment.
	To uint64
	// Messages are how many were read, From the last one before these; of other kinds 0.
	From, Messages uint64
}

func (g *Gate) note(s Step) {
	if n := len(g.steps); n > 0 && s.Kind == Read && g.steps[n-1].Kind == Read && g.steps[n-1].Queue == s.Queue {
		g.steps[n-1].To = s.To
		g.steps[n-1].Messages++
		return
	}
	g.steps = append(g.steps, s)
}

// MayAdmit tells whether messages of lanes and queues may be stepped through.
func (g *Gate) MayAdmit() bool { return !g.underWay }

// BeginTurn returns the steps that go into the turn that is appended now.
func (g *Gate) BeginTurn() []Step {
	steps := g.steps
	g.steps, g.underWay = nil, true
	return steps
}

// EndTurn takes in that the turn is stored; not is nil, or the steps of one that never will be.
func (g *Gate) EndTurn(not []Step) { g.steps, g.underWay = not, false }

// Replayed takes in that the steps so far are in the log, in a takeover. It returns how many messages were read since the last call.
func (g *Gate) Replayed() (messages uint64) {
	for _, s := range g.steps {
		messages += s.Messages
	}
	g.steps = nil
	return messages
}

// ReadLevel is how far a queue is read, or a lane.
func (g *Gate) ReadLevel(at Queue) uint64 {
	if q := g.queues[at]; q != nil {
		return q.read
	}
	return g.lanes[at.Lane]
}

// ReadLevels are how far the lanes are read.
func (g *Gate) ReadLevels() [ids.Lanes]uint64 { return g.lanes }
