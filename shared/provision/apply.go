package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// How Apply waits for a JetStream that is not ready.
const (
	callTimeout = 5 * time.Second
	retryFirst  = 100 * time.Millisecond
	retryLast   = 2 * time.Second
	noticeEvery = 10 * time.Second
	// atOnce is how many streams are looked at together.
	atOnce = 8
)

// Answers of a server or cluster that is still starting.
const (
	statusUnavailable = 503
	codeNoPeers       = 10005 // too few servers are up yet
	codeNotLeader     = 10009
	codeStreamOffline = 10118
)

// ErrNotProvisioned: the cluster has no partitioning yet.
var ErrNotProvisioned = errors.New("the cluster was not created yet")

// Options of Apply.
type Options struct {
	// Replicas of streams and buckets, 1 or 3. Default 1. Streams that have more keep
	// them.
	Replicas int
	// Log tells what was created and changed. Default: nothing does.
	Log *slog.Logger
}

// Apply creates every stream and bucket of a cluster with this partitioning and
// corrects those that differ. A cluster that is created writes the newest log
// version of this program. It fails where the cluster writes a log version that this
// program cannot read or was created with another partitioning, before it changes
// anything else, and where a stream differs in what cannot be changed.
//
// It waits until ctx ends for the buckets, and for streams that it must create. Of the
// others it waits for none: a stream that exists and does not answer, as while a server
// is away, is left as it is, and so is a hint stream that cannot be made (Hints makes it).
func Apply(ctx context.Context, js jetstream.JetStream, want topology.Partitioning, opts Options) error {
	for name, n := range map[string]int{"history partitions": want.History, "matching shards": want.Matching} {
		if n < 1 || n > topology.PartitionsMax {
			return fmt.Errorf("provision: %d %s: must be 1..%d", n, name, topology.PartitionsMax)
		}
	}
	opts.Replicas = cmp.Or(opts.Replicas, 1)
	if opts.Replicas != 1 && opts.Replicas != 3 {
		return fmt.Errorf("provision: %d replicas: must be 1 or 3", opts.Replicas)
	}
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	a := &applier{js: js, opts: opts}
	if err := a.retry(ctx, "config bucket", func(ctx context.Context) (err error) {
		if err = a.stream(ctx, bucketConfig(topology.ConfigBucket, opts.Replicas)); err == nil {
			a.config, err = js.KeyValue(ctx, topology.ConfigBucket)
		}
		return err
	}); err != nil {
		return err
	}
	if err := a.retry(ctx, "log version", a.version); err != nil {
		return err
	}
	// Before the partitioning, by which a service that waits for the cluster knows that
	// it was created.
	if err := a.retry(ctx, "token secret", a.secret); err != nil {
		return err
	}
	if err := a.retry(ctx, "partitioning", func(ctx context.Context) error { return a.partitioning(ctx, want) }); err != nil {
		return err
	}
	return a.all(ctx, configs(want, opts.Replicas))
}

// all makes the streams match, several at a time, since a call for one that is unavailable takes a while to fail.
func (a *applier) all(ctx context.Context, configs []jetstream.StreamConfig) error {
	return parallel.Each(ctx, len(configs), atOnce, func(whole context.Context, i int) error {
		return a.retry(whole, configs[i].Name, func(ctx context.Context) error {
			return a.tolerate(whole, configs[i], a.stream(ctx, configs[i]))
		})
	})
}

// tolerate passes over the errors of a stream that need not answer for the start: it exists and
// is no bucket, or it holds hints.
func (a *applier) tolerate(ctx context.Context, cfg jetstream.StreamConfig, err error) error {
	var r refusal
	hints := cfg.Storage == jetstream.MemoryStorage
	switch {
	case err == nil || errors.As(err, &r):
		return err
	case !hints && (final(err) || strings.HasPrefix(cfg.Name, topology.BucketStream("")) || !a.exists(ctx, cfg)):
		return err
	}
	a.opts.Log.Warn("a stream does not answer; starting without it", "stream", cfg.Name, "error", err)
	return nil
}

// exists tells whether the cluster knows of a stream, which needs none of the stream's own servers.
func (a *applier) exists(ctx context.Context, cfg jetstream.StreamConfig) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found := false
	names := a.js.StreamNames(ctx, jetstream.WithStreamListSubject(cfg.Subjects[0]))
	for name := range names.Name() {
		found = found || name == cfg.Name
	}
	return found && names.Err() == nil
}

// Partitioning is what the cluster was created with, or ErrNotProvisioned.
func Partitioning(ctx context.Context, js jetstream.JetStream) (topology.Partitioning, error) {
	var p topology.Partitioning
	var entry jetstream.KeyValueEntry
	kv, err := js.KeyValue(ctx, topology.ConfigBucket)
	if err == nil {
		entry, err = kv.Get(ctx, topology.ClusterKey)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrKeyNotFound) {
		return p, ErrNotProvisioned
	}
	if err == nil {
		err = json.Unmarshal(entry.Value(), &p)
	}
	if err != nil {
		return p, fmt.Errorf("read the partitioning: %w", err)
	}
	return p, nil
}

// Version returns an error where the cluster writes a log version that this program
// cannot read: a *logversion.UnknownError.
func Version(ctx context.Context, js jetstream.JetStream) error {
	kv, err := js.KeyValue(ctx, topology.ConfigBucket)
	if err != nil {
		return fmt.Errorf("read the cluster's log version: %w", err)
	}
	v, err := catalog.GetVersion(ctx, kv)
	if err != nil {
		return err
	}
	return readable(v)
}

func readable(v catalog.Version) error {
	if err := logversion.Check(v.Number); err != nil {
		return fmt.Errorf("this cluster writes a newer log: %w", err)
	}
	return nil
}

type applier struct {
	js   jetstream.JetStream
	opts Options
	// config is set when the bucket is there.
	config jetstream.KeyValue
}

// version writes the log version of a cluster that does not exist yet, and reads
// that of one that does. It is written before the partitioning, which is what makes a cluster.
func (a *applier) version(ctx context.Context) error {
	_, err := a.config.Get(ctx, topology.ClusterKey)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		err = catalog.CreateVersion(ctx, a.config, logversion.Newest())
	}
	if err != nil {
		return err
	}
	v, err := catalog.GetVersion(ctx, a.config)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return refusal{err} // the version is written first, so it was deleted
	}
	if err != nil {
		return err
	}
	if err := readable(v); err != nil {
		return refusal{err}
	}
	return nil
}

// partitioning writes the partitioning where there is none, and compares it else.
func (a *applier) partitioning(ctx context.Context, want topology.Partitioning) error {
	value, err := json.Marshal(want)
	if err != nil {
		return err
	}
	_, err = a.config.Create(ctx, topology.ClusterKey, value)
	if err == nil {
		a.opts.Log.Info("cluster created", "history_partitions", want.History, "matching_shards", want.Matching)
		return nil
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	got, err := Partitioning(ctx, a.js)
	if err != nil {
		return err
	}
	if got.History != want.History {
		return refusal{fmt.Errorf("the cluster was created with %d history partitions, this service is configured with %d", got.History, want.History)}
	}
	if got.Matching != want.Matching {
		return refusal{fmt.Errorf("the cluster was created with %d matching shards, this service is configured with %d", got.Matching, want.Matching)}
	}
	return nil
}

// stream makes one stream match cfg.
func (a *applier) stream(ctx context.Context, cfg jetstream.StreamConfig) error {
	s, err := a.js.Stream(ctx, cfg.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = a.js.CreateStream(ctx, cfg)
		if err == nil {
			a.opts.Log.Info("stream created", "stream", cfg.Name)
			return nil
		}
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return err
		}
		// Another service was faster, perhaps one of another version.
		s, err = a.js.Stream(ctx, cfg.Name)
	}
	if err != nil {
		return err
	}
	got := s.CachedInfo().Config
	update, changes, err := correct(got, cfg)
	if err != nil {
		return refusal{err}
	}
	if len(changes) == 0 {
		return nil
	}
	if _, err := a.js.UpdateStream(ctx, update); err != nil {
		return fmt.Errorf("change %v: %w", changes, err)
	}
	a.opts.Log.Info("stream changed", "stream", cfg.Name, "settings", changes)
	return nil
}

// refusal marks an error that no retry mends.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// retry calls do until it succeeds, refuses, or ctx ends.
func (a *applier) retry(ctx context.Context, what string, do func(context.Context) error) error {
	began, noticed := time.Now(), time.Time{}
	for wait := backoff.New(retryFirst, retryLast); ; {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			ctx, end := natsrpc.WhileConnected(ctx, a.js.Conn())
			defer end()
			return do(ctx)
		}()
		if err == nil {
			return nil
		}
		if final(err) || ctx.Err() != nil {
			return fmt.Errorf("provision %s: %w", what, errors.Join(ctx.Err(), err))
		}
		if now := time.Now(); now.Sub(noticed) >= noticeEvery {
			noticed = now
			a.opts.Log.Warn("waiting for JetStream", "operation", what, "duration", now.Sub(began).Round(time.Second), "error", err)
		}
		if !wait.Sleep(ctx) {
			return fmt.Errorf("provision %s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}

// final tells errors that waiting does not mend from those of a server or cluster
// that is still starting.
func final(err error) bool {
	var r refusal
	if errors.As(err, &r) {
		return true
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrBadBucket) {
		return true
	}
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.Code != statusUnavailable && api.ErrorCode != codeNoPeers && api.ErrorCode != codeNotLeader && api.ErrorCode != codeStreamOffline
}

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
