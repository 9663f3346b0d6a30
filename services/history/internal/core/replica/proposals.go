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
func (s step) wakeDue() {
	if s.replay != nil {
		return
	}
	for {
		e, ok := s.wake.PopDue(s.now.MS)
		if !ok {
			return
		}
		switch e.State {
		case taskstate.Running:
			if e.MayBeDelivered() && s.now.MS < e.WakeAt()+deliveryWaitMS {
				s.wake.Set(e, s.now.MS+deliveryLookMS)
				continue
			}
			if at := s.still.until(e, s.now); at > s.now.MS {
				s.wake.Set(e, at)
				continue
			}
			s.propose(e, Proposal{Kind: taskstate.Expired, Undelivered: e.BurnsNothing(), NotAfter: e.notAfter(s.now)})
		case taskstate.Backoff: // if not by our clock, then by the log's
			if at := e.LapsesAt(); at == 0 || s.now.MS < at {
				e.CountReady()
				s.trigger(e)
				s.wake.Set(e, at)
				continue
			}
			s.propose(e, Proposal{Kind: taskstate.Lapse})
		case taskstate.Ready:
			s.propose(e, Proposal{Kind: taskstate.Lapse})
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
func (s step) refusedByLog(all []Proposal) {
	for _, p := range all {
		e := s.tasks[p.ID]
		if e == nil || e.left || !e.Position.Same(p.Fence.Position) {
			continue
		}
		e.proposed &^= 1 << p.Kind
		running := e.State == taskstate.Running
		if (p.Kind == taskstate.Expired && running || p.Kind == taskstate.Lapse && !running && e.State.Active()) && e.Token().Same(p.Fence) {
			s.wake.Set(e, s.now.MS+refusedWaitMS)
		}
	}
}

// bounced takes attempts back whose grant was not delivered.
func (s step) bounced(in Bounced) {
	for _, g := range in.Grants {
		e, ok := s.tasks[g.ID]
		if !ok || e.State != taskstate.Running || !e.Token().Same(g.Fence) {
			continue
		}
		if e.SentAgain() {
			continue // a newer owner of the shard sends it again
		}
		s.propose(e, Proposal{Kind: taskstate.Released, Message: "the poller went away"})
		s.fx.Counts.Bounced++
	}
}

// silent proposes that the attempts of workers end that fell silent. The log decides: it refuses that for an attempt that had a
// heartbeat meanwhile, and what it takes too late. Signs of life do not go through the log, so one that stands still is no reason to wait.
func (s step) silent(all []dispatch.WorkerKey) {
	if s.replay != nil || len(all) == 0 {
		return
	}
	for _, t := range s.AttemptsOf(all) {
		e := s.tasks[t.ID]
		s.propose(e, Proposal{
			Kind: taskstate.Expired, Undelivered: e.BurnsNothing(), NotAfter: s.now.MS + standsStillMS, SilentLease: e.WakeAt(),
		})
	}
}
