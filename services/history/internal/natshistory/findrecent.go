package natshistory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// recentWindows is how far back a list of finished tasks looks, in messages from the
// archive's end; it looks no further once it has enough.
var recentWindows = [...]uint64{32, 128, 512}

// Recent implements partition.Reader.
func (r *Reader) Recent(ctx context.Context, domain string, limit int, wanted func(*logv1.Record) bool) ([]*logv1.Record, error) {
	stream := topology.ArchiveStream(r.cfg.Partition)
	last, err := natslog.LastSeq(ctx, r.cfg.JetStream, stream)
	if err != nil {
		return nil, err
	}
	var newest []*logv1.Record
	for end, i := last+1, 0; i < len(recentWindows) && end > 1 && len(newest) < limit; i++ {
		begin := max(1, last+1-min(last, recentWindows[i]))
		some, err := r.ofDomain(ctx, stream, domain, begin, end)
		if err != nil {
			return nil, err
		}
		some = slices.DeleteFunc(some, func(t *logv1.Record) bool { return !wanted(t) })
		slices.Reverse(some)
		newest = append(newest, some...)
		end = begin
	}
	return newest[:min(max(limit, 0), len(newest))], nil
}

// ofDomain reads a domain's tasks from the messages begin..end-1, in order.
func (r *Reader) ofDomain(ctx context.Context, stream, domain string, begin, end uint64) (all []*logv1.Record, err error) {
	var msgs []natslog.Record
	for _, subject := range []string{topology.ArchiveOf(r.cfg.Partition, domain), topology.ArchiveSharedAny(r.cfg.Partition)} {
		for next := begin; next < end; {
			answers, err := r.get(ctx, stream, natslog.Query{Seq: next, NextFor: subject, Batch: scanMsgs, BytesMax: scanBytes})
			if err != nil {
				return nil, err
			}
			some := answers[0].Records
			msgs = append(msgs, some...)
			if !answers[0].More || len(some) == 0 {
				break
			}
			next = some[len(some)-1].Seq + 1
		}
	}
	slices.SortFunc(msgs, func(a, b natslog.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, m := range msgs {
		if m.Seq >= end {
			break
		}
		some, err := record.OfDomain(m.Data, domain)
		if err != nil {
			return nil, fmt.Errorf("message %d of the archive: %w", m.Seq, err)
		}
		all = append(all, some...)
	}
	return all, nil
}
