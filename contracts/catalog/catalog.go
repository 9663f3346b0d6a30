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

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

const (
	rewatchWaitFirst = 100 * time.Millisecond
	rewatchWaitLast  = 2 * time.Second
	// CompareEvery is how often a watch is compared with the bucket. One that is
	// behind for as long is started again: after a restart of the server, nats.go may
	// take half a minute to notice that its watch is dead.
	CompareEvery = time.Second
	// restPerCopy is for how long to rest for each setting that was copied for a change, about 20 times as long as that takes; at most
	// restMax, and not at all for fewer than restFrom.
	restFrom    = 500
	restPerCopy = 2 * time.Microsecond
	restMax     = 100 * time.Millisecond
)

// errWatchEnded: the server or the client gave the watch up.
var errWatchEnded = errors.New("the watch ended")

// Catalog is a copy of all records of the config bucket, and of the log version. Its results are shared and must not be changed.
type Catalog struct {
	kv       Bucket
	every    time.Duration
	onChange func(domain string)
	now      atomic.Pointer[state]
	seen     uint64 // the last revision; of the following goroutine
}

// table are the records of one kind, by domain and name.
type table map[string]map[string]message

// state is never changed once it is stored.
type state struct {
	// tables are those of the kinds, revisions their last ones.
	tables    []table
	revisions []uint64
	// weights and groupLimits say what is special of groups, by domain and name: weights that are not 1, and own numbers in limits per group.
	weights     map[string]map[string]float64
	groupLimits map[string]map[string]int
	// bounded are the domains with a quota of what waits. They are changed only while ownsBounded.
	bounded     *Bounded
	ownsBounded bool
	// version is the log version that the cluster writes.
	version uint32
}

// New returns an empty catalog that follows no bucket: Take changes it.
func New(onChange func(domain string)) *Catalog {
	if onChange == nil {
		onChange = func(string) {}
	}
	c := &Catalog{onChange: onChange}
	c.now.Store(newState())
	return c
}

// Watch loads everything there is and then follows the bucket until ctx ends.
// onChange, which may be nil, is called after each later change of a domain or of
// one of its records, by one goroutine, one call at a time; it must not block.
func Watch(ctx context.Context, kv Bucket, onChange func(domain string)) (*Catalog, error) {
	return WatchEvery(ctx, kv, CompareEvery, onChange)
}

// WatchEvery is Watch, but compares the watch with the bucket every so often.
func WatchEvery(ctx context.Context, kv Bucket, every time.Duration, onChange func(domain string)) (*Catalog, error) {
	c := New(onChange)
	c.kv, c.every = kv, every
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

// Domain returns the domain of this name, or nil. The result is read-only.
func (c *Catalog) Domain(name string) *yardv1.Domain { return Domains.Of(c, "", name) }

// Weight is how many turns a domain has for each one of a domain with weight 1.
func (c *Catalog) Weight(domain string) int { return max(1, int(c.Domain(domain).GetWeight())) }

// TraceRatio is the share of a domain's traces that are recorded; nil = the samplers of the services decide.
func (c *Catalog) TraceRatio(domain string) *float64 {
	if d := c.Domain(domain); d != nil {
		return d.TraceRatio
	}
	return nil
}

// FullWeight is how many tasks of a domain come in with its full weight in a second, 0 = all; shadow: those over it are counted only.
func (c *Catalog) FullWeight(domain string) (perSecond int64, shadow bool) {
	d := c.Domain(domain)
	return d.GetFullWeightTasksPerS(), d.GetFullWeightShadow()
}

// Weights returns the weights of a domain's groups that are not 1, by name. They are read-only.
func (c *Catalog) Weights(domain string) map[string]float64 { return c.now.Load().weights[domain] }

// GroupLimits returns how many attempts of a domain's groups may run at once that have a number of their own, by name. They are
// read-only.
func (c *Catalog) GroupLimits(domain string) map[string]int { return c.now.Load().groupLimits[domain] }

func newState() *state {
	s := &state{
		bounded: &Bounded{map[string]*yardv1.Quota{}}, ownsBounded: true,
		tables: make([]table, len(kinds)), revisions: make([]uint64, len(kinds)),
		weights: map[string]map[string]float64{}, groupLimits: map[string]map[string]int{},
	}
	for i := range s.tables {
		s.tables[i] = table{}
	}
	return s
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
				for domain := range s.tables[Groups.index] {
					s.takeGroups(domain)
				}
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
	ticker := time.NewTicker(c.every)
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
// domains that have many settings. Changes that come meanwhile are taken together, so that the copies cost little time (I14).
func (c *Catalog) took(entries []jetstream.KeyValueEntry, w jetstream.KeyWatcher, rest *time.Timer) <-chan jetstream.KeyValueEntry {
	entries = slices.DeleteFunc(entries, func(e jetstream.KeyValueEntry) bool { return e == nil })
	if len(entries) == 0 {
		return w.Updates()
	}
	for _, e := range entries {
		c.seen = max(c.seen, e.Revision())
	}
	copied := c.Take(entries...)
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

// Take stores a copy of the state with some changes, and returns how many records it copied for them. A catalog that follows a bucket calls it itself.
func (c *Catalog) Take(entries ...jetstream.KeyValueEntry) (copied int) {
	s := c.now.Load().clone()
	type part struct {
		kind   *kind
		domain string
	}
	own, changed := map[part]bool{}, map[string]bool{}
	any := false
	for _, e := range entries {
		k, domain, name := ofKey(e.Key())
		if p := (part{k, domain}); k != nil && !own[p] {
			own[p] = true
			copied += s.own(k.index, domain)
		}
		if !s.take(e) {
			continue
		}
		if any = true; k != nil {
			changed[k.concerns(domain, name)] = true
		}
	}
	if !any {
		return copied
	}
	for p := range own {
		if p.kind == Groups.kind {
			s.takeGroups(p.domain)
		}
	}
	c.now.Store(s)
	c.report(changed)
	return copied
}

func (c *Catalog) report(changed map[string]bool) {
	for _, domain := range slices.Sorted(maps.Keys(changed)) {
		c.onChange(domain)
	}
}

// clone is a copy in which the records of a kind and domain may be changed once they are own.
func (s *state) clone() *state {
	return &state{
		tables: slices.Clone(s.tables), revisions: slices.Clone(s.revisions),
		weights: maps.Clone(s.weights), groupLimits: maps.Clone(s.groupLimits), bounded: s.bounded, version: s.version,
	}
}

// own copies the records of a kind and a domain, and returns how many there are.
func (s *state) own(kind int, domain string) int {
	s.tables[kind] = maps.Clone(s.tables[kind])
	records, ok := s.tables[kind][domain]
	if ok {
		s.tables[kind][domain] = maps.Clone(records)
	}
	return len(records)
}

// replace stores a state loaded again and reports the domains that differ.
func (c *Catalog) replace(s *state) {
	old, changed := c.now.Swap(s), map[string]bool{}
	old.differs(s, changed)
	s.differs(old, changed)
	c.report(changed)
}

// differs adds the domains of which another state lacks a record, or has another one.
func (s *state) differs(other *state, changed map[string]bool) {
	for i, k := range kinds {
		for domain, records := range s.tables[i] {
			for name, m := range records {
				if about := k.concerns(domain, name); !changed[about] && !proto.Equal(m, other.tables[i][domain][name]) {
					changed[about] = true
				}
			}
		}
	}
}

// take changes s by one entry and reports whether it did. An entry may be of no concern, such as one that a later version keeps here, or unreadable.
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
	k, domain, name := ofKey(e.Key())
	if k == nil {
		return false
	}
	records := s.tables[k.index]
	quota := (*yardv1.Quota)(nil)
	if gone {
		if delete(records[domain], name); len(records[domain]) == 0 {
			delete(records, domain)
		}
	} else {
		m, err := k.decode(e.Value(), e.Revision())
		if err != nil {
			return false
		}
		if records[domain] == nil {
			records[domain] = map[string]message{}
		}
		records[domain][name] = m
		if d, ok := m.(*yardv1.Domain); ok {
			quota = d.Quota
		}
	}
	if k == Domains.kind {
		s.bound(name, quota)
	}
	s.revisions[k.index] = max(s.revisions[k.index], e.Revision())
	return true
}

// takeGroups derives what is special of the groups of a domain.
func (s *state) takeGroups(domain string) {
	delete(s.weights, domain)
	delete(s.groupLimits, domain)
	weights, limits := map[string]float64{}, map[string]int{}
	for name, m := range s.tables[Groups.index][domain] {
		g := m.(*yardv1.Group)
		if g.Weight != nil && g.GetWeight() != 1 {
			weights[name] = g.GetWeight()
		}
		if g.MaxConcurrency > 0 {
			limits[name] = int(g.MaxConcurrency)
		}
	}
	if len(weights) > 0 {
		s.weights[domain] = weights
	}
	if len(limits) > 0 {
		s.groupLimits[domain] = limits
	}
}

// revision is the bucket's last one.
func revision(ctx context.Context, kv Bucket) (uint64, error) {
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
