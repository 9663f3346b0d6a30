package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/ahead"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/paging"
	"github.com/yardmaster-io/yardmaster/shared/taskview"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// searchMax bounds the tasks that one search by headers or a group looks at.
const searchMax = 10_000

// farBytes ends a page of a list of tasks that are not in memory: with one task more it is within paging.BytesMax.
const farBytes = paging.BytesMax / 2

// lister is the part of an owner that lists.
type lister interface {
	List(ctx context.Context, f firing.Filter, visit func(records [][]byte) (enough bool, err error)) (end ids.TaskID, more bool, err error)
}

// search lists waiting tasks, newest first, that are of the group and batch that are wanted, and have the order key and headers. The index holds none of these, so with
// some it reads tasks until it has enough, or as far as one search goes. With more, all from the newest down to end
// were looked at.
func search(ctx context.Context, owner lister, f firing.Filter, want *yardv1.ListRequest) (tasks []*yardv1.Task, end string, more bool, err error) {
	wanted := f.Limit
	if want.Group != "" || want.BatchId != "" || want.OrderKey != "" || len(want.Headers) > 0 {
		f.Limit = searchMax
	}
	last, more, err := owner.List(ctx, f, func(records [][]byte) (bool, error) {
		for _, data := range records {
			r, err := decode(data)
			if err != nil {
				return false, err
			}
			if isOf(r, want) {
				tasks = append(tasks, public(r, true))
			}
		}
		return len(tasks) >= wanted, nil
	})
	if err != nil {
		return nil, "", false, refusal(err)
	}
	return tasks, last.String(), more, nil
}

// listFar lists tasks that are not in memory, from a position on. Its answers end with the position of the next page.
func listFar(ctx context.Context, owner *firing.Owner, f firing.Filter, want *yardv1.ListRequest, at string) (natsrpc.Message, error) {
	var from firing.Position
	if at != "" {
		if _, err := fmt.Sscanf(at, "%d-%d-%d", &from.Bucket, &from.Seq, &from.Index); err != nil {
			return nil, fault.At(fault.InvalidArgument, "/cursor", "is not the next_cursor of an answer")
		}
	}
	resp, bytes, wanted := &rpcv1.ListTasksResponse{}, 0, f.Limit
	f.Limit = searchMax
	next, more, err := owner.ListFar(ctx, f, from, func(data []byte) (enough bool, err error) {
		r, err := decode(data)
		if err != nil || !isOf(r, want) {
			return false, err
		}
		t := public(r, true)
		resp.Tasks = append(resp.Tasks, t)
		bytes += t.SizeVT()
		return len(resp.Tasks) >= wanted || bytes > farBytes, nil
	})
	if err != nil {
		return nil, refusal(err)
	}
	if resp.More = more; more {
		resp.End = fmt.Sprintf("%d-%d-%d", next.Bucket, next.Seq, next.Index)
	}
	return resp, nil
}

// listDue lists tasks by due time. With more than fit, its answers end with the place of the next page.
func listDue(ctx context.Context, owner *firing.Owner, f firing.Filter, req *rpcv1.ListTasksRequest) (natsrpc.Message, error) {
	type found struct {
		next firing.Position
		task *yardv1.Task
	}
	var all []found
	bytes := 0
	from := req.GetDueFrom()
	within := firing.DueRange{From: firing.Position{Bucket: from.GetMinute(), Place: far.Place{Seq: from.GetSeq(), Index: from.GetIndex()}}, Until: req.DueUntilMinute}
	end, more, err := firing.Ahead{Owner: owner}.List(ctx, f, within, func(next firing.Position, data []byte) (enough bool, err error) {
		r, err := decode(data)
		if err != nil {
			return false, err
		}
		t := public(r, true)
		all = append(all, found{next, t})
		bytes += t.SizeVT()
		return bytes > farBytes, nil
	})
	if err != nil {
		return nil, refusal(err)
	}
	all = slices.DeleteFunc(all, func(one found) bool { return more && one.next.Compare(end) > 0 })
	slices.SortFunc(all, func(a, b found) int { return a.next.Compare(b.next) })
	page, cut := paging.Cut(all, f.Limit, paging.BytesMax, func(one found) int { return one.task.SizeVT() })
	if cut {
		end, more = page[len(page)-1].next, true
	}
	resp := &rpcv1.ListTasksResponse{More: more}
	for _, one := range page {
		resp.Tasks = append(resp.Tasks, one.task)
	}
	if more {
		resp.DueNext = &rpcv1.DuePlace{Minute: end.Bucket, Seq: end.Seq, Index: end.Index}
	}
	return resp, nil
}

// countsMax is how many tasklists and types an answer about the time to come has.
const countsMax = 1000

// ahead counts what is due in the time to come.
func (c calls) ahead(ctx context.Context, req *rpcv1.CountAheadRequest) (natsrpc.Message, error) {
	sums := ahead.New(ahead.Question{
		Domain: req.Domain, Tasklist: req.Tasklist, Type: req.Type,
		From: req.FromMinute, Until: req.UntilMinute, First: req.FirstMinute, Width: max(1, req.SpanMinutes), Most: int(req.SpansMax),
	})
	waiting, err := firing.Ahead{Owner: c.owner}.Count(ctx, sums)
	if err != nil {
		return nil, refusal(err)
	}
	resp := &rpcv1.CountAheadResponse{Waiting: int64(waiting)}
	for _, s := range sums.Spans() {
		resp.Spans = append(resp.Spans, &rpcv1.AheadSpan{Minute: s.Bucket, Tasks: s.Tasks})
	}
	for _, k := range sums.Kinds(countsMax) {
		resp.Counts = append(resp.Counts, &yardv1.TimerCount{Tasklist: k.Tasklist, Type: k.Type, Tasks: k.Tasks})
	}
	return resp, nil
}

// isOf tells whether a record has what is wanted beside what the index knows.
func isOf(r *logv1.Record, want *yardv1.ListRequest) bool {
	return (want.Group == "" || r.Group == want.Group) && (want.BatchId == "" || r.BatchId == want.BatchId) &&
		(want.OrderKey == "" || r.Order.GetKey() == want.OrderKey) && has(r.Headers, want.Headers)
}

// has tells whether all holds each of these headers with exactly this value.
func has(all []*logv1.Header, want map[string]string) bool {
	for name, value := range want {
		if !slices.ContainsFunc(all, func(h *logv1.Header) bool { return h.Name == name && h.Value == value }) {
			return false
		}
	}
	return true
}

// public is a waiting record as `get` shows it; brief leaves out payload and events.
func public(r *logv1.Record, brief bool) *yardv1.Task {
	state := yardv1.TaskState_TASK_STATE_WAITING
	if r.Failures > 0 {
		state = yardv1.TaskState_TASK_STATE_BACKOFF
	}
	t := taskview.Of(r, state, brief)
	t.Traceparent = telemetry.FormatTraceparent(r.Trace)
	return t
}
