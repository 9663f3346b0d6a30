package storage_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/storage"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const (
	within = 30 * time.Second
	stream = "LOG"
)

// room is a stream on a real server, and who watches it.
type room struct {
	t     *testing.T
	srv   *natskit.Server
	js    jetstream.JetStream
	watch *storage.Watch
	// failed counts the looks that failed. stop ends the watch, and waits for it.
	failed failures
	stop   func()
}

// failures counts what is logged at debug.
type failures struct{ atomic.Int64 }

func (*failures) Enabled(context.Context, slog.Level) bool { return true }
func (f *failures) WithAttrs([]slog.Attr) slog.Handler     { return f }
func (f *failures) WithGroup(string) slog.Handler          { return f }
func (f *failures) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelDebug {
		f.Add(1)
	}
	return nil
}

func newRoom(t *testing.T, cfg storage.Config, gauge *telemetry.Gauge) *room {
	t.Helper()
	r := &room{t: t, srv: natskit.Run(t)}
	var err error
	if r.js, err = jetstream.New(r.srv.Connect(t)); err != nil {
		t.Fatal(err)
	}
	testkit.NoError(t, testkit.Err(r.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: stream, Subjects: []string{"log"}, Discard: jetstream.DiscardNew, AllowAtomicPublish: true})))
	r.watch = &storage.Watch{JetStream: r.js, Stream: stream, Config: cfg, Log: slog.New(&r.failed), Gauge: gauge}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.watch.Run(ctx) // it returns nil
	}()
	r.stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(r.stop)
	return r
}

// fill appends until the watch says that there is no room, and returns why.
func (r *room) fill() (why string) {
	r.t.Helper()
	testkit.Eventually(r.t, within, func() error {
		for range 50 {
			if _, _, err := natslog.Append(r.t.Context(), r.js.Conn(), natslog.Msg{Subject: "log", Data: make([]byte, 64<<10)}); err != nil && !errors.Is(err, natslog.ErrFull) {
				return err
			}
		}
		if why = r.watch.Full(); why == "" {
			return errors.New("there is room")
		}
		return nil
	})
	return why
}

// empty purges the stream and waits until there is room.
func (r *room) empty() {
	r.t.Helper()
	s, err := r.js.Stream(r.t.Context(), stream)
	if err == nil {
		err = s.Purge(r.t.Context())
	}
	testkit.NoError(r.t, err)
	testkit.Eventually(r.t, within, func() error {
		if why := r.watch.Full(); why != "" {
			return fmt.Errorf("full: %s", why)
		}
		return nil
	})
}

// TestR43_EachLimitIsWatched: the account's limit, the stream's, and the one that the operator names.
func TestR43_EachLimitIsWatched(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for several looks")
	const limit = 20 * mib
	t.Run("account", func(t *testing.T) {
		t.Parallel()
		r := newRoom(t, storage.DefaultConfig(), nil)
		testkit.NoError(t, r.srv.Server.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": {
			MaxMemory: -1, MaxStore: limit, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1,
		}}))
		if why := r.fill(); !strings.Contains(why, "the account") {
			t.Error(why)
		}
		r.empty()
	})
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		r := newRoom(t, storage.DefaultConfig(), nil)
		s, err := r.js.Stream(t.Context(), stream)
		testkit.NoError(t, err)
		cfg := s.CachedInfo().Config
		cfg.MaxBytes = limit
		testkit.NoError(t, testkit.Err(r.js.UpdateStream(t.Context(), cfg)))
		if why := r.fill(); !strings.Contains(why, stream) {
			t.Error(why)
		}
		r.empty()
	})
	t.Run("named", func(t *testing.T) {
		t.Parallel()
		r := newRoom(t, named(limit), nil)
		if why := r.fill(); !strings.Contains(why, "storage.bytes_max") {
			t.Error(why)
		}
		r.empty()
	})
}

// named is the configuration of an operator who names a limit.
func named(limit int64) storage.Config {
	cfg := storage.DefaultConfig()
	cfg.BytesMax = limit
	return cfg
}

// gauge waits until the gauge says whether the stream is full: it follows what Full says.
func (r *room) gauge(full int64) {
	r.t.Helper()
	testkit.Eventually(r.t, within, func() error {
		if n := r.watch.Gauge.Value(); n != full {
			return fmt.Errorf("the gauge says %d, want %d", n, full)
		}
		return nil
	})
}

// The gauge is 1 while there is no room, and only while somebody watches.
func TestTheGaugeSaysWhetherTheStreamIsFull(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for several looks")
	r := newRoom(t, named(20*mib), &telemetry.Gauge{})
	r.fill()
	r.gauge(1)
	r.empty()
	r.gauge(0)
	r.fill()
	r.gauge(1)
	r.stop()
	testkit.Equal(t, "no one watches, and the gauge says", r.watch.Gauge.Value(), 0)
}

// What was known stays where the storage cannot be looked at: a full one that does not answer takes nothing.
func TestAFailedLookChangesNothing(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for several looks")
	r := newRoom(t, named(20*mib), &telemetry.Gauge{})
	why := r.fill()
	testkit.NoError(t, r.js.DeleteStream(t.Context(), stream))
	testkit.Eventually(t, within, func() error {
		if n := r.failed.Load(); n < 2 {
			return fmt.Errorf("%d looks have failed", n)
		}
		return nil
	})
	if r.watch.Full() != why || r.watch.Gauge.Value() != 1 {
		t.Errorf("it says %q, the gauge %d", r.watch.Full(), r.watch.Gauge.Value())
	}
}
