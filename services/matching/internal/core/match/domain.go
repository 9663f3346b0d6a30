package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
)

// domain is what a shard knows of a domain.
type domain struct {
	*tablecall.Tables[*list]
	polls pairing.Domain
	// withheld are the groups that are paused: nothing of them is kept here.
	withheld map[string]bool
	idle     idle
}

// domain finds or makes a domain. A new one is opened, and its limits are counted.
func (s *Shard) domain(name string) *domain {
	d := s.domains[name]
	if d == nil {
		d = &domain{withheld: s.catalog.PausedGroups(name), polls: pairing.Domain{Name: name}, Tables: s.calls.NewTables(name)}
		s.domains[name] = d
		s.inOrder = append(s.inOrder, d)
		s.meetLimits(d, s.catalog.Limits(name))
	}
	return d
}

// inUse reports whether forgetting d would lose something: of groups that are paused, that history is to send again what was released.
func (d *domain) inUse() bool { return len(d.withheld) > 0 || d.Tables.InUse() }

// idle is since when something is without use. The zero value is in use.
type idle struct {
	is    bool
	since time.Duration
}

// after reports whether something that is in use, or not, has been without use for so long.
func (i *idle) after(inUse bool, now, after time.Duration) bool {
	if inUse || !i.is {
		*i = idle{!inUse, now}
	}
	return i.is && now-i.since >= after
}

// opened takes over what the tables of a domain contain.
func (s *Shard) opened(o *OpenOutcome) {
	d := s.domains[o.Domain]
	switch {
	case d == nil || !d.Asked():
		return
	case o.Failed:
		d.Fail()
		return
	case d.Renewed(&o.Opened):
		// A newer owner may serve the shard: history says so. The tables cannot, and would take what this one says for all that the shard uses.
		s.audit(d, d.Recount(), true)
	}
	d.Opened(&o.Opened)
	for _, k := range o.Opened.Columns {
		s.list(k.Tasklist).source.Found(&k)
	}
	if len(d.withheld) > 0 || d.HoldsUnknown() { // the owner before may not have known of a pause or a limit, or not have come to it
		s.dealing.StartOver(d.Tables)
	}
	d.Start()
}

// called takes in what became of a call.
func (s *Shard) called(o *CallOutcome) {
	d := s.domains[o.Domain]
	if d == nil {
		return
	}
	freed, restore := d.Called(o.Failed, &o.Outcome)
	if len(freed) > 0 {
		s.fx.Freed = append(s.fx.Freed, LimitHint{Domain: d.Name, Limits: freed})
	}
	s.askForEntries(d, restore)
}

// sweepDomain does what is due after a while.
func (s *Shard) sweepDomain(d *domain) {
	d.Retry()
	s.audit(d, d.Sweep(), false)
	for _, one := range d.Sources {
		l := one.Of
		if starves, full := l.starving(); l.missing.due(s.now.Mono, starves, full) {
			s.fx.Hungry = append(s.fx.Hungry, Hungry{l.Domain, l.Name, l.node.Present()})
		}
		s.tree.Sweep(&l.node, l.shape())
		one.SweepRanks()
	}
	d.SweepGroups()
	if r := d.Policies.Sweep(s.policies, d.Domain, s.cfg.Partitions); r != nil {
		s.questions.AskHolders(d.Name, r)
	}
}
