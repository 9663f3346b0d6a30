package table

import (
	"cmp"
	"strings"
)

// groups are the columns of one priority and type that have a group. Those that are ready stand in the order of their ranks; those that wait
// for a slot of their group's limit are set aside, and cost nothing.
type groups struct {
	byName map[string]*grouped
	ready  [][]*grouped
	// readyN counts those that are ready, triggers those of all.
	readyN, triggers int
}

// grouped is one of them.
type grouped struct {
	group string
	// rank is that of its first trigger, step how far the next one is. shift is added to its rank: it was away while others went on.
	rank, step, shift int64
	age               int64
	triggers          int
	aside             bool
}

func (g *grouped) key() int64 { return g.rank + g.shift }

func compareGrouped(a, b *grouped) int {
	return cmp.Or(cmp.Compare(a.key(), b.key()), strings.Compare(a.group, b.group))
}

// PutGroup notes n triggers added to a column that has a group, the first ready at readyAt and of a rank; step is how far the rank of the
// next one is.
func (x *Index) PutGroup(at Column, readyAt, rank, step int64, n int) {
	of := at.Any()
	if x.groups == nil {
		x.groups = map[Column]*groups{}
	}
	all := x.groups[of]
	if all == nil {
		all = &groups{byName: map[string]*grouped{}}
		x.groups[of] = all
	}
	x.triggers += n
	all.triggers += n
	c := all.byName[at.Group]
	if c == nil {
		c = &grouped{group: at.Group, rank: rank, step: step, age: readyAt, triggers: n}
		all.byName[at.Group] = c
		all.add(c)
		x.follow(of, all)
		return
	}
	c.triggers += n
	c.step = step
	if rank < c.rank || readyAt < c.age {
		all.change(c, func() { c.rank, c.age = min(c.rank, rank), min(c.age, readyAt) })
		x.follow(of, all)
	}
}

// seenGroup is Seen of a column that has a group.
func (x *Index) seenGroup(h Head) {
	of := h.Column.Any()
	all, c := x.grouped(h.Column)
	if c == nil {
		if !h.Empty { // another owner's: it counts itself
			x.PutGroup(h.Column, h.ReadyAt, h.Rank, 0, 0)
		}
		return
	}
	gone := h.Gone
	if h.Empty || gone > c.triggers {
		gone = c.triggers
	}
	x.triggers -= gone
	all.triggers -= gone
	c.triggers -= gone
	switch {
	case h.Empty:
		if delete(all.byName, h.Group); !c.aside {
			all.take(c)
		}
	case h.Rank != 0: // it was looked at
		all.change(c, func() { c.rank, c.age = h.Rank, h.ReadyAt })
	}
	if len(all.byName) == 0 {
		delete(x.groups, of)
	}
	x.follow(of, all)
}

// Aside sets a column aside that has a group: it is no candidate. It returns false if it is not known, or aside.
func (x *Index) Aside(at Column) bool {
	all, c := x.grouped(at)
	if c == nil || c.aside {
		return false
	}
	x.asides++
	all.take(c)
	c.aside = true
	x.follow(at.Any(), all)
	return true
}

// Back ends that. The column has saved up nothing: it comes at the rank now, at the earliest.
func (x *Index) Back(at Column, now int64) {
	all, c := x.grouped(at)
	if c == nil || !c.aside {
		return
	}
	c.aside = false
	c.shift = max(c.shift, now-c.rank)
	all.add(c)
	x.follow(at.Any(), all)
}

// grouped is a column that has a group, and those beside it; nil if it is not known.
func (x *Index) grouped(at Column) (*groups, *grouped) {
	all := x.groups[at.Any()]
	if all == nil {
		return nil, nil
	}
	return all, all.byName[at.Group]
}

// Shift is by how much the ranks of a column are later than they were given.
func (x *Index) Shift(at Column) int64 {
	if _, c := x.grouped(at); c != nil {
		return c.shift
	}
	return 0
}

// Waits tells whether a column holds something, or one of those for which it stands (AnyGroup); readyAt is the age of the first
// of them that is ready, 0 = none is.
func (x *Index) Waits(at Column) (readyAt int64, ok bool) {
	if _, c := x.grouped(at); c != nil {
		return c.age, true
	}
	readyAt, ok = x.heads[at]
	return readyAt, ok || x.groups[at] != nil
}

// follow has what stands for groups in the order of columns where the first of them is.
func (x *Index) follow(of Column, all *groups) {
	c := x.find(of)
	switch {
	case all.readyN == 0 && c != nil:
		x.remove(*c)
	case all.readyN == 0:
	case c == nil:
		x.insert(indexed{Column: of, head: all.ready[0][0].age})
	case c.head != all.ready[0][0].age:
		x.move(*c, all.ready[0][0].age)
	}
}

func (g *groups) add(c *grouped) {
	g.readyN++
	g.ready = insertIn(g.ready, c, compareGrouped)
}

func (g *groups) take(c *grouped) {
	g.readyN--
	g.ready = removeFrom(g.ready, c, compareGrouped)
}

// change changes what a column is ordered by.
func (g *groups) change(c *grouped, do func()) {
	if c.aside {
		do()
		return
	}
	g.take(c)
	do()
	g.add(c)
}

// readyWithout tells whether that of tasks without a group is ready.
func (g *groups) readyWithout() bool {
	c := g.byName[NoGroup]
	return c != nil && !c.aside
}

// append appends those that are ready to dst, up to limit in all, as what stands for them says.
func (g *groups) append(dst []Candidate, of indexed, limit int, skip func(at Column) bool) []Candidate {
	at := of.Column
	var found []*grouped
	if of.without {
		found = append(found, g.byName[NoGroup])
	} else {
		found = g.foremost(limit - len(dst))
	}
	for _, c := range found {
		at.Group = c.group
		if len(dst) < limit && !skip(at) {
			dst = append(dst, Candidate{Column: at, Head: of.head, Most: 1 << 30})
		}
	}
	return dst
}

// foremost are the first n that are ready.
func (g *groups) foremost(n int) []*grouped {
	var all []*grouped
	for _, block := range g.ready {
		for _, c := range block {
			if len(all) >= n {
				return all
			}
			all = append(all, c)
		}
	}
	return all
}

// Share has each candidate of a want that has a group give as much as its turns allow: those that come first by rank, and some at
// least.
func (x *Index) Share(w *Want) {
	for from := 0; from < len(w.Candidates); from++ {
		if w.Candidates[from].Most == 0 {
			continue
		}
		of, to := w.Candidates[from].Column.Any(), from+1
		for to < len(w.Candidates) && w.Candidates[to].Column.Any() == of && w.Candidates[to].Most > 0 {
			to++
		}
		x.groups[of].share(w.Candidates[from:to], w.N)
		from = to - 1
	}
}

// share has columns give n triggers in all, those of the least ranks; but inOrderMin each, as in one column.
func (g *groups) share(columns []Candidate, n int) {
	all := make([]*grouped, len(columns))
	sum, low, high := 0, int64(0), int64(0)
	for i := range columns {
		c := g.byName[columns[i].Group]
		all[i] = c
		sum += c.triggers
		if last := c.key() + int64(c.triggers)*c.step; i == 0 {
			low, high = c.key(), last
		} else {
			low, high = min(low, c.key()), max(high, last)
		}
	}
	if sum <= n {
		return
	}
	upTo := func(c *grouped, rank int64) int {
		if rank < c.key() {
			return 0
		}
		return min(c.triggers, int((rank-c.key())/max(c.step, 1))+1)
	}
	for low < high { // the least rank up to which there are n
		at, have := low+(high-low)/2, 0
		for _, c := range all {
			have += upTo(c, at)
		}
		if have < n {
			low = at + 1
		} else {
			high = at
		}
	}
	for i, c := range all {
		columns[i].Most = max(upTo(c, low), inOrderMin)
	}
}
