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

// duePage lists the tasks that wait for their time and are due soon. A page has as many whole minutes as fit, of all partitions. A minute that does not fit
// has pages of its own, partition by partition, as its tasks lie in the store.
func (q *Queries) duePage(ctx context.Context, c call.Call, req *yardv1.ListRequest) (page []*yardv1.Task, next string, err error) {
	from, _ := validate.DueCursor(req.Cursor)
	if from.Partition >= q.Partitioning.History {
		return nil, "", fault.At(fault.InvalidArgument, "/cursor", "is not the next_cursor of an answer")
	}
	endMS := c.ServerNow().UnixMilli() + req.DueWithinMs
	until := endMS/minuteMS + 1
	defer func() {
		page = slices.DeleteFunc(page, func(t *yardv1.Task) bool { return t.DueAtMs > endMS })
	}()
	if from.Partition > 0 || from.Seq > 0 {
		return q.dueInMinute(ctx, c, req, from, until)
	}
	parts, err := owners.Same(ctx, q.Partitioning.History, q.Tasks.TimerAhead, &rpcv1.CountAheadRequest{
		Domain: c.Domain, Tasklist: req.Tasklist, Type: req.Type, FromMinute: from.Minute, UntilMinute: until, SpanMinutes: 1, SpansMax: req.Limit,
	})
	if err != nil {
		return nil, "", err
	}
	minutes := gather.Minutes(parts)
	if len(minutes) == 0 {
		return nil, "", nil
	}
	first := minutes[0].Minute
	for n := gather.Fitting(minutes, req.Limit); n > 0; n /= 2 {
		last := minutes[n-1].Minute
		page, whole, err := q.dueWhole(ctx, c, req, first, last+1)
		switch {
		case err != nil:
			return nil, "", err
		case whole == first:
			n = 1 // there is too much to read
		case len(page) > int(req.Limit) || tooLarge(c, page):
		case whole <= last || n < len(minutes) || n == int(req.Limit): // of more minutes than the limit a partition says nothing
			return page, afterMinute(whole-1, until), nil
		default:
			return page, "", nil
		}
	}
	return q.dueInMinute(ctx, c, req, validate.DuePlace{Minute: first}, until)
}

// afterMinute is the cursor of what is due after a minute; empty = the list ends there.
func afterMinute(minute, until int64) string {
	if minute+1 >= until {
		return ""
	}
	return validate.DuePlace{Minute: minute + 1}.String()
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

// dueInMinute lists tasks that are due in the minute of a place, from there on.
func (q *Queries) dueInMinute(ctx context.Context, c call.Call, req *yardv1.ListRequest, at validate.DuePlace, until int64) (page []*yardv1.Task, next string, err error) {
	for ; at.Partition < q.Partitioning.History; at = (validate.DuePlace{Minute: at.Minute, Partition: at.Partition + 1}) {
		left := req.Limit - int32(len(page))
		if left <= 0 {
			return gather.ByDue(page), at.String(), nil
		}
		found, err := q.dueOf(ctx, c, req, at, left)
		if err != nil {
			return nil, "", err
		}
		all := slices.Concat(page, found.Tasks)
		if len(page) > 0 && tooLarge(c, all) {
			return gather.ByDue(page), at.String(), nil
		}
		if page = all; found.DueNext != nil {
			at.Seq, at.Index = found.DueNext.Seq, found.DueNext.Index
			return gather.ByDue(page), at.String(), nil
		}
	}
	return gather.ByDue(page), afterMinute(at.Minute, until), nil
}

// dueOf lists up to limit tasks of one partition that are due in the minute of a place, from there on, or fewer if these do not fit into an answer.
func (q *Queries) dueOf(ctx context.Context, c call.Call, req *yardv1.ListRequest, at validate.DuePlace, limit int32) (*rpcv1.ListTasksResponse, error) {
	ask := &rpcv1.ListTasksRequest{
		Domain: c.Domain, Filter: req.CloneVT(), DueFrom: &rpcv1.DuePlace{Minute: at.Minute, Seq: at.Seq, Index: at.Index}, DueUntilMinute: at.Minute + 1,
	}
	for ask.Filter.Limit = limit; ; ask.Filter.Limit = max(1, ask.Filter.Limit/2) {
		found, err := owners.Retry(ctx, time.Time{}, func(ctx context.Context) (*rpcv1.ListTasksResponse, error) {
			return q.Tasks.TimerList(ctx, at.Partition, ask)
		})
		if err != nil || !tooLarge(c, found.Tasks) {
			return found, err
		}
	}
}
