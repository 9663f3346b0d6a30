package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// waitGrace is what a query with a wait gets beyond it to come back.
const waitGrace = 2 * time.Second

// How soon a task is looked for again that is waited for and is not where the
// owner of its partition could wait with us: in the timer store, or unread.
const lookFirst, lookLast = 2 * time.Millisecond, 500 * time.Millisecond

// Get tells all of one task (tasks.get).
func (g *Gateway) Get(c Call, req *yardv1.GetRequest, answer Answer) {
	id, bad := validate.Get(req)
	if g.rejects(&c, bad, answer) {
		return
	}
	if g.isForeign(id, c.Now) {
		answer(nil, noTask(id))
		return
	}
	var until time.Time
	deadline, run := c.Deadline, g.query
	if req.WaitMs > 0 {
		until = c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond)
		deadline, run = later(deadline, until.Add(waitGrace)), g.wait
	}
	run(c.Domain, deadline, answer, func(ctx context.Context) (codec.Message, error) {
		task, err := g.lookUp(ctx, c.Domain, id, time.Time{})
		if err == nil && task != nil && !until.IsZero() {
			task, err = g.finished(ctx, c.Domain, id, task, until)
		}
		if err != nil {
			return nil, err
		}
		if task == nil {
			return nil, noTask(id)
		}
		return &yardv1.GetResponse{Task: task}, nil
	})
}

// isForeign reports whether id, however well formed, names no task of this cluster: it is zero, its
// partition does not exist, or it was made further in the future than clocks differ.
// Such an id reaches neither the log nor an owner, which may rely on its time.
func (g *Gateway) isForeign(id ids.TaskID, now time.Time) bool {
	return id.IsZero() || id.Partition() >= g.Partitioning.History || id.Time().After(now.Add(clockSkewMax))
}

func noTask(id ids.TaskID) error { return fault.New(fault.NotFound, "there is no task %s", id) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lookUp finds a task wherever it is, or returns nil. With until it lets history wait for its end. History looks into the archive itself; it is
// asked twice, since a task may have gone from the timer store into history between the two questions. So it is for one that is dead: the
// archive has that end of a task that was redriven.
func (g *Gateway) lookUp(ctx context.Context, domain string, id ids.TaskID, until time.Time) (dead *yardv1.Task, err error) {
	for _, ask := range []func(context.Context, int, *rpcv1.GetTaskRequest) (*rpcv1.GetTaskResponse, error){
		g.Owners.HistoryGet, g.Owners.TimerGet, g.Owners.HistoryGet,
	} {
		resp, err := retryCall(ctx, until, func(ctx context.Context) (*rpcv1.GetTaskResponse, error) {
			req := &rpcv1.GetTaskRequest{TaskId: id[:], Domain: domain}
			if !until.IsZero() {
				req.WaitMs = max(time.Until(until).Milliseconds(), 0)
			}
			return ask(ctx, id.Partition(), req)
		})
		switch {
		case err != nil:
			return nil, err
		case resp.Task == nil:
		case resp.Task.State != yardv1.TaskState_TASK_STATE_DEAD:
			return resp.Task, nil
		default: // it may have been redriven, and be on its way back
			dead = resp.Task
		}
	}
	return dead, nil
}

// finished waits until the task is finished, or until the wait ends; then it
// returns the task as it was last seen.
func (g *Gateway) finished(ctx context.Context, domain string, id ids.TaskID, seen *yardv1.Task, until time.Time) (*yardv1.Task, error) {
	for delay := backoff.New(lookFirst, lookLast); !seen.State.Finished() && time.Now().Before(until); {
		task, err := g.lookUp(ctx, domain, id, until)
		switch {
		case err != nil && time.Now().Before(until):
			return nil, err
		case err != nil:
			return seen, nil
		case task != nil:
			seen = task
		}
		if !seen.State.Finished() { // not in history's hands yet, or on its way
			backoff.Sleep(ctx, min(delay.Next(), time.Until(until)))
		}
	}
	return seen, nil
}

// waitForResult answers an accepted submit of one task with its end.
func (g *Gateway) waitForResult(s *submission, results []*yardv1.SubmitResult) {
	r := s.accepted.Records[0]
	id, _ := ids.ParseTaskID(results[0].TaskId) // it is ours
	until := s.call.Received.Add(s.wait)
	resp := &yardv1.SubmitResponse{Results: results, NowMs: s.nowMs()}
	// Known without asking: the log has it.
	resp.Task = &yardv1.Task{
		TaskId: resp.Results[0].TaskId, Domain: r.Domain, Tasklist: r.Tasklist, Type: r.Type, Priority: r.Priority,
		State: yardv1.TaskState_TASK_STATE_QUEUED, CreatedAtMs: s.at.UnixMilli(), DueAtMs: r.DueAtMs, Headers: s.headers,
		Group: r.Group, Cost: r.Cost, UniqueKey: r.Unique.GetKey(), UniqueForMs: r.Unique.GetForMs(), OrderKey: r.Order.GetKey(), BatchId: r.BatchId,
	}
	if results[0].Outcome != yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED {
		resp.Task = &yardv1.Task{TaskId: results[0].TaskId, Domain: r.Domain, UniqueKey: r.Unique.GetKey()}
	}
	g.wait(s.call.Domain, until.Add(waitGrace), func(_ codec.Message, err error) {
		// The task is accepted, so whatever became of the wait is no error.
		if e := fault.From(err); e != nil {
			resp.WaitCode, resp.WaitRetryAfterMs = string(e.Code), e.RetryAfter.Milliseconds()
		}
		s.answer(resp, nil)
	}, func(ctx context.Context) (codec.Message, error) {
		task, err := g.finished(ctx, s.call.Domain, id, resp.Task, until)
		if err == nil {
			resp.Task = task
		}
		return nil, err
	})
}

// List finds tasks of a domain, newest first (tasks.list).
func (g *Gateway) List(c Call, req *yardv1.ListRequest, answer Answer) {
	g.asks(c, validate.List(req), answer, func(ctx context.Context) (codec.Message, error) {
		resp := &yardv1.ListResponse{}
		var err error
		resp.Tasks, resp.NextCursor, err = g.listPage(ctx, c, req)
		if err != nil {
			return nil, err
		}
		return resp, nil
	})
}

// listPage asks all owners for a page of a list.
func (g *Gateway) listPage(ctx context.Context, c Call, req *yardv1.ListRequest) (page []*yardv1.Task, next string, err error) {
	ask := &rpcv1.ListTasksRequest{Domain: c.Domain, Filter: req}
	first, n, timers := 0, g.Partitioning.History, g.Partitioning.History
	if req.OrderKey != "" {
		first, n, timers = topology.OrderKeyPartition(c.Domain, req.OrderKey, g.Partitioning), 1, 1
	}
	if req.Blocked {
		timers = 0 // what blocks its key has begun, and is never there
	}
	found, err := everyone(ctx, n+timers, func(ctx context.Context, i int) (*rpcv1.ListTasksResponse, error) {
		if i < n {
			return g.Owners.HistoryList(ctx, first+i, ask)
		}
		return g.Owners.TimerList(ctx, first+i-n, ask)
	})
	if err != nil {
		return nil, "", err
	}
	page, next = merge(c, found, req)
	return page, next, nil
}

// merge sorts tasks newest first and cuts a page; next is the cursor of the page after it. A
// task on its way between two stores may be in both answers; history's, which come first, count.
// Where an owner has more, a page ends with the last that it reported, or where it stopped the search: older
// tasks of others come with its own, and a page may be empty and not the last.
func merge(c Call, found []*rpcv1.ListTasksResponse, req *yardv1.ListRequest) (page []*yardv1.Task, next string) {
	var all []*yardv1.Task
	end := ""
	for _, f := range found {
		all = append(all, f.Tasks...)
		if n := len(f.Tasks); f.More && f.End != "" {
			end = max(end, f.End)
		} else if f.More && n > 0 {
			end = max(end, f.Tasks[n-1].TaskId)
		}
	}
	slices.SortStableFunc(all, func(a, b *yardv1.Task) int { return strings.Compare(b.TaskId, a.TaskId) })
	for i := len(all) - 1; i > 0; i-- { // the archive has earlier ends of a task that was redriven
		if before, t := all[i-1], all[i]; before.TaskId == t.TaskId && before.Redrives < t.Redrives {
			all[i-1] = t
		}
	}
	all = slices.CompactFunc(all, func(a, b *yardv1.Task) bool { return a.TaskId == b.TaskId })
	if older := slices.IndexFunc(all, func(t *yardv1.Task) bool { return t.TaskId < end }); older >= 0 {
		all = all[:older]
	}
	page, next = cut(c, all, req.Limit, false, (*yardv1.Task).GetTaskId)
	return page, cmp.Or(next, end)
}
