package batches

import (
	"context"
	"errors"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/home"
)

// CloseMembers closes a batch, whose home is marked, in all partitions. After an error its keeper closes the others, or a repeat.
func (h Homes) CloseMembers(ctx context.Context, domain string, home *logv1.BatchHome) error {
	if home.EndedAtMs != 0 { // it ended behind its close
		return nil
	}
	err := parallel.Each(ctx, h.Partitioning.History, askedAtOnce, func(ctx context.Context, p int) error {
		ctx, cancel := context.WithTimeout(ctx, h.AppendTimeout)
		defer cancel()
		return batchclose.Close(ctx, h.Log, batchclose.Key{Partition: p, Domain: domain, ID: home.BatchId, Made: home.CreatedAtMs}, h.LogVersion())
	})
	switch {
	case errors.Is(err, natslog.ErrFull):
		return call.StorageFull()
	case err != nil:
		return fault.New(fault.Unavailable, "the batch is not closed in all partitions yet: repeat the request: %v", err).After(call.AwayRetryAfter)
	}
	return nil
}

// place is where the log has a batch.
func (h Homes) place(domain, id string) home.Place {
	p := topology.BatchPartition(domain, id, h.Partitioning)
	return home.Place{Partition: p, Subject: topology.BatchHome(p, domain, id), Noun: Noun}
}

// Noun is what people call a batch.
const Noun = "batch"

// Home reads a batch; nil = there is none. Seq is where it lies.
func (h Homes) Home(ctx context.Context, domain, id string) (found *logv1.BatchHome, seq uint64, err error) {
	return home.Read[logv1.BatchHome](ctx, h.Log, h.place(domain, id))
}
