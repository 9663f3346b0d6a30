package natshistory

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// Timer reaches the timer partition of the same number.
type Timer struct{ Config }

// Tail implements partition.Timer.
func (t Timer) Tail(ctx context.Context, after uint64, handle func(batch []byte) error) error {
	cfg := natslog.ReadConfig{Stream: topology.TimerStream(t.Partition), StartSeq: after + 1, Log: t.Config.Log}
	return natslog.ReadAll(ctx, t.JetStream, cfg, func(r natslog.Record) error { return handle(r.Data) })
}

// Cancel implements partition.Timer.
func (t Timer) Cancel(ctx context.Context, id []ids.TaskID) ([]*logv1.Record, []ids.TaskID, error) {
	req := &rpcv1.CancelWaitingRequest{}
	for i := range id {
		req.TaskIds = append(req.TaskIds, id[i][:])
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	resp, err := natsrpc.Call[rpcv1.CancelWaitingResponse](ctx, t.NATS, topology.TimerCall(t.Partition, "cancel"), req)
	if err != nil {
		return nil, nil, err
	}
	var fired []ids.TaskID
	for _, b := range resp.Fired {
		one, err := ids.TaskIDFromBytes(b)
		if err != nil {
			return nil, nil, err
		}
		fired = append(fired, one)
	}
	return resp.Tasks, fired, nil
}

// Finder looks for tasks in the archive and in the unread part of the log.
type Finder struct{ Config }

// errFound ends a scan.
var errFound = errors.New("found")

// Archived implements partition.Finder: a task is filed by the minute of its creation,
// which its id tells. A task archived twice, by a takeover, is found in either.
func (f Finder) Archived(ctx context.Context, id ids.TaskID) (*logv1.Record, error) {
	filter := topology.Archive(f.Partition, "*", topology.ArchiveMinute(id.Time().UnixMilli()))
	cfg := natslog.ReadConfig{Stream: topology.ArchiveStream(f.Partition), Filters: []string{filter}}
	var found *logv1.Record
	err := natslog.ReadAll(ctx, f.JetStream, cfg, func(r natslog.Record) (err error) {
		if found, err = pick(r.Data, id); err == nil && found != nil {
			return errFound
		}
		return err
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return found, nil
}

// pick finds one task in a batch.
func pick(data []byte, id ids.TaskID) (*logv1.Record, error) {
	if !bytes.Contains(data, id[:]) {
		return nil, nil // spares the decoding of all the batches it is not in
	}
	var b logv1.Batch
	if err := b.UnmarshalVT(data); err != nil {
		return nil, err
	}
	for _, t := range b.Tasks {
		if ids.TaskID(t.Id) == id {
			return t, nil
		}
	}
	return nil, nil
}

const (
	// clockSkew is how far the clocks of a frontend and the log may be apart, and
	// appendDelay how long after its creation a task can be appended.
	clockSkew   = 5 * time.Second
	appendDelay = 20 * time.Second
	scanBatch   = 64
)

// Unread implements partition.Finder: a submit lies in the log shortly after the
// task's creation, which its id tells.
func (f Finder) Unread(ctx context.Context, id ids.TaskID, read [ids.Lanes]uint64) (*logv1.Record, error) {
	created := id.Time()
	start := created.Add(-clockSkew)
	for lane := range ids.Lane(ids.Lanes) {
		cfg := jetstream.ConsumerConfig{
			FilterSubject: topology.SubmitLane(f.Partition, lane), AckPolicy: jetstream.AckNonePolicy,
			DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &start,
			MemoryStorage: true, InactiveThreshold: 10 * time.Second,
		}
		found, err := f.scan(ctx, cfg, id, read[lane], created.Add(clockSkew+appendDelay))
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}

// scan reads a lane from the consumer's start until a message is younger than end.
func (f Finder) scan(ctx context.Context, cfg jetstream.ConsumerConfig, id ids.TaskID, read uint64, end time.Time) (*logv1.Record, error) {
	stream := topology.HistoryStream(f.Partition)
	c, err := f.JetStream.CreateConsumer(ctx, stream, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = f.JetStream.DeleteConsumer(ctx, stream, c.CachedInfo().Name) // it would expire by itself
	}()
	for c.CachedInfo().NumPending > 0 {
		batch, err := c.FetchNoWait(scanBatch)
		if err != nil {
			return nil, err
		}
		n := 0
		for m := range batch.Messages() {
			n++
			meta, err := m.Metadata()
			if err != nil {
				return nil, err
			}
			if meta.Timestamp.After(end) {
				return nil, nil
			}
			if meta.Sequence.Stream <= read {
				continue
			}
			if found, err := pick(m.Data(), id); err != nil || found != nil {
				return found, err
			}
		}
		if n == 0 {
			return nil, batch.Error()
		}
	}
	return nil, nil
}

// recentMessages is how many of the archive's latest messages a list looks through.
const recentMessages = 20

// Recent implements partition.Finder.
func (f Finder) Recent(ctx context.Context, domain string, limit int) ([]*logv1.Record, error) {
	last, err := natslog.LastSeq(ctx, f.JetStream, topology.ArchiveStream(f.Partition))
	if err != nil || last == 0 {
		return nil, err
	}
	cfg := natslog.ReadConfig{
		Stream: topology.ArchiveStream(f.Partition), Filters: []string{topology.ArchiveDomain(f.Partition, domain)},
		StartSeq: last - min(last, recentMessages) + 1,
	}
	var all []*logv1.Record
	err = natslog.ReadRange(ctx, f.JetStream, cfg, last, func(r natslog.Record) error {
		var b logv1.Batch
		if err := b.UnmarshalVT(r.Data); err != nil {
			return err
		}
		all = append(all, b.Tasks...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	newest := make([]*logv1.Record, 0, min(limit, len(all)))
	for i := len(all) - 1; i >= 0 && len(newest) < limit; i-- {
		newest = append(newest, all[i])
	}
	return newest, nil
}

// Backlog implements partition.Finder.
func (f Finder) Backlog(ctx context.Context, lane ids.Lane, read uint64) (uint64, error) {
	stream := topology.HistoryStream(f.Partition)
	c, err := f.JetStream.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		FilterSubject: topology.SubmitLane(f.Partition, lane), AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: read + 1,
		MemoryStorage: true, InactiveThreshold: 10 * time.Second,
	})
	if err != nil {
		return 0, err
	}
	return c.CachedInfo().NumPending, f.JetStream.DeleteConsumer(ctx, stream, c.CachedInfo().Name)
}
