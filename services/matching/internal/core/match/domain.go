package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
)

// domain is what a shard knows of a domain.
type domain struct {
	*limit.Domain
	// asked: an Open is under way. If the tables did not answer the last time, they are opened again at retryAt.
	asked   bool
	retryAt time.Duration
	// epoch is the present life of its tables.
	epoch string
	// lost: triggers were let go of. They are asked for when the tables are open.
	lost  bool
	lists []*list
	polls pairing.Domain
	// held are chunks that wait until the domain is open, puts those to be stored.
	held, puts []arrived
	// clears are columns to be forgotten.
	clears []table.Place
	// withheld are the groups that are paused: nothing of them is kept here.
	withheld map[string]bool
	// sources are tasklists whose polls may find something.
	sources tablecall.Sources[*list]
	// policies are those of its limits that are full.
	policies overflow.Policies
	// call is under way.
	call *call
	// busy: in turn.busy.
	busy bool
	// idle: it was found without use, since idleSince.
	idle      bool
	idleSince time.Duration
}

// domain finds or makes a domain. A new one is opened, and its limits are counted.
func (s *Shard) domain(name string) *domain {
	d := s.domains[name]
	if d == nil {
		d = &domain{withheld: s.catalog.PausedGroups(name), polls: pairing.Domain{Name: name}}
		d.Domain = limit.NewDomain(&s.limits, name, func() { s.work(d) })
		s.domains[name] = d
		s.inOrder = append(s.inOrder, d)
		s.open(d)
		s.meetLimits(d, s.catalog.Limits(name))
	}
	return d
}

// inUse tells whether forgetting d would lose something: of groups that are paused, that history is to send again what was let go.
// Chunks that wait keep their tasklists.
func (d *domain) inUse() bool {
	return len(d.lists) > 0 || d.call != nil || d.asked || d.lost || len(d.withheld) > 0 || d.Domain.InUse()
}

// unused tells whether d holds nothing, and no one has asked for it in a while.
func (d *domain) unused(now time.Duration) bool {
	switch {
	case d.inUse():
		d.idle = false
	case !d.idle:
		d.idle, d.idleSince = true, now
	}
	return d.idle && now-d.idleSince >= idleAfter
}

// work has a domain's tables called, if there is something to call them for.
func (s *Shard) work(d *domain) {
	if !d.busy {
		d.busy = true
		s.busy = append(s.busy, d)
	}
}

// open asks for the state of a domain's tables.
func (s *Shard) open(d *domain) {
	d.Open = false
	if !d.asked {
		d.asked = true
		s.fx.Opens = append(s.fx.Opens, d.Name)
	}
}

// opened takes over what the tables of a domain hold.
func (s *Shard) opened(o *OpenOutcome) {
	d := s.domains[o.Domain]
	if d == nil || !d.asked {
		return
	}
	d.asked = false
	if o.Failed {
		s.fail(d)
		return
	}
	if o.Opened.Fresh || d.epoch != "" && d.epoch != o.Opened.Epoch {
		// A newer owner may serve the shard: history says so. The tables cannot, and would take what this one says for all that the shard uses.
		s.audit(d, d.Domain.Recount(), true)
	}
	d.Open, d.Down = true, false
	d.lost = d.lost || o.Opened.Fresh || d.epoch != "" && d.epoch != o.Opened.Epoch
	d.epoch = o.Opened.Epoch
	for _, l := range d.lists {
		l.index = table.Index{}
		l.ranks.Clear()
	}
	for _, k := range o.Opened.Columns {
		l := s.list(k.Tasklist)
		s.found(l, &k)
	}
	for _, l := range d.lists {
		s.clearUnknown(l)
	}
	if len(d.withheld) > 0 { // the owner before may not have known, or not have come to it
		s.cleanse(d)
	}
	if d.lost {
		d.lost = false
		s.questions.RetriggerAll(d.Name)
	}
	d.Domain.UnblockAll()
	s.arrivals.All = append(s.arrivals.All, d.held...)
	d.held = nil
	s.restart(d)
}

// restart has the polls of a domain looked at whose tables have changed their state.
func (s *Shard) restart(d *domain) {
	for _, l := range d.lists {
		s.waiting.Reconsider(&l.queue)
		s.tree.Report(&l.node)
	}
	s.markAll(d)
	s.work(d)
}

// fail notes that the tables of a domain do not answer. A trigger that waits for them meets a
// poll, or is let go of.
func (s *Shard) fail(d *domain) {
	d.Open, d.Down, d.retryAt = false, true, s.now.Mono+retryEvery
	s.arrivals.All = append(s.arrivals.All, d.held...)
	s.arrivals.Recall(d.puts, d.unput(func(*arrived) bool { return true }))
	d.held, d.puts = nil, nil
	d.Domain.UnreadAll()
	s.restart(d)
}

// letGo forgets a chunk that nothing can be done for; history is asked for it later.
func (s *Shard) letGo(a *arrived) {
	a.List.domain.lost = true
	s.arrivals.Done(a)
}

// sweepDomain does what is due after a while.
func (s *Shard) sweepDomain(d *domain) {
	if d.Down && !d.asked && d.call == nil && s.now.Mono >= d.retryAt {
		s.open(d)
	}
	s.audit(d, d.Domain.Sweep(), false)
	for _, l := range d.lists {
		s.complain(l)
		s.tree.Sweep(&l.node, s.shape(l))
		l.ranks.Sweep(l.keepsRanks)
	}
	d.Domain.SweepGroups()
	s.sweepPolicies(d)
}

// unput is out, which takes what is to be stored out.
func (d *domain) unput(out func(a *arrived) bool) func(a *arrived) bool {
	return func(a *arrived) bool {
		out := out(a)
		if out {
			a.List.putting--
		}
		return out
	}
}
