package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

// How a cluster is waited for.
const (
	clusterCallTimeout = 5 * time.Second
	clusterRetryEvery  = 500 * time.Millisecond
	clusterNoticeEvery = 10 * time.Second
	// createTries bounds how often processes that create one cluster at once, with
	// and without a wish for its partitioning, may cross each other.
	createTries = 3
)

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
		have, err := existing(ctx, js, !how.Enabled, log)
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
			return use, checkVersion(ctx, js)
		}
		err = provision.Apply(ctx, js, use, provision.Options{Replicas: how.Replicas, Log: log})
		// Another process may have created the cluster since we looked, with numbers
		// that suit us because we have no wish.
		if err == nil || have != (topology.Partitioning{}) || try == createTries {
			return use, err
		}
	}
}

// existing reads the cluster's partitioning. It is zero where there is no cluster
// yet, unless wait says to wait for one.
func existing(ctx context.Context, js jetstream.JetStream, wait bool, log *slog.Logger) (topology.Partitioning, error) {
	var noticed time.Time
	for {
		p, err := readPartitioning(ctx, js, wait)
		if err == nil || (errors.Is(err, provision.ErrNotProvisioned) && !wait) {
			return p, nil
		}
		if now := time.Now(); now.Sub(noticed) >= clusterNoticeEvery {
			noticed = now
			log.Warn("waiting for the cluster", "error", err)
		}
		if !backoff.Sleep(ctx, clusterRetryEvery) {
			return p, errors.Join(ctx.Err(), err)
		}
	}
}

// readPartitioning fails with provision.ErrNotProvisioned where there is no cluster, and, if the whole cluster
// is wanted, where it is still being created: the last of the buckets is the last that is made.
func readPartitioning(ctx context.Context, js jetstream.JetStream, whole bool) (topology.Partitioning, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterCallTimeout)
	defer cancel()
	p, err := provision.Partitioning(ctx, js)
	if err != nil || !whole {
		return p, err
	}
	buckets := topology.Buckets()
	_, err = js.KeyValue(ctx, buckets[len(buckets)-1])
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		err = fmt.Errorf("it is being created: %w", provision.ErrNotProvisioned)
	}
	return p, err
}

// checkVersion refuses a cluster whose records this program cannot read.
func checkVersion(ctx context.Context, js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(ctx, clusterCallTimeout)
	defer cancel()
	return provision.Version(ctx, js)
}
