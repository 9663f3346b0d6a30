package limit

import (
	"fmt"
	"slices"
)

// Check counts again, the slow way, what the limits of a domain count as they go. It is for tests. lists are the tasklists of the domain.
func (d *Domain) Check(lists []*List) error {
	if len(d.Limits) != len(d.Met) {
		return fmt.Errorf("%d limits, %d in order", len(d.Limits), len(d.Met))
	}
	groups := 0
	for ref, l := range d.Limits {
		if l.Ref != ref || l.unbooked != countUnbooked(l) {
			return fmt.Errorf("%s is listed as %s, and counts %d unbooked", l.Ref, ref, l.unbooked)
		}
		if len(l.Ahead) > 0 && l.Blocked == 0 || !slices.IsSortedFunc(l.Ahead, Ahead.compare) {
			return fmt.Errorf("%s is blocked: %d; read ahead: %+v", ref, l.Blocked, l.Ahead)
		}
		if l.ByGroup == nil {
			continue
		}
		groups += len(l.ByGroup.Limits)
		if err := d.checkGroups(l); err != nil {
			return err
		}
	}
	if all, line := len(d.Rings[ringAll].all), len(d.Rings[RingLine].all); all != groups || line > groups {
		return fmt.Errorf("%d groups, %d and %d to be looked at", groups, all, line)
	}
	if err := d.checkAhead(lists); err != nil {
		return err
	}
	return d.checkWaiters(lists)
}

func countUnbooked(l *Limit) (n int) {
	for _, h := range l.Slots {
		if h.unbooked {
			n++
		}
	}
	return n
}

func (d *Domain) checkGroups(of *Limit) error {
	unsaid := 0
	for group, l := range of.ByGroup.Limits {
		if l.Group != group || l.Of != of || l.Ref != of.Ref.Of(group) || d.Limit(l.Ref) != l || d.Rings[ringAll].all[l.rings[ringAll]-1] != l {
			return fmt.Errorf("%s is not known as what it is", l.Ref)
		}
		if l.unsaid {
			unsaid++
		}
		if len(l.Parked) > 0 && l.Blocked == 0 {
			return fmt.Errorf("%v waits for a slot of %s, which may be free", l.Parked, l.Ref)
		}
		for _, p := range l.Parked {
			if d.Open && p.List.Index.InColumn(p.At) > 0 && p.List.Index.Aside(p.At) {
				return fmt.Errorf("%v of %s is not aside", p.At, l.Ref)
			}
		}
	}
	if unsaid != of.ByGroup.unsaid {
		return fmt.Errorf("of %s %d limits are unsaid, %d are counted", of.Ref, unsaid, of.ByGroup.unsaid)
	}
	return nil
}

// checkAhead counts what was read ahead, by type.
func (d *Domain) checkAhead(lists []*List) error {
	for _, l := range lists {
		by := map[string]int{}
		for _, lim := range d.Limits {
			for _, a := range lim.Ahead {
				if a.List == l {
					by[a.Chunk.Type] += a.Chunk.Len()
				}
			}
		}
		for typ, n := range l.Ahead {
			if by[typ] != n || len(by) != len(l.Ahead) {
				return fmt.Errorf("%v: %v are ahead, %v are counted", l.Tasklist, by, l.Ahead)
			}
		}
	}
	return nil
}

// checkWaiters: each stands in one line, at its place, or is tried by the call under way.
func (d *Domain) checkWaiters(lists []*List) error {
	waits, waited := map[*List]int{}, map[*Limit]int{}
	for _, lim := range d.waited {
		waited[lim]++
	}
	for ref, lim := range d.Limits {
		free := 0
		for i := range lim.waiters.lines {
			for w := lim.waiters.lines[i].first; w != nil; w = w.next {
				free++
				if w.tried || lim.waiters.all[w.list] != w || w.next != nil && w.next.order <= w.order {
					return fmt.Errorf("%v stands in the line of %s at the wrong place", w.list.Tasklist, ref)
				}
			}
		}
		for l, w := range lim.waiters.all {
			waits[l]++
			if w.tried {
				free++
				if d.Call == nil {
					return fmt.Errorf("%v is tried for %s by no call", l.Tasklist, ref)
				}
			}
		}
		if free != len(lim.waiters.all) || lim.waited != (waited[lim] > 0) || waited[lim] > 1 || free > 0 && !lim.waited {
			return fmt.Errorf("%s: %d wait, %d stand in line or are tried; it is named %d times", ref, len(lim.waiters.all), free, waited[lim])
		}
	}
	for _, l := range lists {
		if l.waits != waits[l] {
			return fmt.Errorf("%v waits for %d limits, %d are counted", l.Tasklist, waits[l], l.waits)
		}
	}
	return nil
}

// CheckIdle checks that a tasklist waits only for a slot that is not free. It is for tests, while nothing is under way.
func (d *Domain) CheckIdle() error {
	for ref, l := range d.Limits {
		if w := l.waiters.first(); w != nil && !l.Closed() {
			return fmt.Errorf("%v waits for a slot of %s, which may be free", w.list.Tasklist, ref)
		}
	}
	return nil
}
