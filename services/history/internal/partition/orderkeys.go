package partition

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/paging"
)

// keysMax is the most order keys of one answer.
const keysMax = 1000

// Keys tells of the order keys of a domain that have tasks in memory, those that wait for longest at first. Without a lease another owner may have
// read more, and an operator acts on what is said here.
func (o *Owner) Keys(ctx context.Context, req *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error) {
	q := &line.Query{
		Domain: req.Domain, Key: req.OrderKey, Blocked: req.Blocked, Waiting: req.Waiting,
		After: line.Place{Since: req.AfterSinceMs, Key: req.AfterKey}, Limit: max(1, min(int(req.Limit), keysMax)),
	}
	out := &rpcv1.ListKeysResponse{}
	err := o.Look(ctx, req.Domain, func(core *replica.Replica) {
		var found []line.Line
		found, out.More = core.OrderKeys().Find(q)
		for _, l := range found {
			out.Keys = append(out.Keys, &yardv1.OrderKey{
				OrderKey: l.Key, Head: record.Public(l.Head, true, o.now().MS), Waiting: int64(l.Waiting), SinceMs: l.Since, Reason: l.Head.Why(),
			})
		}
	})
	if err != nil {
		return nil, err
	}
	page, cut := paging.Cut(out.Keys, len(out.Keys), paging.BytesMax, (*yardv1.OrderKey).SizeVT)
	out.Keys, out.More = page, out.More || cut
	return out, nil
}
