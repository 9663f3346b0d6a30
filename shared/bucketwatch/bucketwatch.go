// Package bucketwatch follows key-value buckets with readers of package natslog.
//
// A watch of nats.go has heartbeats that cannot be set, and may stay silent for half a minute after a server was lost. A reader of natslog notices
// silence within seconds, and its heartbeats follow package pace.
//
// Owns: watches of buckets that keep one revision of each key.
//
// Never does: write to a bucket, or replace a watch that is compared with its bucket: the one who watches does.
//
// On failure: a watch reads on behind what it has handed out. It ends if the bucket does not exist, or its connection is closed for good.
package bucketwatch

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
)

// Of returns the bucket with watches of this package. A watch with options is one of nats.go: it reads what is there, and is stopped.
func Of(js jetstream.JetStream, kv jetstream.KeyValue, log *slog.Logger) jetstream.KeyValue {
	return bucket{kv, js, cmp.Or(log, slog.New(slog.DiscardHandler))}
}

type bucket struct {
	jetstream.KeyValue
	js  jetstream.JetStream
	log *slog.Logger
}

// Watch implements jetstream.KeyValue.
func (b bucket) Watch(ctx context.Context, keys string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return b.WatchFiltered(ctx, []string{keys}, opts...)
}

// WatchAll implements jetstream.KeyValue.
func (b bucket) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	return b.WatchFiltered(ctx, []string{jetstream.AllKeys}, opts...)
}

// WatchFiltered implements jetstream.KeyValue.
func (b bucket) WatchFiltered(ctx context.Context, keys []string, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	if len(opts) > 0 {
		return b.KeyValue.WatchFiltered(ctx, keys, opts...)
	}
	subjects := make([]string, len(keys))
	for i, key := range keys {
		subjects[i] = topology.BucketSubject(b.Bucket(), key)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &watch{updates: make(chan jetstream.KeyValueEntry, updatesWaiting), stop: stop}
	go w.run(ctx, b, subjects)
	return w, nil
}

// updatesWaiting is how many changes are read ahead of the one who watches.
const updatesWaiting = 256

// watch implements jetstream.KeyWatcher.
type watch struct {
	updates chan jetstream.KeyValueEntry
	stop    context.CancelFunc
}

func (w *watch) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

func (w *watch) Stop() error {
	w.stop()
	return nil
}

// run reads until ctx ends, or until reading has no sense.
func (w *watch) run(ctx context.Context, b bucket, subjects []string) {
	defer close(w.updates)
	defer w.stop()
	hand := func(e jetstream.KeyValueEntry) error {
		select {
		case w.updates <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	reads := natslog.ReadConfig{
		Stream: topology.BucketStream(b.Bucket()), Filters: subjects, Log: b.log,
		CaughtUp: func() { _ = hand(nil) }, // if it fails, the next read does
	}
	prefix := topology.BucketSubject(b.Bucket(), "")
	err := natslog.Read(ctx, b.js, reads, func(r natslog.Record) error {
		return hand(&entry{r, b.Bucket(), strings.TrimPrefix(r.Subject, prefix)})
	})
	if err != nil && ctx.Err() == nil {
		b.log.Debug("the watch of a bucket ended", "stream", reads.Stream, "error", err)
	}
}

// entry implements jetstream.KeyValueEntry.
type entry struct {
	record natslog.Record
	bucket string
	key    string
}

func (e *entry) Bucket() string     { return e.bucket }
func (e *entry) Key() string        { return e.key }
func (e *entry) Value() []byte      { return e.record.Data }
func (e *entry) Revision() uint64   { return e.record.Seq }
func (e *entry) Created() time.Time { return e.record.Time }
func (e *entry) Delta() uint64      { return e.record.Pending }

// The headers of a message that says that a key has no value any more: of one that a client sent, and of one that the server put in its place.
const (
	headerOperation = "KV-Operation"
	operationDelete = "DEL"
	operationPurge  = "PURGE"
	markerRemoved   = "Remove"
)

func (e *entry) Operation() jetstream.KeyValueOp {
	marker := e.record.Header.Get(jetstream.MarkerReasonHeader)
	switch operation := e.record.Header.Get(headerOperation); {
	case operation == operationDelete, operation == "" && marker == markerRemoved:
		return jetstream.KeyValueDelete
	case operation == operationPurge, operation == "" && marker != "":
		return jetstream.KeyValuePurge
	}
	return jetstream.KeyValuePut
}
