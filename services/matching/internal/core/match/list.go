package match

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
)

// list is one tasklist partition at its shard.
type list struct {
	*limit.List
	shard   *Shard
	domain  *domain
	index   table.Index
	queue   pairing.Queue[*list, grab.Grant]
	missing missing
	idle    idle
	source  source
	node    node
}

// list finds or makes a tasklist, and opens its domain where that is new.
func (s *Shard) list(name table.Tasklist) *list {
	l := s.lists[name]
	if l == nil {
		l = &list{shard: s, domain: s.domain(name.Domain)}
		l.List = limit.NewList(name, l.domain.Domain, &l.index, l)
		l.queue = pairing.NewQueue[*list, grab.Grant](&l.domain.polls)
		s.lists[name] = l
		l.source = source{List: l.List, Of: l, Polls: &l.queue}
		l.domain.Sources = append(l.domain.Sources, &l.source)
		l.node = node{List: l.List, Polls: &l.queue}
		s.tree.Watch(&l.node, l.shape())
	}
	return l
}

// listOf is the tasklist that limits see.
func listOf(l *limit.List) *list { return l.Tasks.(*list) }

// Source is a tasklist as calls see it, Tables are those of its domain.
func (l *list) Source() *source { return &l.source }

// Tables are those of its domain.
func (l *list) Tables() *tablecall.Tables[*list] { return l.domain.Tables }

// polledFor reports whether a poll waits for a type here. One of a tasklist with several partitions may wait in any of them.
func (l *list) polledFor(typ string) bool {
	return l.node.Spread() || l.queue.Takes(typ) || l.queue.WaitsFor(typ)
}

// Called has the tree find out whether polls are left that partitions below may want.
func (l *list) Called() { l.shard.tree.Offer(&l.node) }

// Changed has the parent partition hear of a tasklist soon.
func (l *list) Changed() { l.shard.tree.Report(&l.node) }

// Reconsider looks at the polls whose time is over.
func (l *list) Reconsider() { l.shard.waiting.Reconsider(&l.queue) }

// inUse reports whether something is known of a tasklist, or under way.
func (l *list) inUse() bool {
	return !l.node.Idle() || l.queue.Alive() > 0 || l.source.Undecided > 0 || l.WaitsForSlot() || !l.index.Empty() || !l.source.Idle() || l.source.Putting()
}

// forget drops tasklists and domains that are not used; at once those of a domain that has many: a poll is
// enough to make one, and each sweep looks at all of them.
func (s *Shard) forget() {
	now := s.now.Mono
	s.inOrder = slices.DeleteFunc(s.inOrder, func(d *domain) bool {
		after := idleAfter
		if len(d.Sources) > idleListsMax {
			after = 0
		}
		d.Forget(func(l *list) bool {
			unused := l.idle.after(l.inUse(), now, after)
			if unused {
				delete(s.lists, l.Tasklist)
				s.tree.Forget(&l.node)
			}
			return unused
		})
		d.Forgotten = d.idle.after(d.inUse(), now, idleAfter)
		if d.Forgotten {
			delete(s.domains, d.Name)
		}
		return d.Forgotten
	})
}

// Weights are those of the groups of its domain.
func (l *list) Weights() fairness.Weights { return l.shard.catalog.Weights(l.Domain) }
