package catalog

import (
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Domain returns the domain of this name. The result is read-only.
func (c *Catalog) Domain(name string) (*yardv1.Domain, bool) {
	d, ok := c.now.Load().domains[name]
	return d, ok
}

// Domains returns all domains, sorted by name. They are read-only, the slice is not.
func (c *Catalog) Domains() []*yardv1.Domain {
	return sorted(c.now.Load().domains)
}

// Type returns the settings of a task type; a type without any is not there. The
// result is read-only.
func (c *Catalog) Type(domain, name string) (*yardv1.TaskType, bool) {
	t, ok := c.now.Load().types[domain][name]
	return t, ok
}

// Types returns all task types of a domain that have settings, sorted by name.
// They are read-only, the slice is not.
func (c *Catalog) Types(domain string) []*yardv1.TaskType {
	return sorted(c.now.Load().types[domain])
}

// Tasklist returns the settings of a tasklist; one without any is not there. The
// result is read-only.
func (c *Catalog) Tasklist(domain, name string) (*yardv1.Tasklist, bool) {
	l, ok := c.now.Load().tasklists[domain][name]
	return l, ok
}

// Tasklists returns the settings of all tasklists of a domain that have any, sorted by
// name. They are read-only, the slice is not.
func (c *Catalog) Tasklists(domain string) []*yardv1.Tasklist {
	return sorted(c.now.Load().tasklists[domain])
}

// Limit returns a limit that types of a domain share. The result is read-only.
func (c *Catalog) Limit(domain, name string) (*yardv1.Limit, bool) {
	l, ok := c.now.Load().limits[domain][name]
	return l, ok
}

// Limits returns all limits that types of a domain share, sorted by name. They are read-only, the slice is not.
func (c *Catalog) Limits(domain string) []*yardv1.Limit {
	return sorted(c.now.Load().limits[domain])
}

// Group returns the settings of a group; one without any is not there. The result is read-only.
func (c *Catalog) Group(domain, name string) (*yardv1.Group, bool) {
	g, ok := c.now.Load().groups[domain][name]
	return g, ok
}

// Groups returns the settings of all groups of a domain that have any, sorted by name. They are read-only, the slice is not.
func (c *Catalog) Groups(domain string) []*yardv1.Group {
	return sorted(c.now.Load().groups[domain])
}

// Counts is how many of each kind of a domain have settings.
type Counts struct{ Types, Tasklists, Limits, Groups int }

// Counts counts the settings of a domain, without a look at each.
func (c *Catalog) Counts(domain string) Counts {
	s := c.now.Load()
	return Counts{len(s.types[domain]), len(s.tasklists[domain]), len(s.limits[domain]), len(s.groups[domain])}
}

// Weights returns the weights of a domain's groups that are not 1, by name. They are read-only.
func (c *Catalog) Weights(domain string) map[string]float64 { return c.now.Load().weights[domain] }

// GroupLimits returns how many attempts of a domain's groups may run at once that have a number of their own, by name. They are
// read-only.
func (c *Catalog) GroupLimits(domain string) map[string]int { return c.now.Load().groupLimits[domain] }

// PausedTasklist returns the pause of a tasklist, which may be over by now, or nil. The result is read-only.
func (c *Catalog) PausedTasklist(domain, name string) *yardv1.Pause {
	return c.now.Load().pauses.lists[domain][name]
}

// PausedType is PausedTasklist for a task type.
func (c *Catalog) PausedType(domain, name string) *yardv1.Pause {
	return c.now.Load().pauses.types[domain][name]
}

// PausedGroup is PausedTasklist for a group.
func (c *Catalog) PausedGroup(domain, name string) *yardv1.Pause {
	return c.now.Load().pauses.groups[domain][name]
}

// Pauses returns those of a domain that are not over at an instant, Unix ms. They are read-only, the maps are not.
func (c *Catalog) Pauses(domain string, nowMS int64) Stopped {
	return c.now.Load().pauses.of(domain, nowMS)
}

// DrainedTasklist returns the drain of a tasklist, which may be over by now, or nil. The result is read-only.
func (c *Catalog) DrainedTasklist(domain, name string) *yardv1.Pause {
	return c.now.Load().drains.lists[domain][name]
}

// DrainedType is DrainedTasklist for a task type.
func (c *Catalog) DrainedType(domain, name string) *yardv1.Pause {
	return c.now.Load().drains.types[domain][name]
}

// DrainedGroup is DrainedTasklist for a group.
func (c *Catalog) DrainedGroup(domain, name string) *yardv1.Pause {
	return c.now.Load().drains.groups[domain][name]
}

// Drains is Pauses for drains.
func (c *Catalog) Drains(domain string, nowMS int64) Stopped {
	return c.now.Load().drains.of(domain, nowMS)
}

// PauseEnds tells, by domain, when its next pause ends by itself after an instant, Unix ms.
func (c *Catalog) PauseEnds(nowMS int64) map[string]int64 {
	s, ends := c.now.Load(), map[string]int64{}
	for _, all := range s.pauses.all() {
		for domain, pauses := range all {
			for _, p := range pauses {
				if at, known := ends[domain]; p.UntilMs > nowMS && (!known || p.UntilMs < at) {
					ends[domain] = p.UntilMs
				}
			}
		}
	}
	return ends
}

// Paused tells whether a pause or a drain holds at an instant, Unix ms.
func Paused(p *yardv1.Pause, nowMS int64) bool {
	return p != nil && (p.UntilMs == 0 || nowMS < p.UntilMs)
}

func sorted[M any](m map[string]M) []M {
	all := make([]M, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[name])
	}
	return all
}
