package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

const (
	rewatchWaitFirst = 100 * time.Millisecond
	rewatchWaitLast  = 2 * time.Second
	// lagCheckEvery is how often the watch is compared with the bucket. One that is
	// behind for as long is started again: after a restart of the server, nats.go may
	// take half a minute to notice that its watch is dead.
	lagCheckEvery = time.Second
	// restPerCopy is for how long to rest for each setting that was copied for a change, about 20 times as long as that takes; at most
	// restMax, and not at all for fewer than restFrom.
	restFrom    = 500
	restPerCopy = 2 * time.Microsecond
	restMax     = 100 * time.Millisecond
)

// errWatchEnded: the server or the client gave the watch up.
var errWatchEnded = errors.New("the watch ended")

// Catalog is a copy of all domains, types, settings of tasklists, limits, stops and drained workers, and of the log version. What it returns is shared and must
// not be changed.
type Catalog struct {
	kv       jetstream.KeyValue
	onChange func(domain string)
	now      atomic.Pointer[state]
	seen     uint64 // the last revision; of the following goroutine
}

// state is never changed once it is stored.
type state struct {
	domains map[string]*yardv1.Domain
	// types, tasklists, limits and groups are by domain and name; weights are those of groups whose weight is not 1, groupLimits how
	// many attempts of those run at once that have a number of their own.
	types       map[string]map[string]*yardv1.TaskType
	tasklists   map[string]map[string]*yardv1.Tasklist
	limits      map[string]map[string]*yardv1.Limit
	groups      map[string]map[string]*yardv1.Group
	weights     map[string]map[string]float64
	groupLimits map[string]map[string]int
	// pauses stop starts, drains stop submits.
	pauses, drains stops
	// scales are by domain and tasklist.
	scales map[string]map[string]Scale
	// workers are those that are drained, by domain; what is in it is replaced and never changed. workersAt is the last revision of one.
	workers   map[string]map[string]*yardv1.WorkerDrain
	workersAt uint64
	// version is the log version that the cluster writes.
	version uint32
}

// Watch loads everything there is and then follows the bucket until ctx ends.
// onChange, which may be nil, is called after each later change of a domain, of
// one of its types, tasklists, limits or groups, by one goroutine, one call at a time; it must not block.
func Watch(ctx context.Context, kv jetstream.KeyValue, onChange func(domain string)) (*Catalog, error) {
	if onChange == nil {
		onChange = func(string) {}
	}
	c := &Catalog{kv: kv, onChange: onChange}
	c.now.Store(newState())
	w, loaded, err := c.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the catalog: %w", err)
	}
	c.now.Store(loaded)
	go c.run(ctx, w)
	return c, nil
}

// Version is the log version that the cluster writes. It never goes down while the
// catalog lives.
func (c *Catalog) Version() uint32 { return c.now.Load().version }

// WriteVersion is the log version that this program writes: the cluster's, or its own newest if that is lower.
func (c *Catalog) WriteVersion() uint32 { return min(c.Version(), logversion.Newest()) }

func newState() *state {
	return &state{
		domains: map[string]*yardv1.Domain{}, types: map[string]map[string]*yardv1.TaskType{},
		tasklists: map[string]map[string]*yardv1.Tasklist{}, limits: map[string]map[string]*yardv1.Limit{},
		groups: map[string]map[string]*yardv1.Group{}, weights: map[string]map[string]float64{}, groupLimits: map[string]map[string]int{},
		pauses: newStops(), drains: newStops(), scales: map[string]map[string]Scale{}, workers: map[string]map[string]*yardv1.WorkerDrain{},
	}
}

// load begins a watch and reads what is there. The watch is the caller's to stop.
func (c *Catalog) load(ctx context.Context) (jetstream.KeyWatcher, *state, error) {
	w, err := c.kv.WatchAll(ctx)
	if err != nil {
		return nil, nil, err
	}
	s := newState()
	s.version = c.Version()
	c.seen = 0
	for {
		select {
		case <-ctx.Done():
			stop(w)
			return nil, nil, ctx.Err()
		case e, ok := <-w.Updates():
			if !ok {
				return nil, nil, errWatchEnded
			}
			if e == nil {
				return w, s, nil
			}
			c.seen = max(c.seen, e.Revision())
			s.take(e)
		}
	}
}

// run follows the bucket, with one watch after the other, until ctx ends.
func (c *Catalog) run(ctx context.Context, w jetstream.KeyWatcher) {
	for {
		c.follow(ctx, w)
		stop(w)
		for wait := rewatchWaitFirst; ; wait = min(2*wait, rewatchWaitLast) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			next, loaded, err := c.load(ctx)
			if err == nil {
				w = next
				c.replace(loaded)
				break
			}
		}
	}
}

// follow takes changes over until ctx or the watch ends, or the watch lags.
func (c *Catalog) follow(ctx context.Context, w jetstream.KeyWatcher) {
	ticker := time.NewTicker(lagCheckEvery)
	defer ticker.Stop()
	last := c.seen // the bucket's last revision at the last check
	updates, rest := w.Updates(), time.NewTimer(0)
	rest.Stop() // until there is a reason
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-updates:
			if !ok {
				return
			}
			updates = c.took([]jetstream.KeyValueEntry{e}, w, rest)
		case <-rest.C:
			entries, ok := waiting(w.Updates())
			if !ok {
				return
			}
			updates = c.took(entries, w, rest)
		case <-ticker.C:
			if last > c.seen {
				return
			}
			if rev, err := revision(ctx, c.kv); err == nil {
				if rev < c.seen {
					return // another bucket of the same name
				}
				last = rev
			}
		}
	}
}

// took takes changes over, and returns where to read the next one: nowhere while it rests, for long behind changes of
// domains that have many settings. What comes meanwhile is taken together, so that the copies cost little time (I14).
func (c *Catalog) took(entries []jetstream.KeyValueEntry, w jetstream.KeyWatcher, rest *time.Timer) <-chan jetstream.KeyValueEntry {
	entries = slices.DeleteFunc(entries, func(e jetstream.KeyValueEntry) bool { return e == nil })
	if len(entries) == 0 {
		return w.Updates()
	}
	for _, e := range entries {
		c.seen = max(c.seen, e.Revision())
	}
	copied := c.update(entries...)
	if copied < restFrom {
		return w.Updates()
	}
	rest.Reset(min(time.Duration(copied)*restPerCopy, restMax))
	return nil
}

// waiting is what can be read at once; false: the watch has ended.
func waiting(updates <-chan jetstream.KeyValueEntry) (entries []jetstream.KeyValueEntry, ok bool) {
	for {
		select {
		case e, ok := <-updates:
			if !ok {
				return nil, false
			}
			entries = append(entries, e)
		default:
			return entries, true
		}
	}
}

// update stores a copy of the state with some changes, and returns how many settings it copied for them.
func (c *Catalog) update(entries ...jetstream.KeyValueEntry) (copied int) {
	s := c.now.Load().clone()
	own, changed := map[string]bool{}, map[string]bool{}
	any := false
	for _, e := range entries {
		domain := domainOf(e.Key())
		if !own[domain] {
			own[domain] = true
			copied += s.own(domain)
		}
		if s.take(e) {
			any, changed[domain] = true, true
		}
	}
	if !any {
		return copied
	}
	c.now.Store(s)
	delete(changed, "")
	for _, domain := range slices.Sorted(maps.Keys(changed)) {
		c.onChange(domain)
	}
	return copied
}

// clone is a copy in which a domain may be changed once it is own.
func (s *state) clone() *state {
	return &state{
		domains: maps.Clone(s.domains), types: maps.Clone(s.types), tasklists: maps.Clone(s.tasklists),
		limits: maps.Clone(s.limits), groups: maps.Clone(s.groups), weights: maps.Clone(s.weights), groupLimits: maps.Clone(s.groupLimits), version: s.version,
		pauses: s.pauses, drains: s.drains, scales: maps.Clone(s.scales),
		workers: maps.Clone(s.workers), workersAt: s.workersAt,
	}
}

// own copies the settings of a domain, and returns how many there are.
func (s *state) own(domain string) int {
	s.pauses, s.drains = s.pauses.clone(domain), s.drains.clone(domain)
	return ownOf(s.types, domain) + ownOf(s.tasklists, domain) + ownOf(s.limits, domain) + ownOf(s.groups, domain) + ownOf(s.weights, domain) + ownOf(s.groupLimits, domain) + ownOf(s.scales, domain)
}

func ownOf[M any](all map[string]map[string]M, domain string) int {
	m, ok := all[domain]
	if ok {
		all[domain] = maps.Clone(m)
	}
	return len(m)
}

// replace stores a state loaded again and tells of the domains that differ.
func (c *Catalog) replace(s *state) {
	old := c.now.Swap(s)
	names := map[string]bool{}
	for _, m := range []*state{old, s} {
		for name := range m.domains {
			names[name] = true
		}
		for name := range m.types {
			names[name] = true
		}
		for name := range m.tasklists {
			names[name] = true
		}
		for name := range m.limits {
			names[name] = true
		}
		for name := range m.groups {
			names[name] = true
		}
		m.pauses.names(names)
		m.drains.names(names)
		for name := range m.scales {
			names[name] = true
		}
		for name := range m.workers {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !old.same(s, name) {
			c.onChange(name)
		}
	}
}

func (s *state) same(other *state, domain string) bool {
	a, b := s.domains[domain], other.domains[domain]
	if (a == nil) != (b == nil) || a != nil && !proto.Equal(a, b) {
		return false
	}
	return maps.EqualFunc(s.types[domain], other.types[domain], func(a, b *yardv1.TaskType) bool { return proto.Equal(a, b) }) &&
		maps.EqualFunc(s.tasklists[domain], other.tasklists[domain], func(a, b *yardv1.Tasklist) bool { return proto.Equal(a, b) }) &&
		maps.EqualFunc(s.limits[domain], other.limits[domain], func(a, b *yardv1.Limit) bool { return proto.Equal(a, b) }) &&
		maps.EqualFunc(s.groups[domain], other.groups[domain], func(a, b *yardv1.Group) bool { return proto.Equal(a, b) }) &&
		maps.EqualFunc(s.workers[domain], other.workers[domain], func(a, b *yardv1.WorkerDrain) bool { return proto.Equal(a, b) }) &&
		maps.Equal(s.scales[domain], other.scales[domain]) && s.pauses.same(other.pauses, domain) && s.drains.same(other.drains, domain)
}

// take changes s by one entry; false means that the entry is of no concern.
func (s *state) take(e jetstream.KeyValueEntry) bool {
	gone := e.Operation() != jetstream.KeyValuePut
	if e.Key() == topology.VersionKey {
		v, err := parseVersion(e.Value())
		if gone || err != nil {
			return false
		}
		s.version = max(s.version, v)
		return true
	}
	if name, ok := topology.DomainOfKey(e.Key()); ok {
		d := &yardv1.Domain{}
		switch {
		case gone:
			delete(s.domains, name)
		case codec.Unmarshal(codec.JSON, e.Value(), d) != nil:
			return false
		default:
			d.Revision = int64(e.Revision())
			s.domains[name] = d
		}
		return true
	}
	if domain, name, ok := topology.TypeOfKey(e.Key()); ok {
		t := &yardv1.TaskType{}
		if !gone && codec.Unmarshal(codec.JSON, e.Value(), t) != nil {
			return false
		}
		t.Revision = int64(e.Revision())
		set(s.types, domain, name, t, gone)
		return true
	}
	if domain, name, ok := topology.TasklistOfKey(e.Key()); ok {
		l := &yardv1.Tasklist{}
		if !gone && codec.Unmarshal(codec.JSON, e.Value(), l) != nil {
			return false
		}
		l.Revision = int64(e.Revision())
		set(s.tasklists, domain, name, l, gone)
		return true
	}
	if all, domain, name := s.stopOf(e.Key()); all != nil {
		p := &yardv1.Pause{}
		if !gone && codec.Unmarshal(codec.JSON, e.Value(), p) != nil {
			return false
		}
		set(all, domain, name, p, gone)
		return true
	}
	if domain, name, ok := topology.ScaleOfKey(e.Key()); ok {
		return s.takeScale(domain, name, e, gone)
	}
	if domain, name, ok := topology.GroupOfKey(e.Key()); ok {
		return s.takeGroup(domain, name, e, gone)
	}
	if domain, ok := topology.WorkersOfKey(e.Key()); ok {
		return s.takeWorkers(domain, e, gone)
	}
	domain, name, ok := topology.LimitOfKey(e.Key())
	l := &yardv1.Limit{}
	if !ok || !gone && codec.Unmarshal(codec.JSON, e.Value(), l) != nil {
		return false // also what later versions keep here
	}
	l.Revision = int64(e.Revision())
	set(s.limits, domain, name, l, gone)
	return true
}

func (s *state) takeGroup(domain, name string, e jetstream.KeyValueEntry, gone bool) bool {
	g := &yardv1.Group{}
	if !gone && codec.Unmarshal(codec.JSON, e.Value(), g) != nil {
		return false
	}
	g.Revision = int64(e.Revision())
	set(s.groups, domain, name, g, gone)
	set(s.weights, domain, name, g.GetWeight(), gone || g.Weight == nil || g.GetWeight() == 1)
	set(s.groupLimits, domain, name, int(g.MaxConcurrency), gone || g.MaxConcurrency <= 0)
	return true
}

// set puts m under its domain and name, or takes away what is there.
func set[M any](all map[string]map[string]M, domain, name string, m M, gone bool) {
	if gone {
		if delete(all[domain], name); len(all[domain]) == 0 {
			delete(all, domain)
		}
		return
	}
	if all[domain] == nil {
		all[domain] = map[string]M{}
	}
	all[domain][name] = m
}

// domainOf is the domain a key is about, "" where it is about none.
func domainOf(key string) string {
	if name, ok := topology.DomainOfKey(key); ok {
		return name
	}
	if domain, _, ok := topology.TypeOfKey(key); ok {
		return domain
	}
	if domain, _, ok := topology.TasklistOfKey(key); ok {
		return domain
	}
	if domain, _, ok := topology.LimitOfKey(key); ok {
		return domain
	}
	if domain, _, ok := topology.GroupOfKey(key); ok {
		return domain
	}
	if domain, _, ok := topology.ScaleOfKey(key); ok {
		return domain
	}
	if domain, ok := topology.WorkersOfKey(key); ok {
		return domain
	}
	_, domain, _ := new(state).stopOf(key)
	return domain
}

// revision is the bucket's last one.
func revision(ctx context.Context, kv jetstream.KeyValue) (uint64, error) {
	status, err := kv.Status(ctx)
	if err != nil {
		return 0, err
	}
	b, ok := status.(interface{ StreamInfo() *jetstream.StreamInfo })
	if !ok {
		return 0, fmt.Errorf("%T tells no revision", status)
	}
	return b.StreamInfo().State.LastSeq, nil
}

// stop ends a watch whose updates no one reads any more. They are drained, because
// the watch cannot end while it waits to hand one over.
func stop(w jetstream.KeyWatcher) {
	go func() {
		for range w.Updates() { // drained on purpose
		}
	}()
	_ = w.Stop() // fails only where there is nothing left to stop
}
