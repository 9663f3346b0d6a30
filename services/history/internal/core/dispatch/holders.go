package dispatch

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
)

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
	at, _ := slices.BinarySearchFunc(all, one, compare)
	all = slices.Insert(all, at, one)
	return all[:min(len(all), most)]
}
