package dispatch

import (
	"errors"
	"fmt"
	"maps"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// Check says what is wrong with the lists, whose tasks are these, or nil. It looks at everything, so it is for tests and simulations.
func (x *Lists) Check(all []*Entry) error {
	there := make(map[*Entry]bool, len(all))
	counts, columns := make(map[tasklistKey][taskstate.Lapsed + 1]int64), make(map[*column]int)
	groups := make(map[*groupTasks]int64)
	for _, e := range all {
		there[e] = true
		columns[e.column]++
		if of := e.column.list.domain; of != x.domains[e.Domain] || int(e.at) >= len(of.tasks) || of.tasks[e.at] != e {
			return fmt.Errorf("task %s is not among those of its domain", e.ID)
		}
		if e.State.Finished() {
			continue
		}
		key := tasklistKey{e.Domain, e.Tasklist}
		if e.column.of != nil && (e.State == taskstate.Ready || e.State == taskstate.Backoff) {
			groups[e.column.of]++
		}
		c := counts[key]
		c[e.counted]++
		if due := e.counted == taskstate.Ready && e.State == taskstate.Backoff; e.counted != e.State && !due {
			return fmt.Errorf("task %s, %s, is counted as %s", e.ID, e.State, e.counted)
		}
		counts[key] = c
		if e.Attempt.Shard > 0 && e.State != taskstate.Running {
			return fmt.Errorf("the attempt of task %s, %s, is of shard %d", e.ID, e.State, e.Attempt.Shard)
		}
		if e.booked != (e.State == taskstate.Running && e.Attempt.Limits != nil) {
			return fmt.Errorf("task %s, %s in %q, is listed as booked: %v", e.ID, e.State, e.Attempt.Limits, e.booked)
		}
	}
	if err := x.DomainLists.check(x.lists); err != nil {
		return err
	}
	if len(x.order) != len(x.lists) || len(x.idle) > idleMax {
		return fmt.Errorf("%d tasklists are in order, %d are listed; %d columns are idle", len(x.order), len(x.lists), len(x.idle))
	}
	if next := x.sweep.next; next != nil && !next.waits {
		return fmt.Errorf("the sweep is at task %s, which does not wait for a grant", next.ID)
	}
	for key, l := range x.lists {
		if x.order[l.at] != l {
			return fmt.Errorf("tasklist %v is not at its place %d", key, l.at)
		}
		if err := l.check(columns, there); err != nil {
			return err
		}
		if counts[key] != l.active {
			return fmt.Errorf("tasklist %v counts %v, its tasks are %v", key, l.active, counts[key])
		}
		if err := l.checkGroups(groups); err != nil {
			return err
		}
	}
	return x.checkDeliveries(there)
}

// checkGroups compares what is counted per group, of which so many tasks are queued.
func (l *tasklist) checkGroups(queued map[*groupTasks]int64) error {
	columns := make(map[string]int)
	for key, c := range l.columns {
		if c.of != l.groups[key.group] {
			return fmt.Errorf("a column of group %q of tasklist %v counts elsewhere", key.group, l.key)
		}
		columns[key.group]++
	}
	for name, g := range l.groups {
		if g.Tasks != queued[g] || g.columns != columns[name] || name == "" || g.columns == 0 {
			return fmt.Errorf("group %q of tasklist %v counts %d tasks and %d columns, there are %d and %d", name, l.key, g.Tasks, g.columns, queued[g], columns[name])
		}
	}
	return nil
}

// check looks at the columns of a tasklist, which have so many tasks, and at the tasks that wait for a grant.
func (l *tasklist) check(columns map[*column]int, there map[*Entry]bool) error {
	tasks := 0
	for _, c := range l.columns {
		if c.tasks != columns[c] {
			return fmt.Errorf("column %v of tasklist %v counts %d tasks, it has %d", c.key, l.key, c.tasks, columns[c])
		}
		if c.tasks == 0 && !c.idle || c.list != l || c.pack != l.packs[c.key.packKey] {
			return fmt.Errorf("column %v of tasklist %v has no tasks and is not idle", c.key, l.key)
		}
		tasks += c.tasks
	}
	if err := l.checkRuns(there); err != nil {
		return err
	}
	waiting, before := 0, (*Entry)(nil)
	for e := l.sent.first; e != nil; before, e = e, e.after {
		waiting++
		grantable := e.State == taskstate.Ready || e.State == taskstate.Backoff
		if !e.waits || !there[e] || e.before != before || e.column.list != l || !grantable {
			return fmt.Errorf("task %s (%s, left %v) waits for a grant in tasklist %v", e.ID, e.State, !there[e], l.key)
		}
	}
	if l.sent.last != before || waiting > tasks {
		return fmt.Errorf("%d of %d tasks of tasklist %v wait for a grant, or not the last one does", waiting, tasks, l.key)
	}
	return nil
}

// checkRuns looks at the tasks of a tasklist that run: each is listed at the shard of its attempt.
func (l *tasklist) checkRuns(there map[*Entry]bool) error {
	running := int64(0)
	check := func(list *entryList, booked bool, shard uint16) error {
		before := (*Entry)(nil)
		for e := list.first; e != nil; before, e = e, e.after {
			running++
			if e.State != taskstate.Running || e.booked != booked || e.Attempt.Shard != shard || e.waits || !there[e] || e.before != before || e.column.list != l {
				return fmt.Errorf("task %s (%s, left %v, booked %v, of shard %d) runs in tasklist %v at %d", e.ID, e.State, !there[e], e.booked, e.Attempt.Shard, l.key, shard)
			}
		}
		if list.last != before {
			return fmt.Errorf("of tasklist %v not the last task that runs is the last", l.key)
		}
		return nil
	}
	at := map[uint16]*runs{0: &l.here}
	maps.Copy(at, l.elsewhere)
	for shard, of := range at {
		if int(shard) == l.shard+1 {
			return fmt.Errorf("tasklist %v lists its own shard %d among others", l.key, shard)
		}
		if err := errors.Join(check(&of.booked, true, shard), check(&of.unbooked, false, shard)); err != nil {
			return err
		}
	}
	if running != l.active[taskstate.Running] {
		return fmt.Errorf("%d tasks of tasklist %v are listed as running, %d run", running, l.key, l.active[taskstate.Running])
	}
	return nil
}

// checkDeliveries compares what may not have been delivered with the tasks.
func (x *Shards) checkDeliveries(there map[*Entry]bool) error {
	listed := 0
	for number, s := range x.by {
		for i, d := range s.owners {
			if s.number != number || d.shard != s || i > 0 && s.owners[i-1].epoch >= d.epoch {
				return fmt.Errorf("the owners of shard %d are out of order at epoch %d", number, d.epoch)
			}
			before, request := (*Entry)(nil), d.delivered+1
			for e := d.first; e != nil; before, e = e, e.grant.after {
				g := e.grant
				inLine := g.of == d && g.before == before && g.request >= request
				if !inLine || !there[e] || e.State != taskstate.Running {
					return fmt.Errorf("the grant of task %s, %s, by batch %d of shard %d is kept wrongly", e.ID, e.State, g.request, number)
				}
				request = g.request
				listed++
			}
			if d.last != before {
				return fmt.Errorf("shard %d, epoch %d: the last grant is not the last", number, d.epoch)
			}
		}
	}
	for e := range there {
		if e.grant != nil {
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("%d grants more are listed than tasks have", listed)
	}
	return nil
}

// check says what is wrong, if these are all tasklists.
func (d *DomainLists) check(all map[tasklistKey]*tasklist) error {
	n := 0
	for name, of := range d.domains {
		n += len(of.lists)
		for i, l := range of.lists {
			if l.key.domain != name || l.ofDomain != i || all[l.key] != l {
				return fmt.Errorf("tasklist %v, number %d, is number %d of the domain %s", l.key, l.ofDomain, i, name)
			}
		}
	}
	if n != len(all) {
		return fmt.Errorf("%d of %d tasklists are in domains", n, len(all))
	}
	return nil
}
