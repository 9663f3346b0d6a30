package gateway

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// memCatalog is a catalog whose writes arrive at once.
type memCatalog struct {
	mu      sync.Mutex
	domains map[string]*yardv1.Domain
	types   map[string]*yardv1.TaskType
	lists   map[string]*yardv1.Tasklist
	// limits are what this frontend knows, stored what is written; one that was just put elsewhere is in stored only.
	limits, stored map[string]*yardv1.Limit
	groups         map[string]*yardv1.Group
	// pauses, and drains, are by the key that they are stored under.
	pauses map[string]*yardv1.Pause
	// scales are by domain and tasklist; scalesBroken is what writes of them are answered with.
	scales       map[string]catalog.Scaled
	scalesBroken error
	// workers are those that are drained, by domain; workersAt is the last revision of one.
	workers   map[string]map[string]*yardv1.WorkerDrain
	workersAt uint64
	// revision is the last one given.
	revision int64
}

func newMemCatalog() *memCatalog {
	return &memCatalog{
		domains: map[string]*yardv1.Domain{"shop": {Name: "shop"}}, types: map[string]*yardv1.TaskType{}, lists: map[string]*yardv1.Tasklist{},
		limits: map[string]*yardv1.Limit{}, stored: map[string]*yardv1.Limit{},
		groups: map[string]*yardv1.Group{},
		pauses: map[string]*yardv1.Pause{}, scales: map[string]catalog.Scaled{}, workers: map[string]map[string]*yardv1.WorkerDrain{},
	}
}

func (c *memCatalog) HasDomain(name string) bool { return c.Domain(name) != nil }

func (c *memCatalog) Domain(name string) *yardv1.Domain {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.domains[name]
}

func (c *memCatalog) Domains() []*yardv1.Domain {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*yardv1.Domain
	for _, name := range slices.Sorted(maps.Keys(c.domains)) {
		all = append(all, c.domains[name])
	}
	return all
}

func (c *memCatalog) Type(domain, name string) *yardv1.TaskType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types[domain+"/"+name]
}

func (c *memCatalog) Types(domain string) []*yardv1.TaskType {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*yardv1.TaskType
	for _, key := range slices.Sorted(maps.Keys(c.types)) {
		if strings.HasPrefix(key, domain+"/") {
			all = append(all, c.types[key])
		}
	}
	return all
}

func (c *memCatalog) Tasklist(domain, name string) *yardv1.Tasklist {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists[domain+"/"+name]
}

func (c *memCatalog) Tasklists(domain string) []*yardv1.Tasklist {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*yardv1.Tasklist
	for _, key := range slices.Sorted(maps.Keys(c.lists)) {
		if strings.HasPrefix(key, domain+"/") {
			all = append(all, c.lists[key])
		}
	}
	return all
}

func (c *memCatalog) Partitions(domain, tasklist string) int {
	return catalog.Partitions(c.Tasklist(domain, tasklist), c.Scale(domain, tasklist))
}

func (c *memCatalog) Scale(domain, tasklist string) catalog.Scale {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scales[domain+"/"+tasklist].Scale
}

func (c *memCatalog) Scales() []catalog.Scaled {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.scales))
}

func (c *memCatalog) breakScales(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scalesBroken = err
}

func (c *memCatalog) lastRevision() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision
}

func (c *memCatalog) PutScale(_ context.Context, domain, tasklist string, partitions int, replaces int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + tasklist
	switch {
	case c.scalesBroken != nil:
		return c.scalesBroken
	case c.scales[key].Revision != replaces:
		return fault.New(fault.Stale, "%d is stored", c.scales[key].Revision)
	}
	c.revision++
	c.scales[key] = catalog.Scaled{Domain: domain, Tasklist: tasklist, Scale: catalog.Scale{Partitions: partitions, Revision: c.revision}}
	return nil
}

func (c *memCatalog) DeleteScale(_ context.Context, domain, tasklist string, revision int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + tasklist
	switch {
	case c.scalesBroken != nil:
		return c.scalesBroken
	case c.scales[key].Revision != revision:
		return fault.New(fault.Stale, "%d is stored", c.scales[key].Revision)
	}
	delete(c.scales, key)
	return nil
}

func (c *memCatalog) Limit(domain, name string) *yardv1.Limit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits[domain+"/"+name]
}

func (c *memCatalog) Limits(domain string) []*yardv1.Limit {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*yardv1.Limit
	for _, key := range slices.Sorted(maps.Keys(c.limits)) {
		if strings.HasPrefix(key, domain+"/") {
			all = append(all, c.limits[key])
		}
	}
	return all
}

func (c *memCatalog) Group(domain, name string) *yardv1.Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.groups[domain+"/"+name]
}

func (c *memCatalog) Groups(domain string) []*yardv1.Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*yardv1.Group
	for _, key := range slices.Sorted(maps.Keys(c.groups)) {
		if strings.HasPrefix(key, domain+"/") {
			all = append(all, c.groups[key])
		}
	}
	return all
}

func (c *memCatalog) Counts(domain string) catalog.Counts {
	return catalog.Counts{Types: len(c.Types(domain)), Tasklists: len(c.Tasklists(domain)), Limits: len(c.Limits(domain)), Groups: len(c.Groups(domain))}
}

func (c *memCatalog) PutGroup(_ context.Context, domain string, g *yardv1.Group) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + g.Name
	if err := stale(g.Revision, c.groups[key].GetRevision()); err != nil {
		return 0, err
	}
	c.revision++
	c.groups[key] = g.CloneVT()
	c.groups[key].Revision = c.revision
	return c.revision, nil
}

func (c *memCatalog) DeleteGroup(_ context.Context, domain, name string, revision int64) (*yardv1.Group, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + name
	g := c.groups[key]
	if g == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	if err := stale(revision, g.Revision); err != nil {
		return nil, err
	}
	delete(c.groups, key)
	return g, nil
}

// stale tells whether another revision is wanted than there is.
func stale(wanted, stored int64) error {
	if wanted != 0 && wanted != stored {
		return fault.New(fault.Stale, "%d is stored", stored)
	}
	return nil
}

func (c *memCatalog) PutDomain(_ context.Context, d *yardv1.Domain) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := stale(d.Revision, c.domains[d.Name].GetRevision()); err != nil {
		return 0, err
	}
	c.revision++
	c.domains[d.Name] = d.CloneVT()
	c.domains[d.Name].Revision = c.revision
	return c.revision, nil
}

func (c *memCatalog) PutType(_ context.Context, domain string, t *yardv1.TaskType) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + t.Name
	if err := stale(t.Revision, c.types[key].GetRevision()); err != nil {
		return 0, err
	}
	c.revision++
	c.types[key] = t.CloneVT()
	c.types[key].Revision = c.revision
	return c.revision, nil
}

func (c *memCatalog) PutTasklist(_ context.Context, domain string, l *yardv1.Tasklist) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + l.Name
	if err := stale(l.Revision, c.lists[key].GetRevision()); err != nil {
		return 0, err
	}
	c.revision++
	c.lists[key] = l.CloneVT()
	c.lists[key].Revision = c.revision
	return c.revision, nil
}

func (c *memCatalog) DeleteTasklist(_ context.Context, domain, name string, revision int64) (*yardv1.Tasklist, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lists[domain+"/"+name]
	if l == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	delete(c.lists, domain+"/"+name)
	return l, stale(revision, l.Revision)
}

func (c *memCatalog) DeleteDomain(_ context.Context, name string, revision int64) (*yardv1.Domain, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.domains[name]
	if d == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	delete(c.domains, name)
	return d, stale(revision, d.Revision)
}

func (c *memCatalog) DeleteType(_ context.Context, domain, name string, revision int64) (*yardv1.TaskType, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.types[domain+"/"+name]
	if t == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	delete(c.types, domain+"/"+name)
	return t, stale(revision, t.Revision)
}

func (c *memCatalog) PutLimit(_ context.Context, domain string, l *yardv1.Limit) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + l.Name
	if err := stale(l.Revision, c.stored[key].GetRevision()); err != nil {
		return 0, err
	}
	c.revision++
	c.stored[key] = l.CloneVT()
	c.stored[key].Revision = c.revision
	c.limits[key] = c.stored[key]
	return c.revision, nil
}

func (c *memCatalog) GetLimit(_ context.Context, domain, name string) (*yardv1.Limit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.stored[domain+"/"+name]
	if l == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	return l, nil
}

func (c *memCatalog) DeleteLimit(_ context.Context, domain, name string, revision int64) (*yardv1.Limit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := domain + "/" + name
	l := c.stored[key]
	if l == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	if err := stale(revision, l.Revision); err != nil {
		return nil, err
	}
	delete(c.stored, key)
	delete(c.limits, key)
	return l, nil
}

func (c *memCatalog) pause(key string) *yardv1.Pause {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pauses[key]
}

func (c *memCatalog) PausedTasklist(domain, name string) *yardv1.Pause {
	return c.pause(topology.TasklistPauseKey(domain, name))
}

func (c *memCatalog) PausedType(domain, name string) *yardv1.Pause {
	return c.pause(topology.TypePauseKey(domain, name))
}

func (c *memCatalog) DrainedTasklist(domain, name string) *yardv1.Pause {
	return c.pause(topology.TasklistDrainKey(domain, name))
}

func (c *memCatalog) DrainedType(domain, name string) *yardv1.Pause {
	return c.pause(topology.TypeDrainKey(domain, name))
}

func (c *memCatalog) PausedGroup(domain, name string) *yardv1.Pause {
	return c.pause(topology.GroupPauseKey(domain, name))
}

func (c *memCatalog) DrainedGroup(domain, name string) *yardv1.Pause {
	return c.pause(topology.GroupDrainKey(domain, name))
}

func (c *memCatalog) Pauses(domain string, nowMS int64) catalog.Stopped {
	return c.stops(domain, nowMS, topology.TasklistPauseOfKey, topology.TypePauseOfKey, topology.GroupPauseOfKey)
}

func (c *memCatalog) Drains(domain string, nowMS int64) catalog.Stopped {
	return c.stops(domain, nowMS, topology.TasklistDrainOfKey, topology.TypeDrainOfKey, topology.GroupDrainOfKey)
}

func (c *memCatalog) stops(domain string, nowMS int64, tasklistOf, typeOf, groupOf func(string) (string, string, bool)) catalog.Stopped {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := catalog.Stopped{Tasklists: map[string]*yardv1.Pause{}, Types: map[string]*yardv1.Pause{}, Groups: map[string]*yardv1.Pause{}}
	for key, p := range c.pauses {
		if !catalog.Paused(p, nowMS) {
			continue
		}
		if of, name, ok := tasklistOf(key); ok && of == domain {
			all.Tasklists[name] = p
		} else if of, name, ok := typeOf(key); ok && of == domain {
			all.Types[name] = p
		} else if of, name, ok := groupOf(key); ok && of == domain {
			all.Groups[name] = p
		}
	}
	return all
}

func (c *memCatalog) PutPause(_ context.Context, key string, p *yardv1.Pause) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses[key] = p.CloneVT()
	return nil
}

func (c *memCatalog) DeletePause(_ context.Context, key string) (*yardv1.Pause, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pauses[key]
	if p == nil {
		return nil, fault.New(fault.NotFound, "nothing")
	}
	delete(c.pauses, key)
	return p, nil
}

func (c *memCatalog) DeletePauseOver(_ context.Context, key string, nowMS int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !catalog.Paused(c.pauses[key], nowMS) {
		delete(c.pauses, key)
	}
	return nil
}

func (c *memCatalog) DrainedWorker(domain, workerID string) *yardv1.WorkerDrain {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.workers[domain][workerID]
}

func (c *memCatalog) DrainedWorkers() (map[string]map[string]*yardv1.WorkerDrain, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.workers), c.workersAt
}

func (c *memCatalog) ChangeDrainedWorkers(_ context.Context, domain string, change func(map[string]*yardv1.WorkerDrain) (bool, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.workers[domain])
	if all == nil {
		all = map[string]*yardv1.WorkerDrain{}
	}
	changed, err := change(all)
	if err != nil || !changed {
		return err
	}
	c.workersAt++
	if c.workers[domain] = all; len(all) == 0 {
		delete(c.workers, domain)
	}
	return nil
}
