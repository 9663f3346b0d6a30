package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

const (
	// wholeWithin bounds how long the other replicas of a stream may take to have it, too.
	wholeWithin = 10 * time.Minute
	wholeEvery  = 200 * time.Millisecond
)

// Restore makes the cluster of a backup on a NATS that has none of its streams, and calls restored for each stream that all
// replicas have. The config bucket comes last, so a restore that ends early has made no cluster.
//
// Nothing needs to be raised: the epochs are in the checkpoints bucket, the log and the stores, which are of one moment.
// Each next owner takes a higher one than all three have.
func Restore(ctx context.Context, nc *nats.Conn, dir string, replicas int, log *slog.Logger, restored func(Stream)) (*Manifest, error) {
	m, err := Verify(dir, func(Stream) {})
	if err != nil {
		return nil, err
	}
	if err := logversion.Check(m.LogVersion); err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if err := atRest(ctx, nc); err != nil {
		return nil, err
	}
	if err := absent(ctx, js, m); err != nil {
		return nil, err
	}
	for _, s := range m.Streams {
		if err := load(ctx, nc, js, dir, s, replicas); err != nil {
			return nil, fmt.Errorf("restore the stream %s: %w; there is no cluster yet: delete the streams that were restored, and repeat `yard backup restore`", s.Name, err)
		}
		restored(s)
	}
	return m, provision.Apply(ctx, js, m.Partitioning, provision.Options{Replicas: replicas, Log: log})
}

// absent refuses if a stream of the backup exists.
func absent(ctx context.Context, js jetstream.JetStream, m *Manifest) error {
	var there []string
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		if slices.ContainsFunc(m.Streams, func(s Stream) bool { return s.Name == name }) {
			there = append(there, name)
		}
	}
	if err := names.Err(); err != nil {
		return fmt.Errorf("list the streams: %w", err)
	}
	if len(there) > 0 {
		slices.Sort(there)
		return fault.New(fault.FailedPrecondition, "a backup is restored only to a NATS without the streams of a cluster; these exist: %s", strings.Join(there, ", "))
	}
	return nil
}

// load restores one stream, and waits until all its replicas have it.
func load(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, dir string, s Stream, replicas int) error {
	config := map[string]json.RawMessage{}
	if err := json.Unmarshal(s.Config, &config); err != nil {
		return err
	}
	config["num_replicas"] = strconv.AppendInt(nil, int64(replicas), 10)
	changed, err := json.Marshal(config)
	if err != nil {
		return err
	}
	f, err := os.Open(s.file(dir))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	if err := restore(ctx, nc, s.Name, changed, state{s.Messages, s.Bytes, s.FirstSeq, s.LastSeq}, f); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wholeWithin)
	defer cancel()
	for {
		lacks, err := whole(ctx, js, s)
		if err != nil || lacks == nil {
			return err
		}
		if !backoff.Sleep(ctx, wholeEvery) {
			return errors.Join(ctx.Err(), lacks)
		}
	}
}

// whole returns what a restored stream still lacks, which passes: an answer, or a replica. An error stays: it has not what was
// copied.
func whole(ctx context.Context, js jetstream.JetStream, s Stream) (lacks, err error) {
	stream, lacks := js.Stream(ctx, s.Name)
	if lacks != nil {
		return lacks, nil
	}
	info := stream.CachedInfo()
	if want := (mark{s.LastSeq, markOf(info, s.Messages).messages}); markOf(info, info.State.Msgs) != want {
		return nil, fmt.Errorf("it has %d messages up to %d, the backup has %d up to %d", info.State.Msgs, info.State.LastSeq, s.Messages, s.LastSeq)
	}
	if info.Cluster == nil {
		return nil, nil
	}
	for _, r := range info.Cluster.Replicas {
		if !r.Current {
			return fmt.Errorf("the replica at %s is behind", r.Name), nil
		}
	}
	return nil, nil
}
