package provision

import (
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// keepEvery is how often Keep looks.
const keepEvery = 2 * time.Second

// Keep does what Hints does for all shards, every two seconds until ctx ends, for clusters whose services
// may not create streams. A failure is logged, and the change is tried again.
func Keep(ctx context.Context, js jetstream.JetStream, n topology.Partitioning, log *slog.Logger) {
	for {
		for m := range n.Matching {
			if err := keepOne(ctx, js, m, log); err != nil && ctx.Err() == nil {
				log.Warn("a hint stream is not correct, trying again", "error", err)
			}
		}
		if !backoff.Sleep(ctx, keepEvery) {
			return
		}
	}
}

func keepOne(ctx context.Context, js jetstream.JetStream, shard int, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := Hints(ctx, js, shard, log)
	return err
}
