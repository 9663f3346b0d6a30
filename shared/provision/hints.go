package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Hints makes the hint stream of a shard and returns it. One that is gone is created, one that has
// fewer replicas than the cluster's buckets is given as many, and one that is offline is
// deleted and created on servers that are there: its hints are lost, which costs latency only.
// The owner of the shard calls it, so that no two do at once for long. It does not wait: its
// errors pass.
func Hints(ctx context.Context, js jetstream.JetStream, shard int, log *slog.Logger) (jetstream.Stream, error) {
	replicas, err := replicasOf(ctx, js)
	if err != nil {
		return nil, err
	}
	want := streamConfig(topology.Hints(shard), replicas)
	stream, err := js.Stream(ctx, want.Name)
	if offline(err) {
		log.Warn("the hint stream is offline; it is created again, and history sends its hints again", "stream", want.Name)
		if err := js.DeleteStream(ctx, want.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf("delete the offline stream %s: %w", want.Name, err)
		}
		err = jetstream.ErrStreamNotFound
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, want)
		if err != nil {
			return nil, fmt.Errorf("create the stream %s: %w", want.Name, err)
		}
		return stream, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the stream %s: %w", want.Name, err)
	}
	update, changes, err := correct(stream.CachedInfo().Config, want)
	if err != nil || len(changes) == 0 {
		return stream, err
	}
	changed, err := js.UpdateStream(ctx, update)
	if err != nil {
		log.Debug("the hint stream was not created again", "stream", want.Name, "settings", changes, "error", err)
		return stream, nil // it serves, with fewer replicas
	}
	return changed, nil
}

// replicasOf is how many replicas the cluster has: as many as its config bucket.
func replicasOf(ctx context.Context, js jetstream.JetStream) (int, error) {
	bucket, err := js.Stream(ctx, topology.BucketStream(topology.ConfigBucket))
	if err != nil {
		return 0, fmt.Errorf("how many replicas has the config bucket: %w", err)
	}
	return bucket.CachedInfo().Config.Replicas, nil
}

// offline tells that no server has the stream that is there.
func offline(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeStreamOffline
}
