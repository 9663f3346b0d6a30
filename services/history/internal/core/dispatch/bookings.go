package dispatch

import (
	"bytes"
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
