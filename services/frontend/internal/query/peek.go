package query

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/paging"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
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
		ready, more, err := gather.Ready(found, c.ServerNow().UnixMilli())
		if err != nil {
			return nil, err
		}
		page, left := paging.Cut(ready, int(req.Limit), paging.BytesMax, func(r gather.ReadyTask) int { return c.Size(r.PeekedTask) })
		for _, r := range page {
			resp.Tasks = append(resp.Tasks, r.PeekedTask)
		}
		if n := len(page); n > 0 && (more || left) {
			resp.NextCursor = page[n-1].Place.String()
		}
		return resp, nil
	})
}

// Unread counts the log messages that history has not read.
func (q *Queries) Unread(ctx context.Context, domain, tasklist string) (batches int64, err error) {
	parts, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.HistoryDescribe, &rpcv1.DescribePartitionRequest{Domain: domain, Tasklist: tasklist})
	for _, d := range parts {
		batches += d.UnreadBatches
	}
	return batches, err
}
