// Package gather makes one answer out of what several owners tell.
//
// Owns: how counts, slots, pollers, workers and limits of partitions and shards are added up or joined. Never does: ask an owner, or cut an answer to
// its size in bytes. On failure: nothing can fail.
package gather

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// Description adds up what the owners know of a tasklist. Slots are those of the whole domain, whichever shard is asked: the highest report counts,
// since a shard may lag.
func Description(tasklist string, parts []*yardv1.DescribeTasklistResponse) *yardv1.DescribeTasklistResponse {
	out := &yardv1.DescribeTasklistResponse{Tasklist: tasklist}
	slots := map[string]*yardv1.SlotUse{}
	for _, p := range parts {
		out.Ready += p.Ready
		out.Running += p.Running
		out.Backoff += p.Backoff
		out.Waiting += p.Waiting
		out.UnreadBatches += p.UnreadBatches
		out.LaggingLanes += p.LaggingLanes
		out.OldestReadyMs = max(out.OldestReadyMs, p.OldestReadyMs)
		out.WaitingPolls += p.WaitingPolls
		out.Pollers += p.Pollers
		out.Completed += p.Completed
		out.Failed += p.Failed
		out.Dead += p.Dead
		out.Expired += p.Expired
		out.PerPartition = append(out.PerPartition, p.PerPartition...)
		for _, s := range p.Slots {
			if known := slots[s.Ref]; known == nil {
				slots[s.Ref] = s
				out.Slots = append(out.Slots, s)
			} else {
				known.InUse = max(known.InUse, s.InUse)
			}
		}
	}
	slices.SortFunc(out.PerPartition, func(a, b *yardv1.TasklistPartition) int { return cmp.Compare(a.Partition, b.Partition) })
	slices.SortFunc(out.Slots, func(a, b *yardv1.SlotUse) int { return cmp.Compare(a.Ref, b.Ref) })
	return out
}

// SeveralHavePollers tells whether the sum may count a worker more than once: it polled several partitions.
func SeveralHavePollers(parts []*yardv1.DescribeTasklistResponse) bool {
	n := 0
	for _, p := range parts {
		if p.Pollers > 0 {
			n++
		}
	}
	return n > 1
}

// Queues are those of each partition, from the first one on; one that did not answer has its error.
func Queues(first int, parts []*rpcv1.DescribePartitionResponse, errs []error) []*yardv1.PartitionQueues {
	all := make([]*yardv1.PartitionQueues, len(parts))
	for i, part := range parts {
		if all[i] = part.GetQueues(); errs[i] != nil || all[i] == nil { // nil: it is of an older version
			all[i] = &yardv1.PartitionQueues{Partition: int32(first + i), Error: fmt.Sprint(cmp.Or(errs[i], errOlder))}
		}
	}
	return all
}

var errOlder = errors.New("its owner is of an older version")

// Tasklists adds up what the owners tell, beside the settings, the pauses and the drains, sorted by name.
func Tasklists(settings []*yardv1.Tasklist, paused, drained map[string]*yardv1.Pause, parts [][]*yardv1.ListedTasklist) []*yardv1.ListedTasklist {
	byName := make(map[string]*yardv1.ListedTasklist, len(settings))
	for _, s := range settings {
		byName[s.Name] = &yardv1.ListedTasklist{Name: s.Name, Settings: s}
	}
	named := func(name string) *yardv1.ListedTasklist {
		if byName[name] == nil {
			byName[name] = &yardv1.ListedTasklist{Name: name}
		}
		return byName[name]
	}
	for name, p := range paused {
		named(name).Pause = p
	}
	for name, p := range drained {
		named(name).Drain = p
	}
	for _, part := range parts {
		for _, l := range part {
			sum := named(l.Name)
			sum.Ready += l.Ready
			sum.Running += l.Running
			sum.Backoff += l.Backoff
			sum.Waiting += l.Waiting
		}
	}
	all := make([]*yardv1.ListedTasklist, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

// Pollers joins the pages of several shards. Known for as long as by the newest owner.
func Pollers(parts []*rpcv1.DescribeShardResponse) *rpcv1.DescribeShardResponse {
	out := &rpcv1.DescribeShardResponse{KnownForMs: math.MaxInt64}
	var pages []paging.Page[*yardv1.Poller]
	for _, d := range parts {
		out.KnownForMs = min(out.KnownForMs, d.KnownForMs)
		pages = append(pages, paging.Page[*yardv1.Poller]{All: d.ListedPollers, More: d.More})
	}
	out.ListedPollers, out.More = paging.Merge(pages, byWorker, samePoller)
	return out
}

// byWorker is the order of the pages: a worker without a name comes last.
func byWorker(a, b *yardv1.Poller) int {
	if (a.Worker == "") != (b.Worker == "") {
		return cmp.Compare(len(b.Worker), len(a.Worker))
	}
	return strings.Compare(a.Worker, b.Worker)
}

// samePoller joins what two shards know of a worker: its last poll, and all that wait.
func samePoller(a, b *yardv1.Poller) *yardv1.Poller {
	if b.SeenAgoMs < a.SeenAgoMs {
		a, b = b, a
	}
	a.WaitingPolls += b.WaitingPolls
	return a
}

// Workers joins the pages of several owners.
func Workers(parts []*rpcv1.ListWorkersResponse) *rpcv1.ListWorkersResponse {
	out := &rpcv1.ListWorkersResponse{KnownForMs: math.MaxInt64}
	var pages []paging.Page[*yardv1.LiveWorker]
	for _, part := range parts {
		out.KnownForMs = min(out.KnownForMs, part.KnownForMs)
		pages = append(pages, paging.Page[*yardv1.LiveWorker]{All: part.Workers, More: part.More})
	}
	out.Workers, out.More = paging.Merge(pages, func(a, b *yardv1.LiveWorker) int { return strings.Compare(a.WorkerId, b.WorkerId) }, sameWorker)
	return out
}

// workerAttemptsMax is how many attempts of a worker are listed.
const workerAttemptsMax = 10

// sameWorker joins what two owners know of a worker: its last sign, and all that it runs.
func sameWorker(a, b *yardv1.LiveWorker) *yardv1.LiveWorker {
	if b.HeardAgoMs < a.HeardAgoMs {
		a, b = b, a
	}
	a.AttemptsCount += b.AttemptsCount
	a.Attempts = append(a.Attempts, b.Attempts...)
	slices.SortFunc(a.Attempts, func(x, y *yardv1.LiveAttempt) int {
		return cmp.Or(-cmp.Compare(x.RunningForMs, y.RunningForMs), cmp.Compare(x.TaskId, y.TaskId))
	})
	a.Attempts = a.Attempts[:min(len(a.Attempts), workerAttemptsMax)]
	return a
}
