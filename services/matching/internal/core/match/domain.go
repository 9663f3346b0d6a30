package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
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
	polls pairing.Domain
	// limits by reference and in the order in which they were met. paths finds them by what they cover.
	limits map[table.Ref]*limit
	met    []*limit
	paths  paths
	// held are chunks that wait until the domain is open, puts those to be stored.
	held, puts []arrival
	// clears are columns to be forgotten.
	clears []table.Place
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
	// idle: it was found without use, since idleSince; then gone.
	idle, gone bool
	idleSince  time.Duration
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
		for p := range s.lanes {
			s.retrigger(p, d.name)
		}
	}
	s.unblockAll(d)
	s.arrivals = append(s.arrivals, d.held...)
	d.held = nil
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
	s.arrivals = append(s.arrivals, d.held...)
	for _, a := range d.puts {
		a.list.putting--
		s.arrivals = append(s.arrivals, a)
	}
	d.held, d.puts = nil, nil
	for _, l := range d.met {
		s.unread(l)
	}
	s.restart(d)
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
		if l.auditAt != 0 && s.now.Mono >= l.auditAt && !l.auditing {
			audit = append(audit, l)
		}
	}
	s.audit(d, audit, false)
	for _, l := range d.lists {
		s.complain(l)
		s.sweepTree(l)
		l.ranks.Sweep(l.keepsRanks)
	}
	s.sweepGroups(d)
	s.sweepOverflows(d)
}
