package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// source reads what is stored in NATS.
type source struct {
	js    jetstream.JetStream
	ahead time.Duration
}

// now is the server's time.
func (s source) now(ctx context.Context) (time.Time, error) {
	stream, err := s.js.Stream(ctx, topology.BucketStream(topology.CheckpointsBucket))
	if err != nil {
		return time.Time{}, err
	}
	return stream.CachedInfo().TimeStamp.Add(s.ahead), nil
}

func (s source) read(ctx context.Context, stream string, handle func(natslog.Record) error) error {
	return natslog.ReadAll(ctx, s.js, natslog.ReadConfig{Stream: stream}, handle)
}

// checkpoint is that of a partition; nil = there is none.
func (s source) checkpoint(ctx context.Context, partition int) (*logv1.Checkpoint, error) {
	kv, err := s.js.KeyValue(ctx, topology.CheckpointsBucket)
	if err != nil {
		return nil, err
	}
	e, err := kv.Get(ctx, topology.HistoryCheckpoint(partition))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cp := &logv1.Checkpoint{}
	if err := decodeKnown(e.Value(), cp); err != nil {
		return nil, fmt.Errorf("the checkpoint of partition %d: %w", partition, err)
	}
	return cp, nil
}

// decodeKnown decodes a record, and refuses one of a log version that this program does not know.
func decodeKnown(data []byte, into logRecord) error {
	if err := into.UnmarshalVT(data); err != nil {
		return err
	}
	return logversion.Check(into.GetLogVersion())
}

// cursor is the timer's of a partition; nil = there is none.
func (s source) cursor(ctx context.Context, partition int) (*logv1.Cursor, error) {
	r, err := natslog.LastForSubject(ctx, s.js, topology.HistoryStream(partition), topology.Fired(partition))
	if err != nil || r == nil {
		return nil, err
	}
	c := &logv1.Cursor{}
	if err := decodeKnown(r.Data, c); err != nil {
		return nil, fmt.Errorf("the timer's cursor of partition %d: %w", partition, err)
	}
	return c, nil
}

// retentions reads for how long domains keep their tasks.
func (s source) retentions(ctx context.Context) (retentions, error) {
	kv, err := s.js.KeyValue(ctx, topology.ConfigBucket)
	if err != nil {
		return nil, err
	}
	w, err := kv.Watch(ctx, catalog.Domains.Keys(), jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Stop() }() // the connection is closed
	all := retentions{}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, errors.New("list the domains: the watch ended")
			case e == nil:
				return all, nil
			}
			_, domain, ok := catalog.Domains.OfKey(e.Key())
			if !ok {
				continue
			}
			var d yardv1.Domain
			if codec.Unmarshal(codec.JSON, e.Value(), &d) != nil {
				d = yardv1.Domain{}
			}
			all[domain] = retention{time.Duration(d.RetentionMs) * time.Millisecond, e.Created()}
		}
	}
}

// letters reads all dead letters.
func (s source) deadLetters(ctx context.Context, n topology.Partitioning, now time.Time) (*deadLetters, []Finding, error) {
	l := newDeadLetters()
	for p := range n.History {
		last, err := natslog.LastSeq(ctx, s.js, topology.ArchiveStream(p))
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, nil, err
		}
		l.archiveUpTo[p] = last
	}
	var bad []Finding
	err := s.read(ctx, topology.DeadLetterStream, func(r natslog.Record) error {
		if !l.take(r) && len(bad) < candidatesMax {
			bad = append(bad, Finding{Code: Unreadable, Where: at(topology.DeadLetterStream, r.Seq), What: "its subject names no task: " + r.Subject})
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	last, err := natslog.LastSeq(ctx, s.js, topology.DeadLetterStream)
	l.end(last, now)
	return l, bad, err
}

// consumer is one on a stream of ours.
type consumer struct {
	stream, name string
	// forever: it does not go by itself.
	forever bool
}

// ourStreams are the streams that have a name of this system.
func (s source) ourStreams(ctx context.Context) (all []string, err error) {
	names := s.js.StreamNames(ctx)
	for name := range names.Name() {
		if strings.HasPrefix(name, "YARD_") || strings.HasPrefix(name, topology.BucketStream("YARD_")) {
			all = append(all, name)
		}
	}
	return all, names.Err()
}

func (s source) consumers(ctx context.Context, stream string) (all []consumer, err error) {
	on, err := s.js.Stream(ctx, stream)
	if err != nil || on.CachedInfo().State.Consumers == 0 {
		return nil, err
	}
	list := on.ListConsumers(ctx)
	for c := range list.Info() {
		all = append(all, consumer{stream, c.Name, c.Config.InactiveThreshold == 0})
	}
	return all, list.Err()
}
