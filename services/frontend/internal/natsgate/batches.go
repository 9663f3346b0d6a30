package natsgate

import (
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/home"
)

// Batches reads of batches (batches.List).
type Batches struct{ *Reader }

// batchPageBytes bounds a page: a batch has its callback with it.
const batchPageBytes = 4 << 20

// Page reads batches in the order in which they were changed.
func (b Batches) Page(ctx context.Context, p int, domain string, after uint64, limit int) (page []batches.Kept, more bool, err error) {
	query := natslog.Query{Seq: after + 1, NextFor: topology.BatchHomesOf(p, domain), Batch: limit, BytesMax: batchPageBytes}
	answers, err := b.direct.Get(ctx, topology.HistoryStream(p), []natslog.Query{query})
	if err != nil {
		return nil, false, fault.New(fault.Unavailable, "the log does not answer: %v", err)
	}
	for _, r := range answers[0].Records {
		batch, err := home.Decode[logv1.BatchHome](home.Place{Partition: p, Noun: batches.Noun}, &r)
		if err != nil {
			return nil, false, err
		}
		page = append(page, batches.Kept{Seq: r.Seq, Home: batch})
	}
	return page, answers[0].More, nil
}

// Count counts them without reading them.
func (b Batches) Count(ctx context.Context, p int, domain string) (int, error) {
	answers, err := b.direct.Get(ctx, topology.HistoryStream(p), []natslog.Query{{Seq: 1, NextFor: topology.BatchHomesOf(p, domain), Batch: 1}})
	if err != nil {
		return 0, fault.New(fault.Unavailable, "the log does not answer: %v", err)
	}
	return len(answers[0].Records) + int(answers[0].Pending), nil
}
