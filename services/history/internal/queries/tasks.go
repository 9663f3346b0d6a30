package queries

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/paging"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// List returns tasks in memory and finished ones, newest first, as many as fit into an answer.
func (q Queries) List(ctx context.Context, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	switch {
	case req.Next:
		return q.next(ctx, req)
	case onlyQueued(req):
		return q.queued(ctx, req)
	}
	limit := int(cmp.Or(req.GetFilter().GetLimit(), 100))
	before, err := ids.ParseTaskID(cmp.Or(req.GetFilter().GetCursor(), ids.Last.String()))
	if err != nil {
		return nil, fault.At(fault.InvalidArgument, "/cursor", "%v", err)
	}
	wanted := wantedBy(req, before, q.NowMS())
	var all []*yardv1.Task
	listed := make(map[string]bool)
	end := "" // it has not listed all that is older
	listing := replica.Newest(req.Domain, limit, wanted)
	err = q.LookInSteps(ctx, req.Domain, func(core *replica.Replica) bool {
		if !core.List(listing) {
			return false
		}
		tasks, last, more := listing.Found()
		for _, t := range tasks {
			task := record.Public(t, true, q.NowMS())
			listed[task.TaskId] = true
			all = append(all, task)
		}
		if more {
			end = last.ID.String()
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if states := req.GetFilter().GetStates(); len(states) == 0 || slices.ContainsFunc(states, yardv1.TaskState.Finished) {
		dec, dead := record.NewDecoder(), make(map[ids.TaskID]uint32)
		stop, err := q.Reader.Finished(ctx, req.Domain, before, limit, func(r *logv1.Record) bool {
			e, err := dec.Entry(r)
			if err != nil || !wanted(&e.Task) || listed[e.ID.String()] {
				return false
			}
			if e.State == taskstate.Dead {
				dead[e.ID] = e.Parkings
			}
			all = append(all, record.Public(&e.Task, true, q.NowMS()))
			return true
		})
		switch {
		case errors.Is(err, turns.ErrBusy):
			return nil, partition.TooMany(q.Partition)
		case err != nil:
			return nil, fault.New(fault.Unavailable, "read the archive: %v", err)
		}
		if all, err = q.backAgain(ctx, req.Domain, all, dead, wanted); err != nil {
			return nil, err
		}
		if !stop.IsZero() {
			end = max(end, stop.String())
		}
	}
	slices.SortFunc(all, func(a, b *yardv1.Task) int { return strings.Compare(b.TaskId, a.TaskId) })
	page, cut := paging.Cut(all, limit, paging.BytesMax, (*yardv1.Task).SizeVT)
	if cut {
		end = max(end, page[len(page)-1].TaskId)
	}
	return &rpcv1.ListTasksResponse{Tasks: page, More: end != "", End: end}, nil
}

// backAgain has some dead tasks, whose last stays are known, listed as they are now, or not at all, if they are in
// memory again: redriven after the end that the archive has.
func (q Queries) backAgain(ctx context.Context, domain string, all []*yardv1.Task, dead map[ids.TaskID]uint32, wanted func(*taskstate.Task) bool) ([]*yardv1.Task, error) {
	if len(dead) == 0 {
		return all, nil
	}
	err := q.Look(ctx, domain, func(core *replica.Replica) {
		for id, stay := range dead {
			t := core.Get(id)
			if t == nil || t.Parkings <= stay {
				continue
			}
			i := slices.IndexFunc(all, func(shown *yardv1.Task) bool { return shown.TaskId == id.String() })
			if all[i] = record.Public(t, true, q.NowMS()); !wanted(t) {
				all = slices.Delete(all, i, i+1)
			}
		}
	})
	return all, err
}

// wantedBy tells which tasks a list from before an id on is of, at an instant, Unix ms.
func wantedBy(req *rpcv1.ListTasksRequest, before ids.TaskID, now int64) func(t *taskstate.Task) bool {
	filter := req.GetFilter()
	return func(t *taskstate.Task) bool {
		return t.Domain == req.Domain && (filter.GetTasklist() == "" || t.Tasklist == filter.GetTasklist()) &&
			(filter.GetType() == "" || t.Type == filter.GetType()) &&
			(filter.GetGroup() == "" || t.Group() == filter.GetGroup()) && t.HasHeaders(filter.GetHeaders()) &&
			t.HasOrder(filter.GetOrderKey(), filter.GetBlocked()) && (filter.GetBatchId() == "" || t.BatchID() == filter.GetBatchId()) &&
			bytes.Compare(t.ID[:], before[:]) < 0 &&
			(len(filter.GetStates()) == 0 || slices.Contains(filter.GetStates(), record.State(t, now)))
	}
}

// Describe counts the tasks of one tasklist, or of each of a list; or it shows the queues, or the busiest domains.
func (q Queries) Describe(ctx context.Context, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
	out := &rpcv1.DescribePartitionResponse{}
	if req.List > 0 {
		err := q.Look(ctx, req.Domain, func(core *replica.Replica) {
			for _, c := range core.Tasklists(req.Domain, req.Tasklist, int(req.List)) {
				out.Tasklists = append(out.Tasklists, &yardv1.ListedTasklist{Name: c.Tasklist, Ready: c.Ready, Running: c.Running, Backoff: c.Backoff})
			}
		})
		return out, err
	}
	switch {
	case req.Queues > 0:
		return q.queues(ctx, req)
	case req.Top != nil:
		return &rpcv1.DescribePartitionResponse{Top: q.top(req.Top)}, nil
	}
	err := q.Look(ctx, req.Domain, func(core *replica.Replica) {
		out.UnreadBatches, out.LaggingLanes = q.UnreadBatches(req.Domain), int32(core.SplitLanes(req.Domain))
		c := core.Describe(req.Domain, req.Tasklist)
		out.Ready, out.Running, out.Backoff = c.Ready, c.Running, c.Backoff
		out.Completed, out.Dead, out.Expired, out.Failed = c.Completed, c.Dead, c.Expired, c.Failed
		if c.OldestReadyAt > 0 {
			out.OldestReadyMs = max(0, q.NowMS()-c.OldestReadyAt)
		}
	})
	return out, err
}

// next returns the ready tasks in memory in the order in which they are to start.
func (q Queries) next(ctx context.Context, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	after := replica.Place{Priority: req.AfterPriority, ReadyAt: req.AfterReadyAtMs}
	if len(req.AfterId) > 0 {
		var err error
		if after.ID, err = ids.TaskIDFromBytes(req.AfterId); err != nil {
			return nil, fault.At(fault.InvalidArgument, "/after_id", "%v", err)
		}
	}
	tasklist, typ, group := req.GetFilter().GetTasklist(), req.GetFilter().GetType(), req.GetFilter().GetGroup()
	matches := func(t *taskstate.Task) bool {
		return t.Tasklist == tasklist && (typ == "" || t.Type == typ) && (group == "" || t.Group() == group) && replica.PlaceOf(t).Compare(after) > 0
	}
	out := &rpcv1.ListTasksResponse{}
	limit := max(1, int(req.GetFilter().GetLimit()))
	listing := replica.NextToStart(req.Domain, limit, matches)
	err := q.LookInSteps(ctx, req.Domain, func(core *replica.Replica) bool {
		if !core.List(listing) {
			return false
		}
		tasks, last, more := listing.Found()
		if after = last; more && len(tasks) == 0 { // all of them have begun meanwhile
			listing = replica.NextToStart(req.Domain, limit, matches)
			return false
		}
		for _, t := range tasks {
			out.Tasks, out.ReadyAtMs = append(out.Tasks, record.Public(t, true, q.NowMS())), append(out.ReadyAtMs, t.ReadyAt)
		}
		out.More = more
		return true
	})
	return out, err
}

// keysMax is the most order keys of one answer.
const keysMax = 1000

// Keys tells of the order keys of a domain that have tasks in memory, those that wait for longest at first. Without a
// lease another owner may have read more, and an operator acts on what is said here.
func (q Queries) Keys(ctx context.Context, req *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error) {
	limit := max(1, min(int(req.Limit), keysMax))
	asked := &line.Query{Blocked: req.Blocked, Waiting: req.Waiting, After: line.Place{Since: req.AfterSinceMs, Key: req.AfterKey}}
	out := &rpcv1.ListKeysResponse{}
	walk, found := dispatch.Walk{Domain: req.Domain}, []line.Line(nil)
	err := q.LookInSteps(ctx, req.Domain, func(core *replica.Replica) bool {
		if req.OrderKey != "" {
			found = []line.Line{{Place: line.Place{Key: req.OrderKey}}}
		} else if over := core.Walk(&walk, func(e *dispatch.Entry) {
			if l, ok := asked.Pick(e.Seat); ok {
				found = dispatch.KeepFirst(found, l, limit+1, func(a, b line.Line) int { return a.Compare(b.Place) })
			}
		}); !over {
			return false
		}
		n := min(limit, len(found))
		out.Keys, out.More = q.keysOf(core, req.Domain, found[:n]), len(found) > n
		if len(out.Keys) > 0 || !out.More {
			return true
		}
		walk, asked.After, found = dispatch.Walk{Domain: req.Domain}, found[n-1].Place, nil // all of them have ended meanwhile
		return false
	})
	if err != nil {
		return nil, err
	}
	page, cut := paging.Cut(out.Keys, len(out.Keys), paging.BytesMax, (*yardv1.OrderKey).SizeVT)
	out.Keys, out.More = page, out.More || cut
	return out, nil
}

// keysOf are order keys that were found, each once, at the places that they had. Those that have no tasks any more are left out.
func (q Queries) keysOf(core *replica.Replica, domain string, found []line.Line) (all []*yardv1.OrderKey) {
	seen := make(map[string]bool, len(found))
	for _, f := range found {
		l, ok := core.OrderKeys().Of(domain, f.Key)
		if !ok || seen[f.Key] {
			continue
		}
		seen[f.Key] = true
		all = append(all, &yardv1.OrderKey{
			OrderKey: l.Key, Head: record.Public(l.Head, true, q.NowMS()), Waiting: int64(l.Waiting), SinceMs: cmp.Or(f.Since, l.Since), Reason: l.Head.Why(),
		})
	}
	return all
}
