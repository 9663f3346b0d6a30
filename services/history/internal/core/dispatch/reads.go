package dispatch

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

// BookingsQuery asks for running attempts of one matching shard.
type BookingsQuery struct {
	// Shard is its number.
	Shard int
	// Domain is empty for all.
	Domain string
	// Types are those of which all running attempts are asked for, All has those of any type; neither = only attempts
	// that hold a slot.
	Types []string
	All   bool
	// After is the last task of the page before.
	After ids.TaskID
	// BytesMax bounds the page.
	BytesMax int
}

// BookingsPage is some of them, in the order of their tasks.
type BookingsPage struct {
	Groups []BookingsGroup
	// Last is the last task here; zero if nothing follows.
	Last ids.TaskID
}

// BookingsGroup is attempts of one tasklist, type and group that hold the same path; nil = none.
type BookingsGroup struct {
	Domain, Tasklist, Type string
	// Group is empty where the tasks have none.
	Group  string
	Limits *taskstate.Path
	// Packed bookings (contracts/ids).
	Packed []byte
	// DeadlineAt is when the last of them must be over, Unix ms.
	DeadlineAt int64
}

// Bookings are the running attempts of a shard that hold a slot, or of some or all types. They are found without
// looking at tasks that do not run, or are of other tasklists.
func (x *Lists) Bookings(q BookingsQuery) (page BookingsPage) {
	const groupBytes = 64
	at := make(map[bookingsKey]int)
	size := 0
	for _, e := range x.running(&q) {
		key := bookingsKey{e.Domain, e.Tasklist, e.Type, e.Attempt.Limits.String(), e.Group()}
		i, ok := at[key]
		if !ok {
			size += groupBytes + len(key.domain) + len(key.tasklist) + len(key.taskType) + len(key.path) + len(key.group)
		}
		if size += ids.BookingBytes; size > q.BytesMax && len(page.Groups) > 0 {
			return page
		}
		if !ok {
			i = len(page.Groups)
			at[key] = i
			page.Groups = append(page.Groups, BookingsGroup{Domain: e.Domain, Tasklist: e.Tasklist, Type: e.Type, Group: e.Group(), Limits: e.Attempt.Limits})
		}
		g := &page.Groups[i]
		g.Packed = append(g.Packed, ids.Booking(e.ID, e.Version)...)
		g.DeadlineAt = max(g.DeadlineAt, e.Attempt.DeadlineAt)
		page.Last = e.ID
	}
	page.Last = ids.TaskID{}
	return page
}

// bookingsKey is what the attempts of a group have in common.
type bookingsKey struct{ domain, tasklist, taskType, path, group string }

// running are the attempts that are asked for, behind After, in the order of their tasks.
func (x *Lists) running(q *BookingsQuery) (all []*Entry) {
	add := func(list *entryList) {
		for e := list.first; e != nil; e = e.after {
			if bytes.Compare(e.ID[:], q.After[:]) > 0 && (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) {
				all = append(all, e)
			}
		}
	}
	for _, l := range x.order {
		runs := l.runsAt(q.Shard)
		if runs == nil || q.Domain != "" && q.Domain != l.key.domain {
			continue
		}
		add(&runs.booked)
		if q.All || len(q.Types) > 0 {
			add(&runs.unbooked)
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all
}

// HoldersLimitsMax is how many limits one question may be about, HoldersMax how many attempts of each it may ask for.
const HoldersLimitsMax, HoldersMax = 256, 256

// HoldersQuery asks who holds the slots of a limit for the longest, and how many tasks wait for one.
type HoldersQuery struct {
	Limit string
	// Most is how many attempts, and how many tasks that wait are counted.
	Most int
	// Types are those of the tasks that wait, Group is their group; empty = of any. They are ready since ReadyBy, Unix ms.
	Types   []string
	Group   string
	ReadyBy int64
}

// Holders is the answer.
type Holders struct {
	// Oldest have held their slots for the longest, of those that have not been asked to stop; in that order.
	Oldest []*taskstate.Task
	// Leaving counts those that have been, Waiting the tasks that wait.
	Leaving, Waiting int
}

// waitingKey is what the tasks that wait for some limits have in common; an empty group stands for any.
type waitingKey struct{ taskType, group string }

// Holders answers questions about limits of a domain, of attempts of any shard. It looks at what runs there, and at what waits.
func (x *Lists) Holders(domain string, queries []HoldersQuery) []Holders {
	all := make([]Holders, len(queries))
	byRef, byKey := make(map[string]int, len(queries)), make(map[waitingKey][]int)
	for i := range queries {
		q := &queries[i]
		byRef[q.Limit] = i
		for _, typ := range q.Types {
			byKey[waitingKey{typ, q.Group}] = append(byKey[waitingKey{typ, q.Group}], i)
		}
	}
	runs := func(x *runs) {
		for e := x.booked.first; e != nil; e = e.after {
			for _, ref := range e.Attempt.Limits.Refs() {
				if i, ok := byRef[ref]; ok {
					all[i].add(e, queries[i].Most)
				}
			}
		}
	}
	waits := func(e *Entry, some []int) {
		for _, i := range some {
			if h := &all[i]; e.ReadySince() <= queries[i].ReadyBy && h.Waiting < queries[i].Most {
				h.Waiting++
			}
		}
	}
	for _, l := range x.order {
		if l.key.domain != domain {
			continue
		}
		runs(&l.here)
		for _, x := range l.elsewhere {
			runs(x)
		}
		for e := l.sent.first; e != nil; e = e.after {
			waits(e, byKey[waitingKey{e.Type, ""}])
			if group := e.Group(); group != "" {
				waits(e, byKey[waitingKey{e.Type, group}])
			}
		}
	}
	return all
}

func (h *Holders) add(e *Entry, most int) {
	if e.CancelRequested {
		h.Leaving++
		return
	}
	h.Oldest = KeepFirst(h.Oldest, e.Task, most, compareStarts)
}

func compareStarts(a, b *taskstate.Task) int {
	return cmp.Or(cmp.Compare(a.Attempt.StartedAt, b.Attempt.StartedAt), bytes.Compare(a.ID[:], b.ID[:]))
}

// KeepFirst adds one to the first most of some, which are sorted. To sort all that match would hold up the partition
// for everybody, whenever somebody looks at a flood.
func KeepFirst[T any](all []T, one T, most int, compare func(a, b T) int) []T {
	if len(all) >= most && (most <= 0 || compare(one, all[most-1]) >= 0) {
		return all
	}
	at, known := slices.BinarySearchFunc(all, one, compare)
	if known {
		return all
	}
	all = slices.Insert(all, at, one)
	return all[:min(len(all), most)]
}

// WorkerKey names a worker of a domain that sends signs of life.
type WorkerKey struct{ Domain, ID string }

// AttemptsOf are the running attempts of some workers, in the order of their tasks.
func (x *Lists) AttemptsOf(all []WorkerKey) (running []*taskstate.Task) {
	wanted := make(map[WorkerKey]bool, len(all))
	domains := make(map[string]bool)
	for _, w := range all {
		wanted[w], domains[w.Domain] = true, true
	}
	for _, l := range x.order {
		if !domains[l.key.domain] {
			continue
		}
		for e := range l.attempts() {
			if id := e.Attempt.Worker.ID(); id != "" && wanted[WorkerKey{e.Domain, id}] {
				running = append(running, e.Task)
			}
		}
	}
	slices.SortFunc(running, func(a, b *taskstate.Task) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return running
}

// GaveSigns are the workers of running attempts that gave signs of life when these began, and how often, ms.
func (x *Lists) GaveSigns() map[WorkerKey]int64 {
	all := make(map[WorkerKey]int64)
	for _, l := range x.order {
		for e := range l.attempts() {
			if every := e.Attempt.Worker.SignsEvery(); every > 0 {
				all[WorkerKey{e.Domain, e.Attempt.Worker.ID()}] = every
			}
		}
	}
	return all
}

// attempts are those that run of the tasklist, in no order.
func (l *tasklist) attempts() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, of := range append(slices.Collect(maps.Values(l.elsewhere)), &l.here) {
			for _, first := range [...]*Entry{of.booked.first, of.unbooked.first} {
				for e := first; e != nil; e = e.after {
					if !yield(e) {
						return
					}
				}
			}
		}
	}
}

// WorkerRuns is what a worker runs.
type WorkerRuns struct {
	Count int64
	// Oldest are those that have been running for the longest, in that order.
	Oldest []*taskstate.Task
}

// WorkersRun is what workers of a domain run, those with these ids: all are counted, and at most so many are listed.
func (x *Lists) WorkersRun(domain string, ids []string, most int) map[string]*WorkerRuns {
	all := make(map[string]*WorkerRuns, len(ids))
	for _, id := range ids {
		all[id] = &WorkerRuns{}
	}
	for _, l := range x.order {
		if l.key.domain != domain {
			continue
		}
		for e := range l.attempts() {
			w := all[e.Attempt.Worker.ID()]
			if w == nil {
				continue
			}
			w.Count++
			w.Oldest = KeepFirst(w.Oldest, e.Task, most, compareStarts)
		}
	}
	return all
}

// StuckQuery asks for the attempts of a domain that run for too long.
type StuckQuery struct {
	Domain string
	// Tasklist and Type are those of their tasks; empty = any.
	Tasklist, Type string
	// AfterMS is after how long an attempt of a type is stuck.
	AfterMS func(typ string) int64
	NowMS   int64
	// Most is how many are listed.
	Most int
}

// Stuck are the attempts that run for longest, and how many are stuck in all. It visits attempts only, however many tasks wait.
func (d *DomainLists) Stuck(q *StuckQuery) (oldest []*taskstate.Task, found int64) {
	of := d.domains[q.Domain]
	if of == nil {
		return nil, 0
	}
	after := make(map[string]int64) // the settings of a type are read once
	for _, l := range of.lists {
		if q.Tasklist != "" && q.Tasklist != l.key.tasklist {
			continue
		}
		for e := range l.attempts() {
			if q.Type != "" && q.Type != e.Type {
				continue
			}
			ms, known := after[e.Type]
			if !known {
				ms = q.AfterMS(e.Type)
				after[e.Type] = ms
			}
			if q.NowMS-e.Attempt.StartedAt > ms {
				found++
				oldest = KeepFirst(oldest, e.Task, q.Most, compareStarts)
			}
		}
	}
	return oldest, found
}
