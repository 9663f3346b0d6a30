// Package natshistory is the partition's ports on NATS JetStream.
//
// Owns: which stream and subject each port is. Never does: repeat a write; the
// partition does. On failure: errors of natslog and natsrpc, wrapped.
package natshistory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Config is what the adapters of one partition share.
type Config struct {
	NATS      *nats.Conn
	JetStream jetstream.JetStream
	Partition int
	Log       *slog.Logger
}

// Log reads the partition's log.
type Log struct{ Config }

// prefetchBytes bounds what a lane's reader holds ahead of the window; there are six
// lanes in each partition.
const prefetchBytes = 2 << 20

func (l Log) read(filter string, from uint64) natslog.ReadConfig {
	return natslog.ReadConfig{
		Stream: topology.HistoryStream(l.Partition), Filters: []string{filter}, StartSeq: from,
		PrefetchBytes: prefetchBytes, Log: l.Config.Log,
	}
}

func pass(handle func(partition.Record) error) func(natslog.Record) error {
	return func(r natslog.Record) error {
		return handle(partition.Record{Seq: r.Seq, Time: r.Time, Data: r.Data, Pending: r.Pending})
	}
}

// ReadLane implements partition.Log.
func (l Log) ReadLane(ctx context.Context, lane ids.Lane, from uint64, handle func(partition.Record) error) error {
	return natslog.Read(ctx, l.JetStream, l.read(topology.SubmitLane(l.Partition, lane), from), pass(handle))
}

// ReadEvents implements partition.Log.
func (l Log) ReadEvents(ctx context.Context, from uint64, handle func(partition.Record) error) error {
	return natslog.Read(ctx, l.JetStream, l.read(topology.Event(l.Partition), from), pass(handle))
}

// ReplayLane implements partition.Log.
func (l Log) ReplayLane(ctx context.Context, lane ids.Lane, from, upTo uint64, handle func(partition.Record) error) error {
	if from > upTo {
		return nil
	}
	return natslog.ReadRange(ctx, l.JetStream, l.read(topology.SubmitLane(l.Partition, lane), from), upTo, pass(handle))
}

// ReplayEvents implements partition.Log.
func (l Log) ReplayEvents(ctx context.Context, from, upTo uint64, handle func(partition.Record) error) error {
	if from > upTo {
		return nil
	}
	return natslog.ReadRange(ctx, l.JetStream, l.read(topology.Event(l.Partition), from), upTo, pass(handle))
}

// Last implements partition.Log.
func (l Log) Last(ctx context.Context) (uint64, error) {
	return natslog.LastSeq(ctx, l.JetStream, topology.HistoryStream(l.Partition))
}

// LastEvent implements partition.Log.
func (l Log) LastEvent(ctx context.Context) (uint64, error) {
	r, err := natslog.LastForSubject(ctx, l.JetStream, topology.HistoryStream(l.Partition), topology.Event(l.Partition))
	if err != nil || r == nil {
		return 0, err
	}
	return r.Seq, nil
}

// Store writes what leaves the state machine.
type Store struct {
	Config
	// Retention tells how long finished tasks of a domain are kept.
	Retention func(domain string) time.Duration

	seed    maphash.Seed
	forgot  [ids.Lanes]uint64
	floored uint64
}

// NewStore makes the store.
func NewStore(c Config, retention func(domain string) time.Duration) *Store {
	return &Store{Config: c, Retention: retention, seed: maphash.MakeSeed()}
}

// appendTimeout bounds one write; the partition repeats it.
const appendTimeout = 5 * time.Second

// store appends one message. Its identity is its content, so that a write repeated
// since its outcome was unknown is stored once.
func (s *Store) store(ctx context.Context, subject string, batch []byte, header nats.Header) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	id := strconv.FormatUint(maphash.Bytes(s.seed, batch), 36) + strconv.Itoa(len(batch))
	seq, _, err := natslog.Append(ctx, s.NATS, natslog.Msg{Subject: subject, Data: batch, Header: header, MsgID: id})
	return seq, err
}

// AppendEvents implements partition.Store. Events have no identity: they bear
// repetition, and the same wish a second later is a new one.
func (s *Store) AppendEvents(ctx context.Context, batch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	_, _, err := natslog.Append(ctx, s.NATS, natslog.Msg{Subject: topology.Event(s.Partition), Data: batch})
	return err
}

// Park implements partition.Store.
func (s *Store) Park(ctx context.Context, bucket int64, batch []byte) (uint64, error) {
	return s.store(ctx, topology.Timer(s.Partition, bucket), batch, nil)
}

// Archive implements partition.Store.
func (s *Store) Archive(ctx context.Context, domain string, minute int64, batch []byte) error {
	ttl := int64(s.Retention(domain) / time.Second)
	header := nats.Header{jetstream.MsgTTLHeader: []string{strconv.FormatInt(max(1, ttl), 10) + "s"}}
	_, err := s.store(ctx, topology.Archive(s.Partition, domain, minute), batch, header)
	return err
}

// Bury implements partition.Store.
func (s *Store) Bury(ctx context.Context, domain, tasklist string, id ids.TaskID, batch []byte) error {
	_, err := s.store(ctx, topology.Dead(domain, tasklist, id), batch, nil)
	return err
}

// Forget implements partition.Store.
func (s *Store) Forget(ctx context.Context, lanes [ids.Lanes]uint64, events uint64) error {
	stream, err := s.JetStream.Stream(ctx, topology.HistoryStream(s.Partition))
	if err != nil {
		return err
	}
	purge := func(subject string, upTo uint64, done *uint64) error {
		if upTo <= *done {
			return nil
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(upTo+1)); err != nil {
			return fmt.Errorf("purge %s up to %d: %w", subject, upTo, err)
		}
		*done = upTo
		return nil
	}
	for lane := range ids.Lane(ids.Lanes) {
		if err := purge(topology.SubmitLane(s.Partition, lane), lanes[lane], &s.forgot[lane]); err != nil {
			return err
		}
	}
	if err := purge(topology.Event(s.Partition), events, &s.floored); err != nil {
		return err
	}
	return stream.Purge(ctx, jetstream.WithPurgeSubject(topology.Fired(s.Partition)), jetstream.WithPurgeKeep(1))
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
