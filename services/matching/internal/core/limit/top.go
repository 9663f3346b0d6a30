package limit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// topMax is how many limits one answer tells of: with ten holders and waiters each they take a third of a megabyte.
	topMax = 250
	// topLooksMax is how many attempts, and how many columns of tables, one answer counts: it holds up the shard, by 2 ms at most.
	// topSlotsMax is how many attempts of one limit are. A type of a tasklist counts as looksPerType.
	topLooksMax, topSlotsMax, looksPerType = 65_536, 16_384, 2 * table.PriorityIdle
	// topGroupsMax is how many limits of single groups it looks at.
	topGroupsMax = 32_768
)

// InUse is how a shard uses a limit.
type InUse struct {
	Ref table.Ref
	// Max is 0 of a rate, which is full while an attempt has to wait for it.
	Max int
	// Running counts attempts that use a slot, Entry what the tables count for the shard. Used is what they counted for all shards when they
	// were asked last.
	Running, Entry, Used int
	// Shadow: it holds nothing up. WouldWait counts the attempts of the last hour that it would have held up.
	Shadow    bool
	WouldWait int64
	// Rejected counts the tasks, Displaced the attempts of the last hour that its policy ended.
	Rejected, Displaced int64
	// Full is for how long it was full within Observed, an hour at most; FullFor since when it is, 0 = it is not.
	Full, Observed, FullFor time.Duration
	// Reclaimed counts slots that were found to be held by attempts that were over.
	Reclaimed int64
	// Closed: no slot or start can be booked now, Counting: since the attempts that use it are being counted. Next is when a closed rate is tried again.
	Closed, Counting bool
	Next             time.Duration
	// Holders have their slots for the longest, Waiters wait for the longest.
	Holders []SlotHolder
	Waiters []SlotWaiter
	// Lists is how many tasklists wait, Tasks how many triggers they hold, as far as was looked.
	Lists, Tasks int
	limit        *Limit
}

// SlotHolder is an attempt that uses a slot.
type SlotHolder struct {
	ID  ids.TaskID
	For time.Duration
}

// SlotWaiter is a tasklist that waits for a slot.
type SlotWaiter struct {
	Tasklist string
	Priority int
	For      time.Duration
	Tasks    int
}

// LimitsInUse are the limits of a domain that are in use here or were full within the last hour: those that were full for
// the longest, then those with the most waiting; each with up to so many holders and waiters. leftOut counts further ones.
func (d *Domain) LimitsInUse(each int, now time.Duration) (all []InUse, leftOut int) {
	looks := topLooksMax
	met, left := d.mostUsed()
	for _, l := range met {
		u := standing(l, now)
		if !l.Paused && u.Running+u.Entry+u.Lists+int(u.Full)+int(u.WouldWait+u.Rejected+u.Displaced) > 0 {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, InUse.compare)
	leftOut = left + max(0, len(all)-topMax)
	all = all[:min(len(all), topMax)]
	for i := range all {
		all[i].limit.holders(&all[i], each, now, &looks)
		all[i].limit.waiting(&all[i], each, now, &looks)
	}
	return all, leftOut
}

// waitedMost is how many limits of one domain Waited returns, so that a domain whose groups all wait leaves room for others.
const waitedMost = 5

// Looks is how many limits may be looked at for one answer about all domains.
const Looks = topLooksMax

// Waited are the limits of a domain for which tasklists wait and that have no slot or start for them: those that have been full for the longest, without
// holders and waiters. It takes the limits that it looks at off looks.
func (d *Domain) Waited(now time.Duration, looks *int) (all []InUse) {
	add := func(l *Limit) {
		if l.Paused || l.Shadow {
			return
		}
		if u := standing(l, now); u.Lists > 0 && u.FullFor > 0 {
			all = longest(all, u, waitedMost, func(a, b InUse) int {
				return cmp.Or(cmp.Compare(b.FullFor, a.FullFor), strings.Compare(string(a.Ref), string(b.Ref)))
			})
		}
	}
	waited := d.waited[:min(len(d.waited), *looks)]
	*looks -= len(waited)
	for _, l := range waited {
		add(l)
	}
	groups := d.Rings[ringAll].all
	groups = groups[:min(len(groups), *looks)]
	*looks -= len(groups)
	for _, l := range groups {
		if len(l.Parked) > 0 && !l.waited {
			add(l)
		}
	}
	return all
}

// Covering are the limits that cover tasks of a type and a group in a tasklist, those in shadow left out, each with up to so many holders.
func (d *Domain) Covering(tasklist, typ, group string, each int, now time.Duration) (all []InUse) {
	looks := topLooksMax
	for l := range d.paths.covering(tasklist, typ) {
		if l.PerGroup {
			one := l.ByGroup.Limits[group]
			if group == "" || one == nil && !l.Counting() {
				continue
			}
			if one != nil {
				l = one
			}
		}
		if l.Paused || l.Shadow {
			continue
		}
		u := standing(l, now)
		l.holders(&u, each, now, &looks)
		l.waiting(&u, 0, now, &looks)
		all = append(all, u)
	}
	return all
}

// standing is how a limit is used, without holders and waiters.
func standing(l *Limit, now time.Duration) InUse {
	u := InUse{
		Ref: l.Ref, Max: l.Max, Running: len(l.Slots), Entry: l.Entry, Used: max(l.used, l.Entry), Reclaimed: l.Usage.reclaimed,
		Lists: len(l.waiters.all) + len(l.parkedLists()), Closed: l.Closed(), Counting: l.Counting() || l.Blocked == table.Restoring, limit: l,
	}
	u.Full, u.Observed, u.FullFor = l.Usage.Hour(now)
	u.Shadow, u.WouldWait = l.Shadow, l.Usage.beyond.Sum(now)
	u.Rejected, u.Displaced = l.Usage.Rejected.Sum(now), l.Usage.Displaced.Sum(now)
	if l.rated() {
		u.Max, u.Next = 0, max(0, l.at-now)
	}
	return u
}

// mostUsed are the limits of a domain, and those of single groups, the full ones first, as far as they are looked at. left counts the others.
func (d *Domain) mostUsed() (all []*Limit, left int) {
	all = slices.Clone(d.Met)
	most, groups := len(all)+topGroupsMax, d.Rings[ringAll].all
	for _, full := range [...]bool{true, false} {
		for _, l := range groups {
			if (l.Blocked != 0) == full && len(all) < most {
				all = append(all, l)
			}
		}
	}
	return all, len(d.Met) + len(groups) - len(all)
}

// parkedLists are the first columns that wait for a group's slot of each tasklist.
func (l *Limit) parkedLists() map[*List]Parked {
	if len(l.Parked) == 0 {
		return nil
	}
	all := map[*List]Parked{}
	for _, p := range l.Parked {
		if first, ok := all[p.List]; !ok || p.since < first.since {
			all[p.List] = p
		}
	}
	return all
}

func (u InUse) compare(o InUse) int {
	return cmp.Or(cmp.Compare(o.Full, u.Full), cmp.Compare(o.Lists, u.Lists), cmp.Compare(o.Running, u.Running), strings.Compare(string(u.Ref), string(o.Ref)))
}

// holders finds the attempts that have had slots for the longest, as far as there are looks.
func (l *Limit) holders(u *InUse, each int, now time.Duration, looks *int) {
	left := min(*looks, topSlotsMax)
	*looks -= min(left, len(l.Slots))
	for m, h := range l.Slots {
		if left == 0 {
			return
		}
		left--
		if !h.undecided {
			u.Holders = longest(u.Holders, SlotHolder{ids.TaskID(m[:16]), now - h.since}, each, func(a, b SlotHolder) int {
				return cmp.Or(cmp.Compare(b.For, a.For), slices.Compare(a.ID[:], b.ID[:]))
			})
		}
	}
}

// waiting finds the tasklists that have waited for the longest, and counts what waits.
func (l *Limit) waiting(u *InUse, each int, now time.Duration, looks *int) {
	add := func(one SlotWaiter) {
		u.Tasks += one.Tasks
		u.Waiters = longest(u.Waiters, one, each, func(a, b SlotWaiter) int {
			return cmp.Or(cmp.Compare(b.For, a.For), strings.Compare(a.Tasklist, b.Tasklist))
		})
	}
	tasks := map[*List]int{}
	for _, p := range l.Parked {
		tasks[p.List] += p.List.Index.TriggersIn(p.At)
	}
	for of, p := range l.parkedLists() {
		add(SlotWaiter{Tasklist: of.Name, Priority: min(p.At.Priority, table.PriorityLast), For: now - p.since, Tasks: tasks[of]})
	}
	for _, w := range l.waiters.all {
		add(SlotWaiter{Tasklist: w.list.Name, Priority: min(w.priority, table.PriorityLast), For: now - w.since, Tasks: l.tasksOf(w.list, looks)})
	}
}

// tasksOf is how many triggers of a tasklist a limit covers, as far as there are looks.
func (l *Limit) tasksOf(of *List, looks *int) int {
	if len(l.Types) == 0 {
		return of.Index.Triggers() + of.ReadAhead()
	}
	n := 0
	for _, typ := range l.Types {
		n += of.Ahead[typ]
		if *looks > 0 {
			*looks = max(0, *looks-looksPerType)
			n += of.Index.TriggersOfType(typ)
		}
	}
	return n
}

// longest keeps the first most of those that there are and one more, in their order.
func longest[T any](all []T, one T, most int, compare func(a, b T) int) []T {
	at, _ := slices.BinarySearchFunc(all, one, compare)
	if at >= most {
		return all
	}
	all = slices.Insert(all, at, one)
	return all[:min(len(all), most)]
}
