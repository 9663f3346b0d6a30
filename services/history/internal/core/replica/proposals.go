package replica

import "github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"

// wakeDue looks at the tasks whose lease or wait is over by our clock. The log decides: a lease
// that is over is proposed to it, once at a time.
func (r *Replica) wakeDue(now Now, fx *Effects) {
	if r.replay != nil {
		return
	}
	for {
		e, ok := r.wake.PopDue(now.MS)
		if !ok {
			return
		}
		switch e.State {
		case taskstate.Running:
			r.propose(e, taskstate.Expired, "")
		case taskstate.Backoff: // if not by our clock, then by the log's
			r.trigger(e, now, fx)
		}
	}
}

// propose asks the log for an event about the running attempt, unless that is under way.
func (r *Replica) propose(e *Entry, kind taskstate.Kind, message string) {
	if e.proposed&(1<<kind) != 0 {
		return
	}
	e.proposed |= 1 << kind
	r.own = append(r.own, Proposal{Kind: kind, ID: e.ID, Fence: e.Token(), Message: message})
}

// refusedWaitMS is how soon a lease that is over is proposed again that the log has refused.
const refusedWaitMS = 10_000

// refusedByLog lets what the log does not take be proposed again: a state to be carried when it is
// due, a lease after a while.
func (r *Replica) refusedByLog(all []Proposal, now Now) {
	for _, p := range all {
		e := r.tasks[p.ID]
		if e == nil || e.left || e.Position != p.Fence.Position {
			continue
		}
		if e.proposed &^= 1 << p.Kind; p.Kind == taskstate.Expired && e.State == taskstate.Running && e.Token() == p.Fence {
			r.wake.Set(e, now.MS+refusedWaitMS)
		}
	}
}

// bounced takes attempts back whose grant reached nobody.
func (r *Replica) bounced(in Bounced, fx *Effects) {
	for _, g := range in.Grants {
		e, ok := r.tasks[g.ID]
		if !ok || e.State != taskstate.Running || e.Token() != g.Fence {
			continue
		}
		r.propose(e, taskstate.Released, "the poller went away")
		fx.Counts.Bounced++
	}
}
