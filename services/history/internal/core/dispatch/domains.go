package dispatch

import (
	"iter"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// DomainLists are the tasklists by domain.
type DomainLists struct{ domains map[string]*domain }

// domain is the tasklists of one domain, in any order.
type domain struct{ lists []*tasklist }

func (d DomainLists) add(l *tasklist) {
	of := d.domains[l.key.domain]
	if of == nil {
		of = &domain{}
		d.domains[l.key.domain] = of
	}
	l.ofDomain = len(of.lists)
	of.lists = append(of.lists, l)
}

func (d DomainLists) remove(l *tasklist) {
	of := d.domains[l.key.domain]
	last := len(of.lists) - 1
	of.lists[l.ofDomain] = of.lists[last]
	of.lists[l.ofDomain].ofDomain = l.ofDomain
	of.lists[last] = nil
	if of.lists = of.lists[:last]; last == 0 {
		delete(d.domains, l.key.domain)
	}
}

// CountWaiting is how many tasks each of some domains has that wait for their first or next attempt, or for the timer store; if any does.
func (d DomainLists) CountWaiting(wanted map[string]bool) iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		visit := func(name string, of *domain) bool {
			n := int64(0)
			for _, l := range of.lists {
				n += l.active[taskstate.Waiting] + l.active[taskstate.Ready] + l.active[taskstate.Backoff]
			}
			return n == 0 || yield(name, n)
		}
		if len(wanted) < len(d.domains) { // the shorter way
			for name := range wanted {
				if of := d.domains[name]; of != nil && !visit(name, of) {
					return
				}
			}
			return
		}
		for name, of := range d.domains {
			if wanted[name] && !visit(name, of) {
				return
			}
		}
	}
}
