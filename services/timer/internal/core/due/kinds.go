package due

// kindsMost is how many kinds of tasks that are not near are counted of a domain. A kind is a tasklist and a type. If there are more, the tasks of other
// types are counted by tasklist, for as many tasklists again. The tasks of all other tasklists are counted together.
const kindsMost = 1000

// kindFor is as what a task is counted that is not near.
func (bs *buckets) kindFor(of *Group) Group {
	kind := Group{Domain: of.Domain, Tasklist: of.Tasklist, Type: of.Type}
	if bs.isKind(kind, kindsMost) {
		return kind
	}
	if kind.Type = ""; bs.isKind(kind, 2*kindsMost) {
		return kind
	}
	return Group{Domain: of.Domain}
}

// isKind reports whether a kind is counted, or may be: its domain has fewer.
func (bs *buckets) isKind(kind Group, most int) bool {
	d := bs.groups.domains.byName[kind.Domain]
	if d == nil || len(d.kinds) < most {
		return true
	}
	h, ok := bs.groups.handles[kind]
	return ok && d.kinds[h] > 0
}

// kindOf is the kind that a task of a bucket was counted as, or another one of its tasklist. So no count is less than 0, and that of other tasklists is
// exact: if a tasklist has tasks in the bucket, it has a count there, or that of other tasklists has them. Only a tasklist that has kinds, but not this
// one, is searched for.
func (bs *buckets) kindOf(b *bucket, of *Group) Group {
	kind := Group{Domain: of.Domain, Tasklist: of.Tasklist, Type: of.Type}
	if bs.counted(b, kind) {
		return kind
	}
	if kind.Type = ""; bs.counted(b, kind) {
		return kind
	}
	kind = Group{Domain: of.Domain}
	if d := bs.groups.domains.byName[of.Domain]; d == nil || d.tasklists[of.Tasklist] == 0 {
		return kind
	}
	bs.ofDomain(b, of.Domain, func(g *Group, tasks int) (enough bool) {
		if enough = g.Tasklist == of.Tasklist && tasks > 0; enough {
			kind = *g
		}
		return enough
	})
	return kind
}

// counted reports whether a bucket counts tasks of a kind.
func (bs *buckets) counted(b *bucket, kind Group) bool {
	h, ok := bs.groups.handles[kind]
	return ok && b.far[h].tasks > 0
}

// ofDomain hands the counts of a domain in a bucket to visit until that has enough. It returns how many it looked up.
func (bs *buckets) ofDomain(b *bucket, name string, visit func(g *Group, tasks int) (enough bool)) (lookups int, enough bool) {
	d := bs.groups.domains.byName[name]
	if d == nil {
		return 0, false
	}
	if len(b.far) <= len(d.kinds) {
		for h, c := range b.far {
			if g := &bs.groups.at(h).Group; g.Domain == name && visit(g, c.tasks) {
				return len(b.far), true
			}
		}
		return len(b.far), false
	}
	for h := range d.kinds {
		if c, ok := b.far[h]; ok && visit(&bs.groups.at(h).Group, c.tasks) {
			return len(d.kinds), true
		}
	}
	return len(d.kinds), false
}
