package gather

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/explain"
)

// Explained is what the shards know of a task that waits.
type Explained struct {
	// Limits are those that cover it, by reference, with so many holders as were asked for.
	Limits []*yardv1.LimitUse
	// Closed are those of which some shard can book nothing, and how soon it tries again, ms; Counting those that some shard counts.
	Closed   map[string]int64
	Counting map[string]bool
	// The rest is of its tasklist. Pollers may count a worker for each of several shards.
	Triggers, Pollers, Takers int64
	Polled                    bool
	LastPoller                *yardv1.Poller
	KnownForMS                int64
}

// Explain joins what the shards say of a task; nil stands for one that is silent.
func Explain(parts []*rpcv1.DescribeShardResponse, serves func(shard int) bool, holders int32) *Explained {
	out := &Explained{Closed: map[string]int64{}, Counting: map[string]bool{}}
	for m, d := range parts {
		for _, l := range d.GetTop() {
			ref := l.Use.GetRef()
			if next, known := out.Closed[ref]; l.Closed && (!known || l.NextStartMs < next) {
				out.Closed[ref] = l.NextStartMs
			}
			out.Counting[ref] = out.Counting[ref] || l.Counting
		}
		if d == nil {
			continue
		}
		out.Triggers += d.Ready
		out.Pollers += d.Pollers
		out.Polled = out.Polled || d.Polled
		if last := d.LastPoller; last != nil && better(last, d.Takers, out.LastPoller, out.Takers) {
			out.LastPoller = last
		}
		out.Takers += d.Takers
		if serves(m) {
			out.KnownForMS = cmp.Or(min(out.KnownForMS, d.KnownForMs), d.KnownForMs)
		}
	}
	out.Limits = Limits(parts, &yardv1.TopLimitsRequest{Limit: int32(limitsMax), Each: holders}).Limits
	return out
}

// limitsMax is more than cover one task: those of its domain, tasklist and type, eight that it shares with other types, and as many rates and limits per group.
const limitsMax = 100

// better reports whether a poller says more than the one before: it accepts the type, or polled later.
func better(p *yardv1.Poller, takers int64, before *yardv1.Poller, takersBefore int64) bool {
	if accepts, did := takers > 0, takersBefore > 0; before != nil && accepts != did {
		return accepts
	}
	return before == nil || p.SeenAgoMs < before.SeenAgoMs
}

// AddTo adds what matching knows to the facts of a task.
func (known *Explained) AddTo(f *explain.Facts, nowMS int64) {
	for _, u := range known.Limits {
		after, closed := known.Closed[u.Ref]
		l := explain.Limit{
			Ref: u.Ref, Max: int(u.MaxConcurrency), Used: int(u.SlotsInUse), Closed: closed, Counting: known.Counting[u.Ref], NextMS: nowMS + after, Waiting: u.WaitingTasks,
		}
		if len(u.Holders) > 0 {
			l.Holder = u.Holders[0].TaskId
		}
		f.Limits = append(f.Limits, l)
	}
	slices.SortFunc(f.Limits, func(a, b explain.Limit) int { return cmp.Compare(a.Ref, b.Ref) })
	w := &f.Workers
	w.Polled, w.Takers, w.Free, w.KnownMS, w.Waiting = known.Pollers, known.Takers, known.Polled, known.KnownForMS, known.Triggers
	w.Last, w.AgoMS = known.LastPoller.GetWorker(), known.LastPoller.GetSeenAgoMs()
}

// Reason is a reason as the API has it.
func (known *Explained) Reason(r *explain.Reason) *yardv1.Reason {
	out := &yardv1.Reason{
		Code: string(r.Code), Text: r.Text, About: r.About, UntilMs: r.UntilMS, SinceMs: r.SinceMS, By: r.By, Ref: r.Ref, TaskId: r.TaskID, Waiting: r.Waiting,
	}
	switch {
	case known == nil: // it runs, or has ended
	case r.Code == explain.LimitFull:
		if at := slices.IndexFunc(known.Limits, func(u *yardv1.LimitUse) bool { return u.Ref == r.Ref }); at >= 0 {
			out.Limit = known.Limits[at]
		}
	case r.Code == explain.NoWorkerFree, r.Code == explain.NoWorkerForType:
		out.LastPoller = known.LastPoller
	}
	return out
}

// TaskFacts are what a task says of itself.
func TaskFacts(t *yardv1.Task) explain.Task {
	out := explain.Task{
		Domain: t.Domain, Tasklist: t.Tasklist, Type: t.Type, Group: t.Group, OrderKey: t.OrderKey, DueMS: t.DueAtMs, Worker: t.Worker, Failures: int(t.Failures),
		Failure: strings.TrimSpace(t.ErrorType + " " + t.ErrorMessage), Blocks: t.Blocked,
	}
	switch s := t.State; {
	case s.Finished():
		out.State, out.Ended, out.SinceMS = explain.Ended, s.Name(), t.FinishedAtMs
		return out
	case s == yardv1.TaskState_TASK_STATE_RUNNING:
		out.State = explain.Runs
	case s == yardv1.TaskState_TASK_STATE_WAITING:
		out.State = explain.Waits
		return out
	case s == yardv1.TaskState_TASK_STATE_BACKOFF:
		out.State = explain.Fails
	case s == yardv1.TaskState_TASK_STATE_QUEUED:
		out.State = explain.Queued
	}
	if n := len(t.Events); n > 0 {
		out.SinceMS = t.Events[n-1].AtMs
	}
	return out
}

// QueueOf is the queue of a task: of its lane the narrowest one that has it.
func QueueOf(all []*yardv1.Queue, lane string, task *yardv1.Task) (found *explain.Queue) {
	for _, one := range all {
		if one.Lane != lane || one.Domain != "" && one.Domain != task.Domain || one.Tasklist != "" && one.Tasklist != task.Tasklist {
			continue
		}
		ref := strings.Join(slices.DeleteFunc([]string{one.Lane, one.Domain, one.Tasklist}, func(part string) bool { return part == "" }), "/")
		if found == nil || len(ref) > len(found.Ref) {
			found = &explain.Queue{Ref: ref, Unread: one.Unread, Own: one.Domain != "", LowClass: one.LowClass}
		}
	}
	return found
}
