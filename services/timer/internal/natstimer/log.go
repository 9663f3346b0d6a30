package natstimer

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Log is the history log of one partition, as far as firing goes. It implements
// firing.Log.
type Log struct {
	js          jetstream.JetStream
	stream      jetstream.Stream
	checkpoints jetstream.KeyValue
	p           int
	version     func() uint32
}

// OpenLog finds the history stream of partition p and the checkpoints. Version is
// the log version of the cursors to write.
func OpenLog(ctx context.Context, js jetstream.JetStream, p int, version func() uint32) (*Log, error) {
	stream, err := js.Stream(ctx, topology.HistoryStream(p))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", topology.HistoryStream(p), err)
	}
	checkpoints, err := js.KeyValue(ctx, topology.CheckpointsBucket)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", topology.CheckpointsBucket, err)
	}
	return &Log{js: js, stream: stream, checkpoints: checkpoints, p: p, version: version}, nil
}

// Cursor implements firing.Log.
func (l *Log) Cursor(ctx context.Context) (due.Cursor, uint64, error) {
	r, err := natslog.LastForSubject(ctx, l.js, topology.HistoryStream(l.p), topology.Fired(l.p))
	if err != nil || r == nil {
		return due.Cursor{}, 0, err
	}
	c, err := batch.DecodeCursor(r.Data)
	if err != nil {
		return due.Cursor{}, 0, fmt.Errorf("at %d: %w", r.Seq, err)
	}
	return c, r.Seq, nil
}

// Append implements firing.Log.
func (l *Log) Append(ctx context.Context, all []firing.Submit, c due.Cursor, expected uint64) (uint64, error) {
	cursor, err := batch.EncodeCursor(c, l.version())
	if err != nil {
		return 0, err
	}
	msgs := make([]natslog.Msg, 0, len(all)+1)
	for _, s := range all {
		msgs = append(msgs, natslog.Msg{Subject: topology.Submit(l.p, s.Lane, s.Domain, s.Tasklist), Data: s.Data})
	}
	msgs = append(msgs, natslog.Msg{Subject: topology.Fired(l.p), Data: cursor}.Over(expected))
	seq, err := natslog.AppendAtomic(ctx, l.js.Conn(), msgs)
	return seq, translate(err)
}

// Parked implements firing.Log.
func (l *Log) Parked(ctx context.Context) (uint64, error) {
	entry, err := l.checkpoints.Get(ctx, topology.HistoryCheckpoint(l.p))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("history's checkpoint: %w", err)
	}
	var c logv1.Checkpoint
	err = c.UnmarshalVT(entry.Value())
	if err == nil {
		err = logversion.Check(c.LogVersion)
	}
	if err != nil {
		return 0, fmt.Errorf("history's checkpoint: %w", err)
	}
	return c.GetSnapshot().GetTimerSeq(), nil
}

// DropCursors implements firing.Log.
func (l *Log) DropCursors(ctx context.Context, seq uint64) error {
	// The server keeps the message at the sequence given.
	err := l.stream.Purge(ctx, jetstream.WithPurgeSubject(topology.Fired(l.p)), jetstream.WithPurgeSequence(seq))
	if err != nil {
		return fmt.Errorf("purge old firing cursors: %w", err)
	}
	return nil
}
