package natshistory

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// Snapshots keeps the snapshots of this partition in a stream, a message for each chunk. The stream keeps the last message of a
// subject, so that a chunk that is stored again replaces itself.
type Snapshots struct{ Config }

// NewSnapshots makes the store.
func NewSnapshots(c Config) Snapshots { return Snapshots{c} }

// chunksInFlight is how many chunks are on their way at a time. It is small, since turns are appended over the same connection: they wait behind
// the chunks that were sent before them.
const chunksInFlight = 4

// Save implements partition.Snapshots.
func (s Snapshots) Save(ctx context.Context, name partition.SnapshotName, chunks [][]byte) error {
	return parallel.Each(ctx, len(chunks), chunksInFlight, func(ctx context.Context, i int) error {
		_, err := appendTo(ctx, s.Config, natslog.Msg{Subject: topology.Snapshot(s.Partition, name.Epoch, name.Seq, i), Data: chunks[i]})
		return err
	})
}

// Load implements partition.Snapshots. Which server sends the chunks does not matter: the stream's leader says where they end, and the
// reader waits for a server that lags until it has sent all up to there.
func (s Snapshots) Load(ctx context.Context, name partition.SnapshotName, count int) ([][]byte, error) {
	chunks, found := make([][]byte, count), make(map[int]bool, count)
	filter := topology.SnapshotChunks(s.Partition, name.Epoch, name.Seq)
	cfg := natslog.ReadConfig{Stream: topology.SnapshotStream(s.Partition), Filters: []string{filter}, Log: s.Log}
	err := natslog.ReadAll(ctx, s.JetStream, cfg, func(r natslog.Record) error {
		_, _, i, ok := topology.SnapshotOf(s.Partition, r.Subject)
		if !ok || i >= count {
			return fmt.Errorf("%w: %s is stored, and it has %d chunks", partition.ErrNoSnapshot, r.Subject, count)
		}
		chunks[i], found[i] = r.Data, true
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(found) < count {
		return nil, fmt.Errorf("%w: %d of %d chunks of %s", partition.ErrNoSnapshot, len(found), count, filter)
	}
	return chunks, nil
}

// Forget implements partition.Snapshots.
func (s Snapshots) Forget(ctx context.Context, keep ...partition.SnapshotName) error {
	stream, err := s.JetStream.Stream(ctx, topology.SnapshotStream(s.Partition))
	if err != nil {
		return fmt.Errorf("list the snapshots: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(topology.SnapshotAny(s.Partition)))
	if err != nil {
		return fmt.Errorf("list the snapshots: %w", err)
	}
	deleted := map[partition.SnapshotName]bool{}
	for subject := range info.State.Subjects {
		epoch, seq, _, ok := topology.SnapshotOf(s.Partition, subject)
		name := partition.SnapshotName{Epoch: epoch, Seq: seq}
		if !ok || deleted[name] || !name.Superseded(keep) {
			continue
		}
		deleted[name] = true
		if _, err := (natslog.Purge{Subject: topology.SnapshotChunks(s.Partition, epoch, seq), Before: info.State.LastSeq + 1}).Do(ctx, s.JetStream, info.Config.Name); err != nil {
			return err
		}
	}
	return nil
}
