package replica

import (
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

const (
	// deliveryWaitMS is how long a lease that is over waits for the word that its grant was delivered,
	// or for the shard's next owner: a living shard says so within half a second, a dead one has
	// another owner within 2 s. deliveryLookMS is how often it is looked at meanwhile.
	deliveryWaitMS = 2500
	deliveryLookMS = 100
)

// wakeDue looks at the tasks whose lease, wait or time is over by our clock. The log decides: a lease or
// a time that is over is proposed to it, once at a time.
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
			if e.MayBeDelivered() && now.MS < e.WakeAt()+deliveryWaitMS {
				r.wake.Set(e, now.MS+deliveryLookMS)
				continue
			}
			if at := r.still.until(e, now); at > now.MS {
				r.wake.Set(e, at)
				continue
			}
			r.propose(e, Proposal{Kind: taskstate.Expired, Undelivered: e.BurnsNothing(), NotAfter: e.notAfter(now)})
		case taskstate.Backoff: // if not by our clock, then by the log's
			if at := e.LapsesAt(); at == 0 || now.MS < at {
				e.CountReady()
				r.trigger(e, now, fx)
				r.wake.Set(e, at)
				continue
			}
			r.propose(e, Proposal{Kind: taskstate.Lapse})
		case taskstate.Ready:
			r.propose(e, Proposal{Kind: taskstate.Lapse})
		}
	}
}

// propose asks the log for an event about the current attempt, or the lack of one, unless that is under way.
func (r *Replica) propose(e *Entry, p Proposal) {
	if e.proposed&(1<<p.Kind) != 0 {
		return
	}
	e.proposed |= 1 << p.Kind
	p.ID, p.Fence, p.Domain = e.ID, e.Token(), e.Domain
	r.own = append(r.own, p)
}

// refusedWaitMS is how soon a lease or a time that is over is proposed again that the log has refused.
const refusedWaitMS = 10_000

// refusedByLog lets what the log does not take be proposed again after a while.
func (r *Replica) refusedByLog(all []Proposal, now Now) {
	for _, p := range all {
		e := r.tasks[p.ID]
		if e == nil || e.left || !e.Position.Same(p.Fence.Position) {
			continue
		}
		e.proposed &^= 1 << p.Kind
		running := e.State == taskstate.Running
		if (p.Kind == taskstate.Expired && running || p.Kind == taskstate.Lapse && !running && e.State.Active()) && e.Token().Same(p.Fence) {
			r.wake.Set(e, now.MS+refusedWaitMS)
		}
	}
}

// bounced takes attempts back whose grant was not delivered.
func (r *Replica) bounced(in Bounced, fx *Effects) {
	for _, g := range in.Grants {
		e, ok := r.tasks[g.ID]
		if !ok || e.State != taskstate.Running || !e.Token().Same(g.Fence) {
			continue
		}
		if e.SentAgain() {
			continue // a newer owner of the shard sends it again
		}
		r.propose(e, Proposal{Kind: taskstate.Released, Message: "the poller went away"})
		fx.Counts.Bounced++
	}
}

// silent proposes that the attempts of workers end that fell silent. The log decides: it refuses that for an attempt that had a
// heartbeat meanwhile, and what it takes too late. Signs of life do not go through the log, so one that stands still is no reason to wait.
func (r *Replica) silent(all []dispatch.WorkerKey, now Now) {
	if r.replay != nil || len(all) == 0 {
		return
	}
	for _, t := range r.AttemptsOf(all) {
		e := r.tasks[t.ID]
		r.propose(e, Proposal{
			Kind: taskstate.Expired, Undelivered: e.BurnsNothing(), NotAfter: now.MS + standsStillMS, SilentLease: e.WakeAt(),
		})
	}
}
