package batches

import (
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// A count waits for tasks that were stored a moment ago: it looks every countEvery, for countFor at most.
const (
	countEvery = 10 * time.Millisecond
	countFor   = 300 * time.Millisecond
)

// Owner is the owner of a partition.
type Owner interface {
	// Look runs fn on what the owner has in memory, for a domain.
	Look(ctx context.Context, domain string, fn func(r *replica.Replica)) error
}

// Members is the log of a partition.
type Members interface {
	// LastMembers are the positions of the last message with tasks of a batch in each lane that has one, as the leader of the stream has them.
	LastMembers(ctx context.Context, domain, batch string) ([]ids.Position, error)
}

// Count counts the tasks of a batch that a partition has admitted, and their ends, or forgets them, since the batch is
// over. Owners need not agree on that: no one asks for the number any more.
func Count(ctx context.Context, owner Owner, log Members, req *rpcv1.CountBatchRequest) (*rpcv1.CountBatchResponse, error) {
	name := batch.Name{Domain: req.Domain, ID: req.BatchId, Made: req.MadeMs}
	out := &rpcv1.CountBatchResponse{}
	if req.Forget {
		return out, owner.Look(ctx, req.Domain, func(r *replica.Replica) { delete(r.Members, name) })
	}
	var last []ids.Position
	if !req.Counted {
		var err error
		if last, err = log.LastMembers(ctx, req.Domain, req.BatchId); err != nil {
			return nil, fault.New(fault.Unavailable, "look for the tasks of the batch: %v", err)
		}
	}
	for until := time.Now().Add(countFor); ; backoff.Sleep(ctx, countEvery) {
		err := owner.Look(ctx, req.Domain, func(r *replica.Replica) {
			tally := r.Members[name]
			out.Tasks, out.Ends = tally.Tasks, record.StoredEnds(tally.Ends)
			out.Complete = !slices.ContainsFunc(last, func(at ids.Position) bool { return r.Unread(at.InMixed(), req.Domain, "") })
		})
		if err != nil || out.Complete || time.Now().After(until) || ctx.Err() != nil {
			return out, err
		}
	}
}
