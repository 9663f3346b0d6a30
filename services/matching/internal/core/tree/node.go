package tree

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

const (
	// reportFor is for how long a report of a partition counts.
	reportFor = 2500 * time.Millisecond
	// wantedMax is how many types one message names as wanted, half of them in turn; wantedLooksMax how many a partition looks at for that.
	wantedMax, wantedLooksMax = 16, 1024
	// PresentMax is how many types a tasklist that reports its types names.
	PresentMax = 256
)

// Node is a partition of a tasklist L in its tree.
type Node[L any] struct {
	*limit.List
	Polls *pairing.Queue[L, grab.Grant]
	// below are the partitions that have said something within reportFor, in the order of their numbers.
	below []below
	// namedAt is where the turn of the less urgent types is that polls are wanted for.
	namedAt int
	// due: in Tree.due. sentAt is when its parent was last sent a report, wanted that polls were wanted then, for so many triggers.
	due, wanted bool
	sentAt      time.Duration
	triggers    int
	// passes: in Tree.passing.
	passes bool
	load
}

// below is a partition below another one.
type below struct {
	Branch
	at time.Duration
}

// Idle reports whether nothing is known of partitions below, and nothing is to be sent.
func (n *Node[L]) Idle() bool { return !n.kept && len(n.below) == 0 && !n.due && !n.passes }

// hear takes in what a partition below reports.
func (n *Node[L]) hear(b *Branch, now time.Duration) {
	i, found := slices.BinarySearchFunc(n.below, b.Partition, func(o below, p int) int { return cmp.Compare(o.Partition, p) })
	if !found {
		n.below = slices.Insert(n.below, i, below{})
	}
	n.below[i] = below{Branch: *b, at: now}
}

// outdated forgets what partitions have said that is not known to be so any more.
func (n *Node[L]) outdated(now time.Duration) {
	n.below = slices.DeleteFunc(n.below, func(b below) bool { return now-b.at >= reportFor })
}

// wantedFrom is what a partition below wants a poll for.
type wantedFrom struct {
	*Wanted
	to int
}

// wantedBelow is what polls are wanted for below, the most urgent and oldest first.
func (n *Node[L]) wantedBelow() []wantedFrom {
	var all []wantedFrom
	for i := range n.below {
		for j := range n.below[i].Wanted {
			if w := &n.below[i].Wanted[j]; w.Triggers > 0 {
				all = append(all, wantedFrom{w, n.below[i].Partition})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wantedFrom) int { return a.compare(*b.Wanted) })
	return all
}

// branch is what a partition has to report.
func (n *Node[L]) branch(now time.Duration) Branch {
	n.outdated(now)
	b := Branch{Tasklist: n.Tasklist, Present: n.Present()}
	at := map[table.Column]int{}
	want := func(w Wanted) {
		w.Group = "" // all groups of a type together
		i, known := at[w.Column]
		if !known {
			at[w.Column] = len(b.Wanted)
			b.Wanted = append(b.Wanted, w)
			return
		}
		o := &b.Wanted[i]
		o.ReadyAt, o.Limited, o.Triggers = min(o.ReadyAt, w.ReadyAt), o.Limited || w.Limited, o.Triggers+w.Triggers
	}
	if !n.Down() {
		for _, c := range n.Index.Candidates(nil, 0, wantedLooksMax, func(at table.Column) bool { return n.Polls.Takes(at.Type) || n.Lacks(at) }) {
			want(Wanted{Column: c.Column, ReadyAt: c.Head, Limited: n.TypePath(c.Type) != limit.Unlimited, Triggers: max(1, n.Index.TriggersIn(c.Column))})
		}
	}
	for _, w := range n.wantedBelow() {
		if !n.Polls.Takes(w.Type) {
			want(*w.Wanted)
		}
	}
	slices.SortStableFunc(b.Wanted, Wanted.compare)
	b.Wanted = n.inTurn(b.Wanted)
	return b
}

// inTurn is as much of what polls are wanted for as one message names: the most urgent half of it, and others in turn. Types that no worker
// polls for do not keep it from naming those that one does.
func (n *Node[L]) inTurn(all []Wanted) []Wanted {
	if len(all) <= wantedMax {
		return all
	}
	const half = wantedMax / 2
	rest := all[half:]
	first := n.namedAt % len(rest)
	n.namedAt = first + half
	named := slices.Clone(all[:half])
	for i := range half {
		named = append(named, rest[(first+i)%len(rest)])
	}
	slices.SortStableFunc(named, Wanted.compare)
	return named
}

// Present is types of which triggers are in the table, or were read ahead of it, and will be had in time; here or below.
func (n *Node[L]) Present() []string {
	var all []string
	if !n.Down() {
		all = firstTypes(slices.AppendSeq(n.Index.Types(PresentMax), maps.Keys(n.Ahead)))
	}
	for i := range n.below {
		all = append(all, n.below[i].Present...)
	}
	return firstTypes(all)
}

// firstTypes are PresentMax of some types at most, sorted, each once.
func firstTypes(all []string) []string {
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), PresentMax)]
}

// Parent is the partition that a report is for; ok is false if it is malformed.
func (b *Branch) Parent() (parent table.Tasklist, ok bool) {
	if b.Domain == "" || b.Name == "" || b.Partition < 1 || b.Partition >= ids.PartitionsMax {
		return parent, false
	}
	return table.Tasklist{Domain: b.Domain, Name: b.Name, Partition: ids.ParentPartition(b.Partition)}, true
}
