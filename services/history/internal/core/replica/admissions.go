package replica

// AdmissionKind says what an admission does to its queue.
type AdmissionKind uint8

// The kinds: its messages up to a sequence are in the state; the domain is split off its lane; it goes back.
const (
	Read AdmissionKind = iota
	Split
	Merge
)

// Admission is one step of how tasks came into the state. A queue without a domain is a lane.
type Admission struct {
	Queue
	Kind AdmissionKind
	// To is the last message that was read. Of a split it is that of the lane at that moment.
	To uint64
}

// admissions are the steps since the last turn. They go into the next one: a takeover takes the same steps between the same turns, so the
// state is a function of the log. While a turn is under way there are none, since it would be open on which side of it they lie.
type admissions struct {
	steps []Admission
	// underWay: a turn is being stored.
	underWay bool
	// unlogged are tasks that came to be sent to another store, by no event. Until the turn that admits them is stored, they stay: who takes over before
	// that admits them again.
	unlogged []*Entry
	// notBefore is when a turn may be asked for again, after the log has refused one, Unix ms.
	notBefore int64
	// admitting: commands that have waited for a task are applied to it as it comes.
	admitting bool
}

// note adds a step.
func (a *admissions) note(s Admission) {
	if n := len(a.steps); n > 0 && s.Kind == Read && a.steps[n-1].Kind == Read && a.steps[n-1].Queue == s.Queue {
		a.steps[n-1].To = s.To
		return
	}
	a.steps = append(a.steps, s)
}

// MayAdmit tells whether messages of lanes and queues may be stepped through.
func (r *Replica) MayAdmit() bool { return !r.admissions.underWay }

// BeginTurn returns the steps that go into the turn that is appended now.
func (r *Replica) BeginTurn() []Admission {
	a := &r.admissions
	steps := a.steps
	a.steps, a.underWay = nil, true
	return steps
}

// turnRefused takes in that the log will not take a turn: its steps go into the next one.
func (r *Replica) turnRefused(steps []Admission, now Now) {
	a := &r.admissions
	a.steps, a.underWay, a.notBefore = steps, false, now.MS+refusedWaitMS
}

// wantTurn tells whether a turn is to be asked for though no event waits for it; due: a snapshot does.
func (a *admissions) wantTurn(due bool, now Now) bool {
	return !a.underWay && now.MS >= a.notBefore && (due || len(a.unlogged) > 0)
}

// admitted takes in that the turn with the steps so far is stored: what they sent elsewhere may go.
func (r *Replica) admitted(now Now) {
	a := &r.admissions
	a.underWay = false
	for _, e := range a.unlogged {
		if !e.left {
			r.dispatch(e, now)
		}
	}
	clear(a.unlogged)
	a.unlogged = a.unlogged[:0]
}

// Replay takes a split or a merge of a turn, in a takeover.
func (r *Replica) Replay(s Admission) {
	switch q := r.queues[s.Queue]; {
	case s.Kind == Split && q == nil:
		r.lag(s.Queue)
	case s.Kind == Merge && q != nil:
		r.endLag(q)
	}
}

// ReadLevel is how far a queue is read, or a lane.
func (r *Replica) ReadLevel(at Queue) uint64 {
	if q := r.queues[at]; q != nil {
		return q.read
	}
	return r.lanes[at.Lane]
}
