package query

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// Get tells all of one task (tasks.get).
func (q *Queries) Get(c call.Call, req *yardv1.GetRequest, answer call.Answer) {
	id, bad := validate.Get(req)
	if q.Run.Rejects(&c, bad, answer) {
		return
	}
	if q.Tasks.Foreign(id, c.Now) {
		answer(nil, owners.NoTask(id))
		return
	}
	var until time.Time
	deadline, run := c.Deadline, q.Run.Query
	if req.WaitMs > 0 {
		until = c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond)
		deadline, run = call.Later(deadline, until.Add(call.WaitGrace)), q.Run.Wait
	}
	run(c.Domain, deadline, answer, func(ctx context.Context) (codec.Message, error) {
		task, err := q.Tasks.LookUp(ctx, c.Domain, id, time.Time{})
		if err == nil && task != nil && !until.IsZero() {
			task, err = q.Tasks.Finished(ctx, c.Domain, id, task, until)
		}
		if err != nil {
			return nil, err
		}
		if task == nil {
			return nil, owners.NoTask(id)
		}
		return &yardv1.GetResponse{Task: task}, nil
	})
}

// List finds tasks of a domain, newest first or by due time (tasks.list).
func (q *Queries) List(c call.Call, req *yardv1.ListRequest, answer call.Answer) {
	q.Run.Ask(c, validate.List(req), answer, func(ctx context.Context) (codec.Message, error) {
		page, next, err := q.Page(ctx, c, req)
		return &yardv1.ListResponse{Tasks: page, NextCursor: next}, err
	})
}

// Page asks all owners for a page of a list.
func (q *Queries) Page(ctx context.Context, c call.Call, req *yardv1.ListRequest) (page []*yardv1.Task, next string, err error) {
	if req.DueWithinMs > 0 {
		return q.duePage(ctx, c, req)
	}
	if validate.OnlyQueued(req) {
		return q.queued(ctx, c, req)
	}
	if at, isFar := strings.CutPrefix(req.Cursor, paging.Far); isFar {
		return q.farPage(ctx, c, req, at)
	}
	ask := &rpcv1.ListTasksRequest{Domain: c.Domain, Filter: req}
	first, n, timers := 0, q.Partitioning.History, q.Partitioning.History
	if req.OrderKey != "" {
		first, n, timers = topology.OrderKeyPartition(c.Domain, req.OrderKey, q.Partitioning), 1, 1
	}
	if req.Blocked {
		timers = 0 // what blocks its key has begun, and is never there
	}
	found, err := owners.Every(ctx, n+timers, func(ctx context.Context, i int) (*rpcv1.ListTasksResponse, error) {
		if i < n {
			return q.Tasks.HistoryList(ctx, first+i, ask)
		}
		return q.Tasks.TimerList(ctx, first+i-n, ask)
	})
	if err != nil {
		return nil, "", err
	}
	all, end := gather.Newest(found)
	page, next = call.Cut(c, all, req.Limit, false, (*yardv1.Task).GetTaskId)
	next = cmp.Or(next, end)
	if waits := func(s yardv1.TaskState) bool {
		return s == yardv1.TaskState_TASK_STATE_WAITING || s == yardv1.TaskState_TASK_STATE_BACKOFF
	}; next != "" || timers == 0 || len(req.States) > 0 && !slices.ContainsFunc(req.States, waits) {
		return page, next, nil
	}
	if left := int(req.Limit) - len(page); left > 0 {
		return q.addFar(ctx, c, req, page, int32(left))
	}
	return page, paging.Far, nil
}

// addFar adds tasks to a last page that wait for longer, if they fit. If that page is the whole list, it is newest first.
func (q *Queries) addFar(ctx context.Context, c call.Call, req *yardv1.ListRequest, page []*yardv1.Task, left int32) ([]*yardv1.Task, string, error) {
	whole := req.Cursor == ""
	req = req.CloneVT()
	req.Limit = left
	far, next, err := q.farPage(ctx, c, req, "")
	if err != nil {
		return nil, "", err
	}
	all := slices.Concat(page, far)
	if tooLarge(c, all) {
		return page, paging.Far, nil
	}
	if whole && next == "" {
		slices.SortStableFunc(all, func(a, b *yardv1.Task) int { return strings.Compare(b.TaskId, a.TaskId) })
	}
	return all, next, nil
}

// farPage lists the tasks that are not due soon, partition by partition, each from the nearest minute on. At is where the page before ended.
func (q *Queries) farPage(ctx context.Context, c call.Call, req *yardv1.ListRequest, at string) (page []*yardv1.Task, next string, err error) {
	first, end := 0, q.Partitioning.History
	if req.OrderKey != "" {
		first = topology.OrderKeyPartition(c.Domain, req.OrderKey, q.Partitioning)
		end = first + 1
	}
	partition, at, _ := strings.Cut(at, "-")
	if n, err := strconv.Atoi(partition); err == nil && n > first { // the first page names none
		first = n
	}
	for p := first; p < end; p++ {
		ask := req.CloneVT()
		ask.Cursor, ask.Limit = paging.Far+at, req.Limit-int32(len(page))
		found, err := q.Tasks.TimerList(ctx, p, &rpcv1.ListTasksRequest{Domain: c.Domain, Filter: ask})
		if err != nil {
			return nil, "", err
		}
		all := slices.Concat(page, found.Tasks)
		switch {
		case len(page) > 0 && tooLarge(c, all):
			return page, paging.Far + strconv.Itoa(p) + "-" + at, nil
		case found.More:
			return all, paging.Far + strconv.Itoa(p) + "-" + found.End, nil
		case len(all) >= int(req.Limit) && p+1 < end:
			return all, paging.Far + strconv.Itoa(p+1) + "-", nil
		}
		page, at = all, ""
	}
	return page, "", nil
}

func tooLarge(c call.Call, page []*yardv1.Task) bool {
	_, cut := call.Fit(c, page, len(page))
	return cut
}

// queued is a page of tasks that are not admitted: one partition after the other, each in the order in which it admits them.
func (q *Queries) queued(ctx context.Context, c call.Call, req *yardv1.ListRequest) (page []*yardv1.Task, next string, err error) {
	part, at := validate.QueuedCursor(req.Cursor)
	if part >= q.Partitioning.History {
		return nil, "", fault.At(fault.InvalidArgument, "/cursor", "is not the next_cursor of an answer")
	}
	filter := req.CloneVT()
	filter.Cursor = at
	found, err := q.Tasks.HistoryList(ctx, part, &rpcv1.ListTasksRequest{Domain: c.Domain, Filter: filter})
	switch {
	case err != nil:
		return nil, "", err
	case found.More:
		next = validate.QueuedPlace(part, found.End)
	case part+1 < q.Partitioning.History:
		next = validate.QueuedPlace(part+1, "")
	}
	return found.Tasks, next, nil
}
