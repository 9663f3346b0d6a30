package natshistory

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Shelf is the pages in the log of tasks that wait behind others of their order key.
type Shelf struct{ Config }

// Write implements partition.Shelf.
func (s Shelf) Write(ctx context.Context, epoch, n uint64, page []byte) (uint64, error) {
	return appendTo(ctx, s.Config, natslog.Msg{Subject: topology.ShelfPage(s.Partition, epoch, n), Data: page})
}

// Read implements partition.Shelf.
func (s Shelf) Read(ctx context.Context, seq uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := natslog.Get(ctx, s.JetStream, topology.HistoryStream(s.Partition), seq)
	if err != nil || r == nil {
		return nil, err
	}
	return r.Data, nil
}

// forgetPages purges the pages that no one needs: those up to a level, and some behind that, each by the subject that it has for itself.
func (l *Log) forgetPages(ctx context.Context, stream jetstream.Stream, levels replica.Levels) error {
	purge := func(subject string, upTo uint64) error {
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(upTo+1)); err != nil {
			return fmt.Errorf("purge %s up to %d: %w", subject, upTo, err)
		}
		return nil
	}
	if levels.Shelf > 0 {
		if err := purge(topology.ShelfAny(l.Partition), levels.Shelf); err != nil {
			return err
		}
	}
	for _, seq := range levels.Dead {
		if seq <= levels.Shelf {
			continue
		}
		page, err := natslog.Get(ctx, l.JetStream, topology.HistoryStream(l.Partition), seq)
		if err != nil {
			return fmt.Errorf("find page %d of the shelf: %w", seq, err)
		}
		if page == nil {
			continue
		}
		if err := purge(page.Subject, seq); err != nil {
			return err
		}
	}
	return nil
}
