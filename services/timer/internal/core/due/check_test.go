package due

import "maps"

// fataler is the part of testing.TB that rapid.T has too.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// check fails the test where the table contradicts itself.
func (t *Table) check(tb fataler) {
	live, waiting, totals, refs := map[int32]int{}, map[*queue]int{}, map[*domain]Total{}, map[groupHandle]int{}
	used, earlies := 0, 0
	for h := handle(0); uint32(h) < t.entries.size; h++ {
		e := t.entries.at(h)
		if e.place == placeFree {
			continue
		}
		used++
		refs[e.group]++
		if got, ok := t.byID.find(e.id); !ok || got != h {
			t.fatal(tb, "entry %d is not the one of its id", h)
		}
		d := t.lines.domainOf(e)
		if e.place >= 0 && (int(e.place) >= d.heap.len() || d.heap.order[e.place] != h) {
			t.fatal(tb, "entry %d is not at its place in the heap", h)
		}
		if late := t.lines.isLate(e); t.horizon.loaded && (e.place == placeLate && !late || e.place >= 0 && late) {
			t.fatal(tb, "entry %d is at place %d of round %v", h, e.place, t.lines.lineOf(e).Round)
		}
		live[e.bucket]++
		waiting[t.groups.at(e.group).queue]++
		totals[d] = Total{totals[d].Tasks + 1, totals[d].Bytes + int64(e.bytes)}
		record, isEarly := t.record(h)
		if (t.lines.cursor.Fired(d.name, record) || t.lines.cursor.Fired(d.name, e.key())) && e.place != placeLoading {
			t.fatal(tb, "entry %d waits and was fired", h)
		}
		if isEarly {
			earlies++
			if x := t.early[h]; e.place != placeLoading && (e.key() == record) != x.byRecord(t.lines.lineOf(e)) || e.key() != record && e.key() != x.at {
				t.fatal(tb, "entry %d is at %v of round %v, early %+v", h, e.key(), t.lines.lineOf(e).Round, x)
			}
		}
	}
	if earlies != len(t.early) {
		t.fatal(tb, "%d early ones, %d kept", earlies, len(t.early))
	}
	for i := range t.recent.n {
		refs[t.recent.at(t.recent.place(i)).group]++
	}
	for _, b := range t.buckets.all {
		for g := range b.far {
			refs[g]++
		}
	}
	if used != t.byID.size {
		t.fatal(tb, "%d entries, %d ids", used, t.byID.size)
	}
	for h, n := range refs {
		if t.groups.at(h).refs != n {
			t.fatal(tb, "group %d counts %d of %d", h, t.groups.at(h).refs, n)
		}
	}
	if len(refs) != len(t.groups.handles) {
		t.fatal(tb, "%d groups in use, %d kept", len(refs), len(t.groups.handles))
	}
	t.checkQueues(tb, refs)
	t.checkBuckets(tb, live, used, waiting, totals)
	t.checkTotals(tb, waiting, totals)
	t.checkDomains(tb)
}

// checkBuckets compares what buckets count with what waits, and adds what waits far.
func (t *Table) checkBuckets(tb fataler, live map[int32]int, used int, waiting map[*queue]int, totals map[*domain]Total) {
	tb.Helper()
	far, kinds := 0, map[groupHandle]int{}
	for number, b := range t.buckets.all {
		if b.live != live[number] {
			t.fatal(tb, "bucket %d counts %d of %d", number, b.live, live[number])
		}
		inBucket := 0
		for g, c := range b.far {
			q := t.groups.at(g).queue
			if kinds[g]++; c.tasks < 0 {
				t.fatal(tb, "bucket %d counts %d tasks of %v", number, c.tasks, t.groups.at(g).Group)
			}
			inBucket += c.tasks
			waiting[q] += c.tasks
			d := q.domain
			totals[d] = Total{totals[d].Tasks + int64(c.tasks), totals[d].Bytes + c.bytes}
		}
		if far += inBucket; b.waiting != inBucket || b.isFar && number <= t.horizon.last || inBucket > 0 && !b.isFar {
			t.fatal(tb, "bucket %d, far %v, counts %d of %d", number, b.isFar, b.waiting, inBucket)
		}
		if b.isFar && number > t.horizon.to && number < t.horizon.next {
			t.fatal(tb, "bucket %d is far, and the next one is %d", number, t.horizon.next)
		}
	}
	inUse := 0
	for _, d := range t.lines.domains.byName {
		tasklists := map[string]int{}
		for g, n := range d.kinds {
			tasklists[t.groups.at(g).Tasklist]++
			if inUse++; kinds[g] != n || t.groups.at(g).queue.domain != d {
				t.fatal(tb, "%d buckets count %v, and %d do", n, t.groups.at(g).Group, kinds[g])
			}
		}
		if !maps.Equal(tasklists, d.tasklists) {
			t.fatal(tb, "tasklists %v have kinds of %s, and %v do", d.tasklists, d.name, tasklists)
		}
	}
	if inUse != len(kinds) {
		t.fatal(tb, "%d kinds are counted, and domains have %d", len(kinds), inUse)
	}
	if used != t.live || far != t.buckets.waiting {
		t.fatal(tb, "%d of %d are near, %d of %d are far", t.live, used, t.buckets.waiting, far)
	}
}

// checkTotals compares what queues and domains count with what waits.
func (t *Table) checkTotals(tb fataler, waiting map[*queue]int, totals map[*domain]Total) {
	tb.Helper()
	for _, q := range t.groups.queues {
		if q.waiting != waiting[q] {
			t.fatal(tb, "queue %v counts %d of %d", q.key, q.waiting, waiting[q])
		}
	}
	for name, d := range t.lines.domains.byName {
		if d.total != totals[d] {
			t.fatal(tb, "domain %s counts %v of %v", name, d.total, totals[d])
		}
	}
}

// checkDomains checks the heaps, who is apart, and who is next.
func (t *Table) checkDomains(tb fataler) {
	tb.Helper()
	uses, fronts := map[*domain]int{}, 0
	for _, q := range t.groups.queues {
		uses[q.domain]++
	}
	for n := 1; n < t.lines.cursor.lines(); n++ {
		d := t.lines.of[n].domain
		if uses[d]++; d.line != n || d.name != t.lines.cursor.Apart[n-1].Domain {
			t.fatal(tb, "line %d is of %+v", n, d)
		}
	}
	for name, d := range t.lines.domains.byName {
		if d.refs != uses[d] || d.line >= t.lines.cursor.lines() {
			t.fatal(tb, "domain %s counts %d of %d, line %d", name, d.refs, uses[d], d.line)
		}
		if in := d.front > 0; in != (d.line == 0 && d.heap.len() > 0) {
			t.fatal(tb, "domain %s is in front: %v", name, in)
		} else if in {
			fronts++
		}
		for i := 1; i < d.heap.len(); i++ {
			if t.entries.at(d.heap.order[i]).key().Compare(t.entries.at(d.heap.order[(i-1)/arity]).key()) < 0 {
				t.fatal(tb, "the heap of %s is out of order at %d", name, i)
			}
		}
	}
	if fronts != t.lines.domains.fronts.Len() || len(uses) != len(t.lines.domains.byName) {
		t.fatal(tb, "%d of %d domains in front, %d in use of %d", fronts, t.lines.domains.fronts.Len(), len(uses), len(t.lines.domains.byName))
	}
}

// checkQueues compares the queues with the groups in use.
func (t *Table) checkQueues(tb fataler, refs map[groupHandle]int) {
	tb.Helper()
	groupsOf := map[*queue]int{}
	for h := range refs {
		groupsOf[t.groups.at(h).queue]++
	}
	if len(groupsOf) != len(t.groups.queues) {
		t.fatal(tb, "%d queues in use, %d kept", len(groupsOf), len(t.groups.queues))
	}
	for q, n := range groupsOf {
		if q.refs != n {
			t.fatal(tb, "queue %v counts %d groups of %d", q.key, q.refs, n)
		}
	}
}

func (t *Table) fatal(tb fataler, format string, args ...any) {
	tb.Helper()
	tb.Fatalf("due table: "+format, args...)
}
