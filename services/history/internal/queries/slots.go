package queries

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// pageBytesMax bounds one page of an answer to a matching shard.
const pageBytesMax = 512 << 10

// Bookings tells, page by page, which attempts that were granted to a matching shard hold a slot, or run; as of every
// event that was in the log when the first page was asked for.
func (q Queries) Bookings(ctx context.Context, req *rpcv1.BookingsRequest) (*rpcv1.BookingsResponse, error) {
	if len(req.Holders) > 0 {
		return q.holders(ctx, req)
	}
	after, err := q.pageAfter(ctx, req.Cursor)
	if err != nil {
		return nil, err
	}
	var page dispatch.BookingsPage
	overtaken := false
	err = q.Ask(ctx, func(core *replica.Replica) {
		overtaken = req.Epoch > 0 && core.Superseded(int(req.Shard), req.Epoch)
		page = core.Bookings(dispatch.BookingsQuery{
			Shard: int(req.Shard), Domain: req.Domain, Types: req.Types, All: req.All, After: after, BytesMax: pageBytesMax,
		})
	})
	if err != nil {
		return nil, err
	}
	out := &rpcv1.BookingsResponse{Cursor: cursor(page.Last), Overtaken: overtaken}
	for i := range page.Groups {
		g := &page.Groups[i]
		out.Groups = append(out.Groups, &rpcv1.Bookings{
			Domain: g.Domain, Tasklist: g.Tasklist, Type: g.Type, Group: g.Group, Limits: g.Limits.Refs(), Bookings: g.Packed,
			DeadlineMs: g.DeadlineAt,
		})
	}
	return out, nil
}

// holders tells which running attempts have held slots of some limits for the longest, and how many tasks wait; as of
// every event that was in the log when it was asked for.
func (q Queries) holders(ctx context.Context, req *rpcv1.BookingsRequest) (*rpcv1.BookingsResponse, error) {
	if len(req.Holders) > dispatch.HoldersLimitsMax {
		return nil, fault.At(fault.InvalidArgument, "/holders", "must be at most %d limits", dispatch.HoldersLimitsMax)
	}
	queries := make([]dispatch.HoldersQuery, len(req.Holders))
	for i, asked := range req.Holders {
		if asked.Most < 1 || asked.Most > dispatch.HoldersMax {
			return nil, fault.At(fault.InvalidArgument, fmt.Sprintf("/holders/%d/most", i), "must be 1 to %d", dispatch.HoldersMax)
		}
		queries[i] = dispatch.HoldersQuery{Limit: asked.Limit, Most: int(asked.Most), Types: asked.Types, Group: asked.Group, ReadyBy: asked.ReadyByMs}
	}
	if _, err := q.pageAfter(ctx, nil); err != nil {
		return nil, err
	}
	out := &rpcv1.BookingsResponse{}
	err := q.Ask(ctx, func(core *replica.Replica) {
		for _, h := range core.Holders(req.Domain, queries) {
			one := &rpcv1.LimitHolders{Leaving: int32(h.Leaving), Waiting: int32(h.Waiting)}
			for _, t := range h.Oldest {
				one.Oldest = append(one.Oldest, &rpcv1.SlotAttempt{
					TaskId: slices.Clone(t.ID[:]), Position: uint64(t.Position), Version: t.Version, StartedAtMs: t.Attempt.StartedAt,
				})
			}
			out.Holders = append(out.Holders, one)
		}
	})
	return out, err
}

// Undelivered tells, page by page, what the owners before an epoch of a matching shard were granted and may not have
// delivered; as of every event that was in the log when the first page was asked for.
func (q Queries) Undelivered(ctx context.Context, req *rpcv1.UndeliveredRequest) (*rpcv1.UndeliveredResponse, error) {
	after, err := q.pageAfter(ctx, req.Cursor)
	if err != nil {
		return nil, err
	}
	out := &rpcv1.UndeliveredResponse{}
	err = q.Ask(ctx, func(core *replica.Replica) {
		const fixed = 64
		size, last, encoder := 0, ids.TaskID{}, record.Encoder{Tokens: q.Tokens}
		encoder.NowMS = q.NowMS()
		core.Undelivered(int(req.Shard), req.Epoch, after, func(u *replica.Undelivered) bool {
			task := encoder.Polled(&u.Grant)
			if size += fixed + len(task) + len(u.Poll.ReplyTo) + len(u.Grant.Task.Domain); size > pageBytesMax && len(out.Grants) > 0 {
				out.Cursor = cursor(last)
				return false
			}
			last = u.Grant.Task.ID
			token := u.Grant.Token
			out.Grants = append(out.Grants, &rpcv1.UndeliveredGrant{
				ReplyTo: u.Poll.ReplyTo, Json: u.Poll.JSON, MaxTasks: u.Poll.Max, Task: task, Domain: u.Grant.Task.Domain,
				TaskId: slices.Clone(last[:]), Position: uint64(token.Position), Version: token.Version, Nonce: token.Nonce,
			})
			return true
		})
	})
	return out, err
}

// pageAfter is the task that a page begins behind. For the first page it waits until every grab is decided that is in
// the log now.
func (q Queries) pageAfter(ctx context.Context, cursor []byte) (after ids.TaskID, err error) {
	if len(cursor) > 0 {
		if after, err = ids.TaskIDFromBytes(cursor); err != nil {
			return after, fault.At(fault.InvalidArgument, "/cursor", "%v", err)
		}
		return after, nil
	}
	_, ends, err := q.Log.Ends(ctx)
	if err != nil {
		return after, fault.New(fault.Unavailable, "find the log's end: %v", err)
	}
	for decided := false; ; {
		if err := q.Ask(ctx, func(core *replica.Replica) { decided = core.EventAt() >= ends[partition.SourceEvents] }); err != nil || decided {
			return after, err
		}
		if !backoff.Sleep(ctx, 2*time.Millisecond) {
			return after, fault.New(fault.Unavailable, "the owner of partition %d lags behind its log", q.Partition)
		}
	}
}

// cursor is where the page behind a task begins; empty behind none.
func cursor(last ids.TaskID) []byte {
	if last.IsZero() {
		return nil
	}
	return last[:]
}
