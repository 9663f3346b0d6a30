package provision

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Keep makes the streams in memory again whenever the connection comes back, until
// ctx ends: a single server that restarts forgets not only their messages but the
// streams themselves. It is a part of every service that publishes or reads hints,
// run beside it after Apply. An error is one of Apply's, other than ctx's.
func Keep(ctx context.Context, js jetstream.JetStream, n topology.Partitioning, opts Options) error {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	opts.Replicas = max(opts.Replicas, 1)
	a := &applier{js: js, opts: opts}
	nc := js.Conn()
	connected := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(connected)
	for {
		// Once at the beginning too: the connection may have broken since Apply.
		for _, s := range topology.Streams(n) {
			if !s.Memory {
				continue
			}
			err := a.retry(ctx, s.Name, func(ctx context.Context) error { return a.stream(ctx, streamConfig(s, opts.Replicas)) })
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-connected:
		}
	}
}
