package natslog_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// TestR43_AFullStorageIsKnown: whatever is full, an append that is refused for it was not stored,
// and says why.
func TestR43_AFullStorageIsKnown(t *testing.T) {
	const limit = 1 << 20
	for name, c := range map[string]struct {
		server  natskit.Option
		account int64
		stream  int64
	}{
		"server":  {server: func(o *server.Options) { o.JetStreamMaxStore = limit }},
		"account": {account: limit},
		"stream":  {stream: limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opts []natskit.Option
			if c.server != nil {
				opts = append(opts, c.server)
			}
			srv := natskit.Run(t, opts...)
			js, err := jetstream.New(srv.Connect(t))
			testkit.NoError(t, err)
			if c.account > 0 {
				limits := server.JetStreamAccountLimits{MaxMemory: -1, MaxStore: c.account, MaxStreams: -1, MaxConsumers: -1, MaxAckPending: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}
				testkit.NoError(t, srv.Server.GlobalAccount().UpdateJetStreamLimits(map[string]server.JetStreamAccountLimits{"": limits}))
			}
			cfg := jetstream.StreamConfig{Name: "FULL", Subjects: []string{"full"}, Discard: jetstream.DiscardNew, AllowAtomicPublish: true}
			if c.stream > 0 {
				cfg.MaxBytes = c.stream
			}
			testkit.NoError(t, testkit.Err(js.CreateStream(t.Context(), cfg)))
			msg := natslog.Msg{Subject: "full", Data: make([]byte, 100<<10)}
			stored := 0
			for err = nil; err == nil && stored < 20; stored++ {
				_, _, err = natslog.Append(t.Context(), js.Conn(), msg)
			}
			if !errors.Is(err, natslog.ErrFull) || !errors.Is(err, natslog.ErrNotStored) || natslog.Permanent(err) {
				t.Errorf("after %d messages: %v", stored, err)
			}
			if _, err := natslog.AppendAtomic(t.Context(), js.Conn(), []natslog.Msg{msg, msg}); !errors.Is(err, natslog.ErrNotStored) {
				t.Errorf("several messages: %v", err)
			} else {
				t.Log(err)
			}
		})
	}
}
