package table

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Table is the triggering tables and slots of any number of domains and shards.
// It is not safe for concurrent use.
type Table struct {
	domains map[string]*domain
}

type domain struct {
	// lives by shard. Slots are the domain's, tables the shard's.
	lives  map[int]*life
	limits map[Ref]*limit
	// perGroups are those that count per group.
	perGroups map[Ref]*perGroup
	rates     map[Ref]*rate
}

// life is one life of a shard's table.
type life struct {
	epoch string
	lists map[Tasklist]map[Column]*column
}

// New returns a table that remembers nothing.
func New() *Table { return &Table{domains: map[string]*domain{}} }

// Forget loses everything, as a Redis that restarts does.
func (t *Table) Forget() { clear(t.domains) }

// Open tells how a shard's tables of a domain stand, and begins an epoch called
// fresh where there is none.
func (t *Table) Open(domainName string, shard int, fresh string) Opened {
	d := t.domains[domainName]
	if d == nil {
		d = &domain{lives: map[int]*life{}, limits: map[Ref]*limit{}, perGroups: map[Ref]*perGroup{}, rates: map[Ref]*rate{}}
		t.domains[domainName] = d
	}
	e := d.lives[shard]
	begun := e == nil
	if begun {
		e = &life{epoch: fresh, lists: map[Tasklist]map[Column]*column{}}
		d.lives[shard] = e
	}
	opened := Opened{Epoch: e.epoch, Fresh: begun}
	for list, columns := range e.lists {
		for at, c := range columns {
			head := c.head()
			opened.Columns = append(opened.Columns, Known{Tasklist: list, Column: at, ReadyAt: head.ReadyAt, Rank: head.Rank, Triggers: c.triggers()})
		}
	}
	slices.SortFunc(opened.Columns, Known.Order)
	return opened
}

// Order orders what Open tells.
func (k Known) Order(o Known) int {
	return cmp.Or(strings.Compare(k.Name, o.Name), cmp.Compare(k.Partition, o.Partition), k.Column.compare(o.Column))
}

// Do carries out a call at an instant, Unix µs.
func (t *Table) Do(c Call, nowUS int64) Outcome {
	now := nowUS / 1000
	d := t.domains[c.Domain]
	if d == nil {
		return Outcome{Lost: true}
	}
	for _, s := range c.Stances {
		switch {
		case s.PerGroup.Count > 0:
			if p := d.perGroups[s.Ref]; p != nil && p.overtaken(&c) {
				return Outcome{Overtaken: true}
			}
		case s.Of == 0 && s.Rate.EveryUS == 0:
			if l := d.limits[s.Ref]; l != nil && c.Seq.compare(l.entries[c.Shard].seq) <= 0 {
				return Outcome{Overtaken: true}
			}
		}
	}
	e := d.lives[c.Shard]
	if e == nil || e.epoch != c.Epoch {
		return Outcome{Lost: true}
	}
	stands := make([]stand, len(c.Stances))
	for i, s := range c.Stances {
		switch {
		case s.Rate.EveryUS > 0:
			stands[i] = findOrMake(d.rates, s.Ref, newRate).stand(&c, s, nowUS)
		case s.PerGroup.Count > 0:
			stands[i] = findOrMake(d.perGroups, s.Ref, newPerGroup).say(&c, s)
		case s.Of > 0:
			of := c.Stances[s.Of-1]
			p := findOrMake(d.perGroups, of.Ref, newPerGroup)
			stands[i] = p.limit(s.Ref, now).take(&c, s, Seq{c.Seq.Epoch, of.PerGroup.Count}, now)
			stands[i].groups = p
		default:
			stands[i] = findOrMake(d.limits, s.Ref, newLimit).take(&c, s, c.Seq, now)
			stands[i].restoring = len(stands[i].limit.entries) < c.Shards
		}
	}
	for _, at := range c.Clear {
		e.clear(at)
	}
	for _, chunk := range c.Put {
		e.put(chunk)
	}
	out := Outcome{Taken: make([]Taken, len(c.Wants)), Limits: make([]LimitState, len(c.Stances))}
	for i, w := range c.Wants {
		out.Taken[i] = e.pop(w, stands)
	}
	for i := range stands {
		out.Limits[i] = stands[i].finish()
	}
	return out
}

// findOrMake finds what a map holds, or has it hold what make returns.
func findOrMake[K comparable, V any](all map[K]*V, key K, make func() *V) *V {
	one := all[key]
	if one == nil {
		one = make()
		all[key] = one
	}
	return one
}

// clear forgets a column.
func (e *life) clear(at Place) {
	columns := e.lists[at.Tasklist]
	delete(columns, at.Column)
	if len(columns) == 0 {
		delete(e.lists, at.Tasklist)
	}
}

// put stores a chunk with a copy of its triggers.
func (e *life) put(c Chunk) {
	columns := e.lists[c.Tasklist]
	if columns == nil {
		columns = map[Column]*column{}
		e.lists[c.Tasklist] = columns
	}
	c.Triggers = bytes.Clone(c.Triggers)
	findOrMake(columns, c.Column, func() *column { return &column{} }).put(c)
}

// pop takes what a want asks for. A tasklist that is empty is forgotten.
func (e *life) pop(w Want, stands []stand) Taken {
	columns := e.lists[w.Tasklist]
	p := pop{
		w: w, left: w.N, ahead: w.Ahead, columns: columns, stands: stands,
		gone: make([]int, len(w.Candidates)), passed: make([]bool, len(w.Candidates)), named: make([]int, len(stands)),
	}
	for _, at := range w.Candidates {
		for _, s := range at.Path {
			p.named[s]++
		}
	}
	p.run()
	if len(columns) == 0 {
		delete(e.lists, w.Tasklist)
	}
	return p.got
}

// Slots counts the slots of each limit that all shards hold at an instant, Unix ms.
func (t *Table) Slots(domainName string, limits []Ref, now int64) []int {
	counts := make([]int, len(limits))
	if d := t.domains[domainName]; d != nil {
		for i, ref := range limits {
			if l := d.limits[ref]; l != nil {
				counts[i] = l.used(now)
			}
		}
	}
	return counts
}

// Drop forgets a limit.
func (t *Table) Drop(domainName string, ref Ref) {
	if d := t.domains[domainName]; d != nil {
		delete(d.limits, ref)
		delete(d.perGroups, ref)
	}
}
