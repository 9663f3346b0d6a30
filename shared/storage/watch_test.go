package storage_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/storage"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	within = 30 * time.Second
	stream = "LOG"
)

// room is a stream on a real server, and who watches it.
type room struct {
	t     *testing.T
	srv   *testkit.NATS
	js    jetstream.JetStream
	watch *storage.Watch
}

func newRoom(t *testing.T, cfg storage.Config, opts ...testkit.NATSOption) *room {
	t.Helper()
	r := &room{t: t, srv: testkit.RunNATS(t, opts...)}
	var err error
	if r.js, err = jetstream.New(r.srv.Connect(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: stream, Subjects: []string{"log"}, Discard: jetstream.DiscardNew, AllowAtomicPublish: true}); err != nil {
		t.Fatal(err)
	}
	r.watch = &storage.Watch{JetStream: r.js, Stream: stream, Config: cfg, Log: slog.New(slog.DiscardHandler)}
	go func() { _ = r.watch.Run(t.Context()) }() // it returns nil
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
	if err != nil {
		r.t.Fatal(err)
	}
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
	const limit = 20 * mib
	t.Run("account", func(t *testing.T) {
		t.Parallel()
		r := newRoom(t, storage.DefaultConfig())
		if err := r.srv.Server.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": {
			MaxMemory: -1, MaxStore: limit, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1,
		}}); err != nil {
			t.Fatal(err)
		}
		if why := r.fill(); !strings.Contains(why, "the account") {
			t.Error(why)
		}
		r.empty()
	})
	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		r := newRoom(t, storage.DefaultConfig())
		s, err := r.js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		cfg := s.CachedInfo().Config
		cfg.MaxBytes = limit
		if _, err := r.js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if why := r.fill(); !strings.Contains(why, stream) {
			t.Error(why)
		}
		r.empty()
	})
	t.Run("named", func(t *testing.T) {
		t.Parallel()
		cfg := storage.DefaultConfig()
		cfg.BytesMax = limit
		r := newRoom(t, cfg)
		if why := r.fill(); !strings.Contains(why, "storage.bytes_max") {
			t.Error(why)
		}
		r.empty()
	})
}
