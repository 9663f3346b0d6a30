package process

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// createTries bounds how often processes that create one cluster at once, with
// and without a wish for its partitioning, may cross each other.
const createTries = 3

// Cluster makes sure that the cluster exists and returns its partitioning. Where
// want is 0, the cluster's own number is taken, or the default if this process
// creates it. It waits for a JetStream that is not ready and, if it may not create
// the cluster, for somebody who does, until ctx ends. It fails where the cluster
// writes a log version that this program cannot read.
func Cluster(ctx context.Context, nc *nats.Conn, want topology.Partitioning, how Provision, log *slog.Logger) (topology.Partitioning, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return topology.Partitioning{}, fmt.Errorf("use JetStream: %w", err)
	}
	for try := 1; ; try++ {
		have, err := provision.Await(ctx, js, !how.Enabled, log)
		if err != nil {
			return topology.Partitioning{}, err
		}
		standard := cmp.Or(how.Standard, topology.DefaultPartitioning())
		use := topology.Partitioning{
			History:  cmp.Or(want.History, have.History, standard.History),
			Matching: cmp.Or(want.Matching, have.Matching, standard.Matching),
		}
		if !how.Enabled {
			if use != have {
				return use, fmt.Errorf("the cluster was created with %d history partitions and %d matching shards, this service is configured with %d and %d",
					have.History, have.Matching, use.History, use.Matching)
			}
			return use, provision.Version(ctx, js)
		}
		err = provision.Apply(ctx, js, use, provision.Options{Replicas: how.Replicas, Log: log})
		// Another process may have created the cluster since we looked, with numbers
		// that suit us because we have no wish.
		if err == nil || have != (topology.Partitioning{}) || try == createTries {
			return use, err
		}
	}
}
