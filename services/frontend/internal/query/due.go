package query

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/duelist"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/gather"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"
)

const minuteMS = int64(time.Minute / time.Millisecond)

// CountTimers counts the tasks of a domain that wait for their time, by when they are due (timers.count).
func (q *Queries) CountTimers(c call.Call, req *yardv1.CountTimersRequest, answer call.Answer) {
	q.Run.Ask(c, validate.CountTimers(req), answer, func(ctx context.Context) (codec.Message, error) {
		span, now := req.SpanMs/minuteMS, c.ServerNow().UnixMilli()
		first, until := now/req.SpanMs*span, (now+req.WithinMs+req.SpanMs-1)/req.SpanMs*span
		parts, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.TimerAhead, &rpcv1.CountAheadRequest{
			Domain: c.Domain, Tasklist: req.Tasklist, Type: req.Type, UntilMinute: until, FirstMinute: first, SpanMinutes: span, SpansMax: validate.SpansMax + 2,
		})
		if err != nil {
			return nil, err
		}
		return gather.Timers(parts, req, span), nil
	})
}

// duePage lists the tasks that wait for their time and are due soon, as core/duelist asks for them.
func (q *Queries) duePage(ctx context.Context, c call.Call, req *yardv1.ListRequest) (page []*yardv1.Task, next string, err error) {
	from, _ := duelist.Parse(req.Cursor)
	if from.Partition >= q.Partitioning.History {
		return nil, "", fault.At(fault.InvalidArgument, "/cursor", "is not the next_cursor of an answer")
	}
	endMS := c.ServerNow().UnixMilli() + req.DueWithinMs
	for p := duelist.Begin(from, endMS/minuteMS+1, int(req.Limit), q.Partitioning.History); ; {
		switch step := p.Step(); step.Ask {
		case duelist.Count:
			parts, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.TimerAhead, &rpcv1.CountAheadRequest{
				Domain: c.Domain, Tasklist: req.Tasklist, Type: req.Type, FromMinute: step.From, UntilMinute: step.Until, SpanMinutes: 1, SpansMax: req.Limit,
			})
			if err != nil {
				return nil, "", err
			}
			p.Counted(gather.Minutes(parts))
		case duelist.Whole:
			found, before, err := q.dueWhole(ctx, c, req, step.From, step.Until)
			if err != nil {
				return nil, "", err
			}
			if p.WholeRead(len(found), before, !tooLarge(c, found)) {
				page = found
			}
		case duelist.Part:
			found, goesOn, err := q.duePart(ctx, c, req, step.At, int32(step.Limit))
			if err != nil {
				return nil, "", err
			}
			if all := slices.Concat(page, found); p.PartRead(len(found), !tooLarge(c, all), goesOn) {
				page = all
			}
		case duelist.End:
			return slices.DeleteFunc(gather.ByDue(page), func(t *yardv1.Task) bool { return t.DueAtMs > endMS }), step.Next, nil
		}
	}
}

// wholeCalls is how many answers of a partition a page of whole minutes takes, at most: each ends after a tenth of a second.
const wholeCalls = 4

// dueWhole lists the tasks that are due in some minutes. Those of all minutes before whole were read, which is until, or less if others' tasks are too many.
func (q *Queries) dueWhole(ctx context.Context, c call.Call, req *yardv1.ListRequest, from, until int64) (page []*yardv1.Task, whole int64, err error) {
	parts, err := owners.Every(ctx, q.Partitioning.History, func(ctx context.Context, p int) (*rpcv1.ListTasksResponse, error) {
		part := &rpcv1.ListTasksResponse{DueNext: &rpcv1.DuePlace{Minute: from}}
		for calls := 0; part.DueNext != nil && calls < wholeCalls && len(part.Tasks) <= int(req.Limit); calls++ {
			found, err := q.Tasks.TimerList(ctx, p, &rpcv1.ListTasksRequest{Domain: c.Domain, Filter: req, DueFrom: part.DueNext, DueUntilMinute: until})
			if err != nil {
				return nil, err
			}
			part.Tasks, part.DueNext = append(part.Tasks, found.Tasks...), found.DueNext
		}
		return part, nil
	})
	whole = until
	for _, p := range parts {
		if page = append(page, p.Tasks...); p.DueNext != nil {
			whole = min(whole, p.DueNext.Minute)
		}
	}
	page = slices.DeleteFunc(page, func(t *yardv1.Task) bool { return t.DueAtMs >= whole*minuteMS })
	return gather.ByDue(page), whole, err
}

// duePart lists up to limit tasks of one partition that are due in the minute of a place, from there on, or fewer if these do not fit into an answer, and returns
// where the partition goes on.
func (q *Queries) duePart(ctx context.Context, c call.Call, req *yardv1.ListRequest, at duelist.Place, limit int32) (all []*yardv1.Task, goesOn *duelist.Place, err error) {
	ask := &rpcv1.ListTasksRequest{
		Domain: c.Domain, Filter: req.CloneVT(), DueFrom: &rpcv1.DuePlace{Minute: at.Minute, Seq: at.Seq, Index: at.Index}, DueUntilMinute: at.Minute + 1,
	}
	for ask.Filter.Limit = limit; ; ask.Filter.Limit = max(1, ask.Filter.Limit/2) {
		found, err := owners.Retry(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.ListTasksResponse, error) {
			return q.Tasks.TimerList(ctx, at.Partition, ask)
		})
		if err != nil {
			return nil, nil, err
		}
		if tooLarge(c, found.Tasks) {
			continue
		}
		if next := found.DueNext; next != nil {
			goesOn = &duelist.Place{Seq: next.Seq, Index: next.Index}
		}
		return found.Tasks, goesOn, nil
	}
}
