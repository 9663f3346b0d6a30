package provision

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket opens a KV bucket. While its servers elect who leads it, or are away, it waits until ctx
// ends. A bucket that does not exist is an error.
func Bucket(ctx context.Context, js jetstream.JetStream, name string, log *slog.Logger) (kv jetstream.KeyValue, err error) {
	a := &applier{js: js, opts: Options{Log: log}}
	err = a.retry(ctx, name, func(ctx context.Context) error {
		kv, err = js.KeyValue(ctx, name)
		return err
	})
	return kv, err
}
