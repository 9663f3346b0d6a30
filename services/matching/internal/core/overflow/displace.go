package overflow

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// Query asks a partition about a limit: which attempts use its slots for the longest, and how many tasks wait.
type Query struct {
	Ref table.Ref
	// Most is how many attempts, and how many tasks are counted.
	Most int
	// Types are those of the tasks that wait, Group is their group, if it is the limit of one. ReadyBy is since when they are ready, Unix ms.
	Types   []string
	Group   string
	ReadyBy int64
}

// Holders is the answer.
type Holders struct {
	// Oldest are attempts that have not been asked to stop, in the order of their starts. Leaving counts those that have been.
	Oldest  []OldHolder
	Leaving int
	// Waiting counts the tasks that wait.
	Waiting int
}

// OldHolder is a running attempt.
type OldHolder struct {
	// Trigger names it: its version is that of the attempt.
	Trigger     ids.Trigger
	StartedAtMS int64
}

// Round is a question to all partitions about limits of a domain, whose oldest attempts are to make room. There is one at a time, and one in
// Every of each limit. It ends when all partitions have answered: of those asked to stop none may be counted twice. One that took
// longer than roundFor is void, since a partition was silent: what others said is not so any more.
type Round struct {
	Queries []Query
	at      time.Duration
	limits  []*limit.Limit
	// found is what the partitions have answered.
	found []Holders
	left  int
}

const (
	roundFor = 3 * time.Second
	// askedMax bounds the attempts that one question asks for, and the types that it names: it and its answer are a message each.
	askedMax = 4096
)

// ask asks which attempts are to make room for the tasks that wait.
func (s *Policies) ask(t Turn, limits []*limit.Limit, partitions int) *Round {
	if s.round != nil || len(limits) == 0 {
		return nil
	}
	r := &Round{at: t.Now, left: partitions}
	slices.SortStableFunc(limits, func(a, b *limit.Limit) int { return cmp.Compare(a.Over.At, b.Over.At) }) // what there is no room for is first next time
	room := askedMax
	for _, l := range limits {
		n, types := t.waitHere(l)
		if n == 0 {
			continue
		}
		most := min(n, l.Max, Max)
		if room -= most + len(types); room < 0 && len(r.Queries) > 0 {
			break
		}
		l.Over.At = t.Now + Every
		r.limits = append(r.limits, l)
		r.Queries = append(r.Queries, Query{Ref: l.Ref, Most: most, Types: types, Group: l.Group, ReadyBy: t.readyBy(l)})
	}
	if len(r.Queries) == 0 {
		return nil
	}
	s.round, r.found = r, make([]Holders, len(r.Queries))
	return r
}

// waitHere is how many triggers wait here for a limit, and of which types they are.
func (t Turn) waitHere(l *limit.Limit) (n int, types []string) {
	for _, w := range t.waitingFor(l) {
		for _, c := range w.Candidates {
			n += w.List.Index.TriggersIn(c.Column)
			types = append(types, c.Type)
		}
	}
	for i := range l.Ahead { // what was read ahead is in no column
		if a := &l.Ahead[i]; t.acts(l, a.List, a.Chunk.Type, a.Chunk.ReadyAt) {
			n += a.Chunk.Len()
			types = append(types, a.Chunk.Type)
		}
	}
	slices.Sort(types)
	return n, slices.Compact(types)
}

// Hear takes in what a partition has answered. After the last one it has attempts stopped.
func (s *Policies) Hear(t Turn, r *Round, found []Holders) {
	for i := range found[:min(len(found), len(r.found))] {
		all, one := &r.found[i], &found[i]
		all.Leaving += one.Leaving
		all.Waiting += one.Waiting
		all.Oldest = append(all.Oldest, one.Oldest...)
	}
	if r.left--; r.left > 0 || s.round != r {
		return
	}
	if s.round = nil; t.Leaving || t.Now-r.at > roundFor {
		return
	}
	for i, l := range r.limits {
		if l.Policy() == limit.CancelOldest && l.Overflows(t.Now) {
			here, _ := t.waitHere(l) // some may have started since it was asked, or be paused
			for _, st := range displace(l, &r.found[i], here) {
				t.Add(st)
			}
		}
	}
}

// displace are the oldest attempts of a limit that make room for the tasks that wait. One that was asked to stop before makes room for one of them.
func displace(l *limit.Limit, found *Holders, here int) (stops []grab.StopRequest) {
	slices.SortFunc(found.Oldest, func(a, b OldHolder) int {
		return cmp.Or(cmp.Compare(a.StartedAtMS, b.StartedAtMS), bytes.Compare(a.Trigger.ID[:], b.Trigger.ID[:]))
	})
	n := min(found.Waiting, here) - found.Leaving
	for _, o := range found.Oldest[:max(0, min(n, len(found.Oldest), Max))] {
		stops = append(stops, grab.StopRequest{Stop: grab.Stop{Trigger: o.Trigger, Domain: l.Domain.Name, Limit: l.Ref, Displace: true}, Limit: l})
	}
	return stops
}
