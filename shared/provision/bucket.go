package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/bucketwatch"
)

// Bucket opens a KV bucket, with watches of package bucketwatch. While its servers elect who leads it, or are away, it waits until ctx
// ends. A bucket that does not exist is an error.
func Bucket(ctx context.Context, js jetstream.JetStream, name string, log *slog.Logger) (kv jetstream.KeyValue, err error) {
	a := &applier{js: js, opts: Options{Log: log}}
	err = a.retry(ctx, name, func(ctx context.Context) error {
		kv, err = js.KeyValue(ctx, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return bucketwatch.Of(js, kv, a.opts.Log), nil
}

// Await reads the partitioning of the cluster. If the cluster is to be whole, it waits until somebody has created all of it;
// else the partitioning is zero if there is no cluster. It waits for a JetStream that is not ready until ctx ends.
func Await(ctx context.Context, js jetstream.JetStream, whole bool, log *slog.Logger) (n topology.Partitioning, err error) {
	a := &applier{js: js, opts: Options{Log: log}}
	err = a.retry(ctx, "cluster", func(ctx context.Context) error {
		n, err = Partitioning(ctx, js)
		switch {
		case !whole && errors.Is(err, ErrNotProvisioned):
			return nil
		case !whole || err != nil:
			return err
		}
		all := topology.Buckets()
		_, err = js.KeyValue(ctx, all[len(all)-1]) // the last bucket is the last that is made
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			err = fmt.Errorf("it is being created: %w", ErrNotProvisioned)
		}
		return err
	})
	return n, err
}
