package query

import (
	"context"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

// PeekTasklist shows the ready tasks of a tasklist in the order in which they are to start (tasklists.peek).
func (q *Queries) PeekTasklist(c call.Call, req *yardv1.PeekTasklistRequest, answer call.Answer) {
	after, bad := validate.Peek(req)
	q.Run.Ask(c, bad, answer, func(ctx context.Context) (codec.Message, error) {
		ask := &rpcv1.ListTasksRequest{Domain: c.Domain, Filter: &yardv1.ListRequest{Tasklist: req.Name, Type: req.Type, Group: req.Group, Limit: req.Limit}, Next: true}
		if req.Cursor != "" {
			ask.AfterPriority, ask.AfterReadyAtMs, ask.AfterId = after.Priority, after.ReadyAtMs, after.ID[:]
		}
		found, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.HistoryList, ask)
		if err != nil {
			return nil, err
		}
		resp := &yardv1.PeekTasklistResponse{}
		if resp.UnreadBatches, err = q.Unread(ctx, c.Domain, req.Name); err != nil {
			return nil, err
		}
		resp.Tasks, resp.NextCursor, err = mergeNext(c, found, int(req.Limit))
		return resp, err
	})
}

// mergeNext puts the answers of the owners into one order, and cuts a page; next is the cursor of the page after it. Each owner tells of as
// many as a page takes, so the merged page is exact.
func mergeNext(c call.Call, found []*rpcv1.ListTasksResponse, limit int) (page []*yardv1.PeekedTask, next string, err error) {
	type placed struct {
		place validate.Place
		task  *yardv1.PeekedTask
	}
	now, more := c.ServerNow().UnixMilli(), false
	var all []placed
	for _, l := range found {
		more = more || l.More
		for i, t := range l.Tasks {
			id, err := ids.ParseTaskID(t.TaskId)
			if err != nil {
				return nil, "", err
			}
			at := l.ReadyAtMs[i]
			all = append(all, placed{validate.Place{Priority: t.Priority, ReadyAtMs: at, ID: id}, &yardv1.PeekedTask{Task: t, ReadyForMs: max(now-at, 0)}})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return a.place.Compare(b.place) })
	cut, left := paging.Cut(all, limit, paging.BytesMax, func(p placed) int { return c.Size(p.task) })
	for _, p := range cut {
		page = append(page, p.task)
	}
	if (more || left) && len(cut) > 0 {
		next = cut[len(cut)-1].place.String()
	}
	return page, next, nil
}

// Unread counts the log messages that history has not read.
func (q *Queries) Unread(ctx context.Context, domain, tasklist string) (batches int64, err error) {
	parts, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.HistoryDescribe, &rpcv1.DescribePartitionRequest{Domain: domain, Tasklist: tasklist})
	for _, d := range parts {
		batches += d.UnreadBatches
	}
	return batches, err
}
