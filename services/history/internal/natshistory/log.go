// Package natshistory is the partition's ports on NATS JetStream.
//
// Owns: which stream and subject each port is. Never does: repeat a write; the
// partition does. On failure: errors of natslog and natsrpc, wrapped.
package natshistory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/turn"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Config is what the adapters of one partition share.
type Config struct {
	NATS      *nats.Conn
	JetStream jetstream.JetStream
	Partition int
	// LogVersion is the version that the cluster writes.
	LogVersion func() uint32
	// Weight is how many turns a domain has at the Reader for each one of others; nil = all have as many.
	Weight func(domain string) int
	Log    *slog.Logger
}

// Log reads the partition's log.
type Log struct {
	Config
	// forgotten is the subject of each lane that was purged last, where they are too many for one time.
	forgotten [ids.Lanes]string
}

// NewLog makes one.
func NewLog(c Config) *Log { return &Log{Config: c} }

// prefetchBytes bounds what a lane's reader holds ahead of the window; there are six
// lanes in each partition. queuePrefetchBytes is that of a domain that lags, of which there may be many.
const (
	prefetchBytes      = 2 << 20
	queuePrefetchBytes = 512 << 10
)

func (l *Log) read(filter string, from uint64) natslog.ReadConfig {
	return natslog.ReadConfig{
		Stream: topology.HistoryStream(l.Partition), Filters: []string{filter}, StartSeq: from,
		PrefetchBytes: prefetchBytes, Log: l.Config.Log,
	}
}

func pass(handle func(partition.Record) error) func(natslog.Record) error {
	return func(r natslog.Record) error {
		return handle(partition.Record{Subject: r.Subject, Seq: r.Seq, Time: r.Time, Data: r.Data, Pending: r.Pending})
	}
}

func (l *Log) subject(s partition.Source) string {
	if s == partition.SourceEvents {
		return topology.Event(l.Partition)
	}
	return l.submits(replica.Queue{Lane: ids.Lane(s)})
}

// submits filters a lane, or what is filed there at a place.
func (l *Log) submits(of replica.Queue) string {
	return topology.SubmitsAt(l.Partition, of.Lane, of.Place)
}

// Read implements partition.Log.
func (l *Log) Read(ctx context.Context, s partition.Source, at ids.Place, from, upTo uint64, handle func(partition.Record) error) error {
	what := l.read(l.subject(s), from)
	if at != "" {
		what = l.read(l.submits(replica.Queue{Lane: ids.Lane(s), Place: at}), from)
		what.PrefetchBytes = queuePrefetchBytes
	}
	if upTo == 0 {
		return natslog.Read(ctx, l.JetStream, what, pass(handle))
	}
	return natslog.ReadRange(ctx, l.JetStream, what, upTo, pass(handle))
}

// scanFilters is how many domains a scan filters by; of more it reads the whole lane.
const scanFilters = 32

// Scan implements partition.Capped.
func (l *Log) Scan(ctx context.Context, lane ids.Lane, domains []string, from uint64, handle func(partition.Record) error) (upTo uint64, err error) {
	what := l.read(topology.SubmitShared(l.Partition, lane), from)
	for _, domain := range domains {
		what.Filters = append(what.Filters, topology.SubmitDomain(l.Partition, lane, domain))
	}
	if len(domains) > scanFilters {
		what.Filters = []string{topology.SubmitLane(l.Partition, lane)}
	}
	if upTo, err = natslog.LastSeq(ctx, l.JetStream, what.Stream); err != nil || upTo < from {
		return upTo, err
	}
	return upTo, natslog.ReadRange(ctx, l.JetStream, what, upTo, pass(handle))
}

// Ends implements partition.Log.
func (l *Log) Ends(ctx context.Context) (last uint64, of [partition.Sources]uint64, err error) {
	for s := range of {
		r, err := natslog.LastForSubject(ctx, l.JetStream, topology.HistoryStream(l.Partition), l.subject(partition.Source(s)))
		if err != nil {
			return 0, of, err
		}
		if r != nil {
			of[s] = r.Seq
		}
	}
	last, err = natslog.LastSeq(ctx, l.JetStream, topology.HistoryStream(l.Partition))
	return last, of, err
}

// LastMembers implements partition.Log.
func (l *Log) LastMembers(ctx context.Context, domain, batch string) (all []ids.Position, err error) {
	for lane := range ids.Lane(ids.Lanes) {
		m, err := natslog.LastForSubject(ctx, l.JetStream, topology.HistoryStream(l.Partition), topology.SubmitBatch(l.Partition, lane, domain, batch))
		if err != nil {
			return nil, err
		}
		if m != nil {
			all = append(all, ids.NewPosition(m.Seq, lane))
		}
	}
	return all, nil
}

// Backlog implements partition.Log.
func (l *Log) Backlog(ctx context.Context, of replica.Queue, read uint64) (uint64, error) {
	stream := topology.HistoryStream(l.Partition)
	c, err := l.JetStream.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		FilterSubject: l.submits(of), AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: read + 1,
		MemoryStorage: true, InactiveThreshold: 10 * time.Second,
	})
	if err != nil {
		return 0, err
	}
	return c.CachedInfo().NumPending, l.JetStream.DeleteConsumer(ctx, stream, c.CachedInfo().Name)
}

// Append implements partition.Log.
func (l *Log) Append(ctx context.Context, data []byte, after uint64) (uint64, error) {
	seq, err := appendTo(ctx, l.Config, natslog.Msg{Subject: topology.Event(l.Partition), Data: data}.Over(after))
	if errors.Is(err, natslog.ErrWrongLast) {
		err = fmt.Errorf("%w: %w", turn.ErrWrongTurn, err)
	}
	return seq, err
}

// LastTurn implements partition.Log.
func (l *Log) LastTurn(ctx context.Context) (partition.Record, error) {
	last, err := natslog.LastForSubject(ctx, l.JetStream, topology.HistoryStream(l.Partition), topology.Event(l.Partition))
	if err != nil || last == nil {
		return partition.Record{}, err
	}
	return partition.Record{Subject: last.Subject, Seq: last.Seq, Time: last.Time, Data: last.Data}, nil
}

// Listen implements partition.Log.
func (l *Log) Listen(ctx context.Context, take func(batch []byte)) error {
	sub, err := l.NATS.Subscribe(topology.EventRequests(l.Partition), func(m *nats.Msg) { take(m.Data) })
	if err != nil {
		return err
	}
	<-ctx.Done()
	return sub.Unsubscribe()
}

// appendTimeout bounds one write; the partition repeats it. One that meets a lost leader is never
// answered.
const appendTimeout = 3 * time.Second

// appendTo appends one message.
func appendTo(ctx context.Context, c Config, m natslog.Msg) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	seq, _, err := natslog.Append(ctx, c.NATS, m)
	return seq, refused(err)
}

// refused marks the errors of writes that can never succeed.
func refused(err error) error {
	if err != nil && natslog.Permanent(err) {
		return fmt.Errorf("%w: %w", partition.ErrRefused, err)
	}
	return err
}

// Checkpoints keeps the checkpoint in a KV bucket.
type Checkpoints struct {
	Config
	KV jetstream.KeyValue
}

// Load implements partition.Checkpoints.
func (c Checkpoints) Load(ctx context.Context) (*logv1.Checkpoint, uint64, error) {
	e, err := c.KV.Get(ctx, topology.HistoryCheckpoint(c.Partition))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	cp := &logv1.Checkpoint{}
	if err := cp.UnmarshalVT(e.Value()); err != nil {
		return nil, 0, fmt.Errorf("checkpoint of partition %d: %w", c.Partition, err)
	}
	return cp, e.Revision(), nil
}

// Save implements partition.Checkpoints.
func (c Checkpoints) Save(ctx context.Context, cp *logv1.Checkpoint, revision uint64) (uint64, error) {
	data, err := cp.MarshalVT()
	if err != nil {
		return 0, err
	}
	key := topology.HistoryCheckpoint(c.Partition)
	var next uint64
	if revision == 0 {
		next, err = c.KV.Create(ctx, key, data)
	} else {
		next, err = c.KV.Update(ctx, key, data, revision)
	}
	var api *jetstream.APIError
	if errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return 0, partition.ErrTakenOver
	}
	return next, err
}
