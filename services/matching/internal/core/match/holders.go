package match

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

// HoldersQuery asks a partition about a limit: who holds its slots for the longest, and how many tasks wait.
type HoldersQuery struct {
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

// round is a question to all partitions about limits of a domain, whose oldest attempts are to make room. There is one at a time, and one in
// overflowEvery of each limit. It ends when all partitions have answered: of those asked to stop none may be counted twice. One that took
// longer than roundFor is void, since a partition was silent: what others said is not so any more.
type round struct {
	at     time.Duration
	limits []*limit.Limit
	// found is what the partitions have answered.
	found []Holders
	left  int
}

const (
	roundFor = 3 * time.Second
	// askedMax bounds the attempts that one question asks for, and the types that it names: it and its answer are a message each.
	askedMax = 4096
)

// askHolders asks who is to make room for what waits.
func (s *Shard) askHolders(d *domain, limits []*limit.Limit) {
	if d.round != nil || len(limits) == 0 {
		return
	}
	r := &round{at: s.now.Mono, left: s.cfg.Partitions}
	var queries []HoldersQuery
	slices.SortStableFunc(limits, func(a, b *limit.Limit) int { return cmp.Compare(a.Over.At, b.Over.At) }) // what there is no room for is first next time
	room := askedMax
	for _, l := range limits {
		n, types := s.waitHere(l)
		if n == 0 {
			continue
		}
		most := min(n, l.Max, overflowMax)
		if room -= most + len(types); room < 0 && len(queries) > 0 {
			break
		}
		l.Over.At = s.now.Mono + overflowEvery
		r.limits = append(r.limits, l)
		queries = append(queries, HoldersQuery{Ref: l.Ref, Most: most, Types: types, Group: l.Group, ReadyBy: s.readyBy(l)})
	}
	if len(queries) == 0 {
		return
	}
	d.round, r.found = r, make([]Holders, len(queries))
	for p := range s.cfg.Partitions {
		s.questions.Add(asked{Kind: AskHolders, Partition: p, Domain: d.Name, About: subject{holders: queries, round: r}})
	}
}

// waitHere is how many triggers wait here for a limit, and of which types they are.
func (s *Shard) waitHere(l *limit.Limit) (n int, types []string) {
	for _, w := range s.waitingFor(l) {
		var here []string
		for _, c := range w.want.Candidates {
			if l.Of != nil {
				n += w.list.index.InColumn(c.Column)
			}
			here = append(here, c.Type)
		}
		slices.Sort(here)
		if here = slices.Compact(here); l.Of == nil {
			n += w.list.index.TriggersOf(here)
		}
		types = append(types, here...)
	}
	for i := range l.Ahead { // what was read ahead is in no column
		if a := &l.Ahead[i]; s.acts(l, s.listOf(a.List), a.Chunk.Type, a.Chunk.ReadyAt) {
			n += a.Chunk.Len()
			types = append(types, a.Chunk.Type)
		}
	}
	slices.Sort(types)
	return n, slices.Compact(types)
}

// heldBy takes in what a partition has answered.
func (s *Shard) heldBy(q *asked, found []Holders) {
	r, d := q.About.round, s.domains[q.Domain]
	for i := range found[:min(len(found), len(r.found))] {
		all, one := &r.found[i], &found[i]
		all.Leaving += one.Leaving
		all.Waiting += one.Waiting
		all.Oldest = append(all.Oldest, one.Oldest...)
	}
	if r.left--; r.left > 0 || d == nil || d.round != r {
		return
	}
	if d.round = nil; s.drain.on || s.now.Mono-r.at > roundFor {
		return
	}
	for i, l := range r.limits {
		if l.Policy() == limit.CancelOldest && l.Overflows(s.now.Mono) {
			here, _ := s.waitHere(l) // some may have started since it was asked, or be paused
			s.displace(l, &r.found[i], here)
		}
	}
}

// displace has the oldest attempts of a limit make room for the tasks that wait. One that was asked to stop before makes room for one of them.
func (s *Shard) displace(l *limit.Limit, found *Holders, here int) {
	slices.SortFunc(found.Oldest, func(a, b OldHolder) int {
		return cmp.Or(cmp.Compare(a.StartedAtMS, b.StartedAtMS), bytes.Compare(a.Trigger.ID[:], b.Trigger.ID[:]))
	})
	n := min(found.Waiting, here) - found.Leaving
	for _, o := range found.Oldest[:max(0, min(n, len(found.Oldest), overflowMax))] {
		if o.Trigger.ID.Partition() >= s.cfg.Partitions {
			s.fx.Counts.Malformed++
			continue
		}
		s.grabs.AddStop(grab.StopRequest{Stop: grab.Stop{Trigger: o.Trigger, Domain: l.Domain.Name, Limit: l.Ref, Displace: true}, Limit: l})
	}
}
