package natshistory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// recentWindows is how far back a list of finished tasks looks, in messages from the
// archive's end. It looks no further if all that lies behind is older than what it has.
var recentWindows = [...]uint64{32, 128, 512}

// idAheadMax is how much later than the end of a task, by the server's clock, its id may be dated: clocks differ.
const idAheadMax = time.Minute

// Recent implements partition.Reader.
func (r *Reader) Recent(ctx context.Context, domain string, limit int, wanted func(*logv1.Record) bool) ([]*logv1.Record, error) {
	stream := topology.ArchiveStream(r.cfg.Partition)
	last, err := natslog.LastSeq(ctx, r.cfg.JetStream, stream)
	if err != nil {
		return nil, err
	}
	var newest []*logv1.Record
	seen := map[ids.TaskID]bool{}
	for end, i := last+1, 0; i < len(recentWindows) && end > 1 && limit > 0; i++ {
		begin := max(1, last+1-min(last, recentWindows[i]))
		some, since, err := r.ofDomain(ctx, stream, domain, begin, end)
		if err != nil {
			return nil, err
		}
		for _, t := range slices.Backward(some) {
			if id := ids.TaskID(t.Id); !seen[id] { // or it has ended again since
				seen[id] = true
				if wanted(t) {
					newest = append(newest, t)
				}
			}
		}
		slices.SortFunc(newest, func(a, b *logv1.Record) int { return bytes.Compare(b.Id, a.Id) })
		newest = newest[:min(limit, len(newest))]
		if len(newest) == limit && len(some) > 0 && ids.TaskID(newest[limit-1].Id).Time().After(since.Add(idAheadMax)) {
			break
		}
		end = begin
	}
	return newest, nil
}

// ofDomain reads a domain's tasks from the messages begin..end-1, in the order of their ends. Since is when the first of them was stored.
func (r *Reader) ofDomain(ctx context.Context, stream, domain string, begin, end uint64) (all []*logv1.Record, since time.Time, err error) {
	var msgs []natslog.Record
	for _, subject := range []string{topology.ArchiveOf(r.cfg.Partition, domain), topology.ArchiveSharedAny(r.cfg.Partition)} {
		for next := begin; next < end; {
			answers, err := r.get(ctx, stream, natslog.Query{Seq: next, NextFor: subject, Batch: scanMsgs, BytesMax: scanBytes})
			if err != nil {
				return nil, since, err
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
			return nil, since, fmt.Errorf("message %d of the archive: %w", m.Seq, err)
		}
		if len(all) == 0 {
			since = m.Time
		}
		all = append(all, some...)
	}
	return all, since, nil
}
