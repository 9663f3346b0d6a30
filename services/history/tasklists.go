package history

import (
	"maps"
	"sync"
	"sync/atomic"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
)

// tasklists is what is set of the tasklists of all domains: those with a cap on their queue (max_queued), or on that of each group
// (max_queued_per_group), and those with several partitions; and the domains with a quota of what waits. Few have any.
type tasklists struct {
	capped atomic.Pointer[backlog.Caps]
	// spread has the tasklists with several partitions. It is not changed once it is made.
	spread atomic.Pointer[map[backlog.Tasklist]int]

	mu         sync.Mutex
	most       map[backlog.Tasklist]int64
	perGroup   map[backlog.Tasklist]int64
	partitions map[backlog.Tasklist]int
	bounded    *catalog.Bounded
	settings   *catalog.Catalog
}

// caps are the tasklists with a cap; nil where there are none.
func (t *tasklists) caps() *backlog.Caps { return t.capped.Load() }

// partitionsOf is how many partitions a tasklist has.
func (t *tasklists) partitionsOf(domain, name string) int {
	all := t.spread.Load()
	if all == nil {
		return 1
	}
	return max(1, (*all)[backlog.Tasklist{Domain: domain, Name: name}])
}

// follow takes over what is set. Changes come to changed.
func (t *tasklists) follow(settings *catalog.Catalog) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settings, t.most, t.perGroup, t.partitions = settings, map[backlog.Tasklist]int64{}, map[backlog.Tasklist]int64{}, map[backlog.Tasklist]int{}
	for _, d := range catalog.Domains.All(settings, "") {
		t.take(d.Name)
	}
	t.show()
}

// changed takes over what is set of a domain.
func (t *tasklists) changed(domain string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.settings == nil {
		return // follow comes
	}
	mostBefore, perGroupBefore, partitionsBefore := maps.Clone(t.most), maps.Clone(t.perGroup), maps.Clone(t.partitions)
	maps.DeleteFunc(t.most, func(l backlog.Tasklist, _ int64) bool { return l.Domain == domain })
	maps.DeleteFunc(t.perGroup, func(l backlog.Tasklist, _ int64) bool { return l.Domain == domain })
	maps.DeleteFunc(t.partitions, func(l backlog.Tasklist, _ int) bool { return l.Domain == domain })
	t.take(domain)
	if t.bounded != t.settings.Bounded() || !maps.Equal(mostBefore, t.most) || !maps.Equal(perGroupBefore, t.perGroup) || !maps.Equal(partitionsBefore, t.partitions) {
		t.show()
	}
}

// take adds the tasklists of a domain.
func (t *tasklists) take(domain string) {
	for _, l := range catalog.Tasklists.All(t.settings, domain) {
		of := backlog.Tasklist{Domain: domain, Name: l.Name}
		if l.MaxQueued > 0 {
			t.most[of] = int64(l.MaxQueued)
		}
		if l.MaxQueuedPerGroup > 0 {
			t.perGroup[of] = int64(l.MaxQueuedPerGroup)
		}
		if n := t.settings.Partitions(domain, l.Name); n > 1 {
			t.partitions[of] = n
		}
	}
}

// show lets others see what is set now.
func (t *tasklists) show() {
	t.bounded = t.settings.Bounded()
	var domains map[string]bool
	if t.bounded != nil {
		domains = make(map[string]bool, len(t.bounded.Quotas))
		for name := range t.bounded.Quotas {
			domains[name] = true
		}
	}
	t.capped.Store(backlog.NewCaps(maps.Clone(t.most), maps.Clone(t.perGroup), domains))
	if len(t.partitions) == 0 {
		t.spread.Store(nil)
		return
	}
	all := maps.Clone(t.partitions)
	t.spread.Store(&all)
}
