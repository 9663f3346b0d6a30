package natshistory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/batch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/batchclose"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Batches implements batches.Store for the partition of its config.
type Batches struct{ Config }

// Follow implements batches.Store.
func (b Batches) Follow(ctx context.Context, handle func(batch.Home) error) error {
	cfg := natslog.ReadConfig{
		Stream: topology.HistoryStream(b.Partition), Filters: []string{topology.BatchHomeAny(b.Partition)}, PrefetchBytes: queuePrefetchBytes, Log: b.Log,
	}
	return natslog.Read(ctx, b.JetStream, cfg, func(r natslog.Record) error {
		home, err := homeOf(&r)
		switch {
		case errors.Is(err, partition.ErrUnreadable):
			return err
		case err != nil: // the doctor reports it; the partition goes on without it
			b.Log.Error("a batch cannot be decoded, and is passed over", "partition", b.Partition, "subject", r.Subject, "error", err)
			return nil
		}
		return handle(batches.HomeOf(topology.DomainOfBatchHome(b.Partition, r.Subject), home))
	})
}

func homeOf(r *natslog.Record) (*logv1.BatchHome, error) {
	home := &logv1.BatchHome{}
	if err := home.UnmarshalVT(r.Data); err != nil {
		return nil, fmt.Errorf("message %d of the log is no batch: %w", r.Seq, err)
	}
	if err := logversion.Check(home.LogVersion); err != nil {
		return nil, fmt.Errorf("%w: message %d of the log: %w", partition.ErrUnreadable, r.Seq, err)
	}
	return home, nil
}

// Load implements batches.Store.
func (b Batches) Load(ctx context.Context, name batch.Name) (*batches.Loaded, error) {
	m, err := b.LastFor(ctx, b.Partition, topology.BatchHome(b.Partition, name.Domain, name.ID))
	if err != nil || m == nil {
		return nil, err
	}
	home, err := homeOf(m)
	if err != nil || home.CreatedAtMs != name.Made { // another one has its name
		return nil, err
	}
	return &batches.Loaded{Domain: name.Domain, Seq: m.Seq, Home: home}, nil
}

// closeKey names a batch in partition p.
func closeKey(name batch.Name, p int) batchclose.Key {
	return batchclose.Key{Partition: p, Domain: name.Domain, ID: name.ID, Made: name.Made}
}

// LastFor implements batchclose.Log.
func (b Batches) LastFor(ctx context.Context, p int, subject string) (*natslog.Record, error) {
	return natslog.LastForSubject(ctx, b.JetStream, topology.HistoryStream(p), subject)
}

// Append implements batchclose.Log.
func (b Batches) Append(ctx context.Context, m natslog.Msg) (seq uint64, duplicate bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	return natslog.Append(ctx, b.NATS, m)
}

// Close implements batches.Store.
func (b Batches) Close(ctx context.Context, name batch.Name, p int) error {
	return batchclose.Close(ctx, b, closeKey(name, p), b.LogVersion())
}

// Count implements batches.Store.
func (b Batches) Count(ctx context.Context, name batch.Name, p int, counted bool) (tally batch.Tally, complete bool, err error) {
	resp, err := b.call(ctx, name, p, &rpcv1.CountBatchRequest{Counted: counted})
	return batch.Tally{Tasks: resp.GetTasks(), Ends: record.Ends(resp.GetEnds())}, resp.GetComplete(), err
}

// call asks the owner of a partition about a batch.
func (b Batches) call(ctx context.Context, name batch.Name, p int, req *rpcv1.CountBatchRequest) (*rpcv1.CountBatchResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	req.Domain, req.BatchId, req.MadeMs = name.Domain, name.ID, name.Made
	return natsrpc.Call[rpcv1.CountBatchResponse](ctx, b.NATS, topology.HistoryCall(p, "batch"), req)
}

// End implements batches.Store.
func (b Batches) End(ctx context.Context, was *batches.Loaded, over *logv1.BatchHome, callback *logv1.Record) error {
	data, err := over.MarshalVT()
	if err != nil {
		return fmt.Errorf("a batch that is over: %w", err)
	}
	home := natslog.Msg{Subject: topology.BatchHome(b.Partition, was.Domain, over.BatchId), Data: data}
	msgs := []natslog.Msg{home.InPlace(time.Duration(over.KeepMs) * time.Millisecond).Over(was.Seq)}
	if callback != nil {
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{callback}, LogVersion: b.LogVersion()}).MarshalVT()
		if err != nil {
			return fmt.Errorf("the callback of a batch: %w", err)
		}
		msgs = append(msgs, natslog.Msg{Subject: topology.Submit(b.Partition, ids.Lane(callback.Priority), callback.Domain, callback.Tasklist), Data: data})
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	_, err = natslog.AppendAtomic(ctx, b.NATS, msgs)
	if errors.Is(err, natslog.ErrWrongLast) {
		return batches.ErrMoved
	}
	return err
}

// Forget implements batches.Store.
func (b Batches) Forget(ctx context.Context, name batch.Name, p int) error {
	if _, err := b.call(ctx, name, p, &rpcv1.CountBatchRequest{Forget: true}); err != nil {
		return err
	}
	return batchclose.Keep(ctx, b, closeKey(name, p), b.LogVersion(), topology.BatchClosedKept)
}

// hintsWaitingMax bounds the hints that wait to be read.
const hintsWaitingMax = 4096

// Hints hands out batches of the partition of which more tasks may have ended, until ctx ends.
func (b Batches) Hints(ctx context.Context, hint func(batch.Name)) error {
	in := make(chan *nats.Msg, hintsWaitingMax)
	sub, err := b.NATS.ChanSubscribe(topology.HintBatch(b.Partition), in)
	if err != nil {
		return fmt.Errorf("listen for hints about batches: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only where the connection is closed
	for {
		select {
		case <-ctx.Done():
			return nil
		case m := <-in:
			var said logv1.BatchHint
			if said.UnmarshalVT(m.Data) != nil {
				continue
			}
			for _, ref := range said.Batches {
				hint(batch.Name{Domain: ref.Domain, ID: ref.BatchId, Made: ref.MadeMs})
			}
		}
	}
}
