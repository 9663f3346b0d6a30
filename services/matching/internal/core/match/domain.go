package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// domainState says whether the tables of a domain may be used.
//
//	opening ──► open
//	   ▲         │ memory lost, or no answer
//	   └─────────┘
type domainState uint8

const (
	opening domainState = iota
	open
)

// domain is what a shard knows of a domain.
type domain struct {
	name  string
	state domainState
	// down: the tables did not answer the last time; they are opened again at retryAt.
	// asked: an Open is under way.
	down, asked bool
	retryAt     time.Duration
	// epoch is the present life of its tables.
	epoch string
	// lost: triggers were let go of. They are asked for when the tables are open.
	lost  bool
	lists []*list
	// alive counts its polls that are not answered, named the types in their different sets.
	alive, named int
	// limits by reference and in the order in which they were met. paths finds them by what they cover.
	limits map[table.Ref]*limit
	met    []*limit
	paths  paths
	// puts are chunks to be stored, when the domain is open.
	puts []arrival
	// clears are columns to be forgotten. life counts how often the domain started over: what was under way before is
	// void.
	clears []table.Place
	life   uint64
	// withheld are the groups that are paused: nothing of them is kept here.
	withheld map[string]bool
	// rings are the limits of single groups, some of which are looked at at a time.
	rings [rings]ring
	// dirty are tasklists whose polls may find something, waited limits for whose slots tasklists wait,
	// due limits to be reported.
	dirty  []*list
	waited []*limit
	due    []*limit
	// overflows are limits of which triggers are to be rejected, round asks whose attempts are to make room.
	overflows []*limit
	round     *round
	// call is under way.
	call *call
	// busy: in turn.busy.
	busy bool
	idle idleness
	// gone: it was without use for too long, and is forgotten.
	gone bool
}

// domain finds or makes a domain. A new one is opened, and its limits are counted.
func (s *Shard) domain(name string) *domain {
	d := s.domains[name]
	if d == nil {
		d = &domain{name: name, limits: map[table.Ref]*limit{}, withheld: s.catalog.PausedGroups(name)}
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
	if len(d.lists) > 0 || len(d.due) > 0 || d.call != nil || d.asked || d.lost || len(d.withheld) > 0 {
		return true
	}
	for _, l := range d.met {
		if l.inUse() {
			return true
		}
	}
	return false
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
	d.state = opening
	if !d.asked {
		d.asked = true
		s.fx.Opens = append(s.fx.Opens, d.name)
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
		s.recountAll(d)
	}
	d.state, d.down = open, false
	d.lost = d.lost || o.Opened.Fresh || d.epoch != "" && d.epoch != o.Opened.Epoch
	d.epoch = o.Opened.Epoch
	for _, l := range d.lists {
		l.index = table.Index{}
		clear(l.ranks)
	}
	for _, k := range o.Opened.Columns {
		l := s.list(k.Tasklist)
		s.found(l, &k)
	}
	// The owner before may not have known of a pause or of a limit, or not have come to it.
	if len(d.withheld) > 0 || slices.ContainsFunc(d.lists, (*list).holdsUnknown) {
		s.startOver(d)
	}
	if d.lost {
		d.lost = false
		for p := range s.lanes {
			s.asks.retrigger(p, d.name)
		}
	}
	s.unblockAll(d)
	s.arrivals = append(s.arrivals, d.unqueue()...)
	s.restart(d)
}

// restart has the polls of a domain looked at whose tables have changed their state.
func (s *Shard) restart(d *domain) {
	for _, l := range d.lists {
		s.reconsider(l)
		s.tellUp(l)
	}
	s.markAll(d)
	s.work(d)
}

// fail notes that the tables of a domain do not answer. A trigger that waits for them meets a
// poll, or is let go of.
func (s *Shard) fail(d *domain) {
	d.state, d.down, d.retryAt = opening, true, s.now.Mono+retryEvery
	s.arrivals = append(s.arrivals, d.unqueue()...)
	for _, l := range d.met {
		s.unread(l)
	}
	s.restart(d)
}

// unqueue is what waits to be stored, and waits no more.
func (d *domain) unqueue() []arrival {
	for i := range d.puts {
		d.puts[i].list.putting--
	}
	all := d.puts
	d.puts = nil
	return all
}

// letGo forgets a chunk that nothing can be done for; history is asked for it later.
func (s *Shard) letGo(a *arrival) {
	a.list.domain.lost = true
	s.finishPart(a.from, true)
}

// sweepDomain does what is due after a while.
func (s *Shard) sweepDomain(d *domain) {
	if d.down && !d.asked && d.call == nil && s.now.Mono >= d.retryAt {
		s.open(d)
	}
	var audit []*limit
	for _, l := range d.met {
		if l.unknown > 0 {
			continue
		}
		s.sweepLimit(l)
		s.auditOverdue(l, l)
		if l.auditAt != 0 && s.now.Mono >= l.auditAt && l.auditLeft == 0 {
			audit = append(audit, l)
		}
	}
	s.audit(d, audit, false)
	for _, l := range d.lists {
		s.complain(l)
		s.sweepTree(l)
		for at := range l.ranks {
			l.endRanks(at)
		}
	}
	s.sweepGroups(d)
	s.sweepOverflows(d)
}
