package history

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/storage"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// R43: the warning names the partitions without room that are served here, and why they take nothing, for as long as they are served.
func TestR43_TheWarningNamesThePartitionsWithoutRoom(t *testing.T) {
	js, err := jetstream.New(natskit.Run(t).Connect(t))
	testkit.NoError(t, err)
	var all rooms
	if err := all.warn(); err != nil {
		t.Errorf("nothing is served: %v", err)
	}
	cfg := storage.DefaultConfig()
	cfg.BytesMax = 1 << 20
	serve := func(p int, cfg storage.Config) (stop func()) {
		name := topology.HistoryStream(p)
		testkit.NoError(t, testkit.Err(js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{name}})))
		testkit.NoError(t, testkit.Err(js.Publish(t.Context(), name, make([]byte, 1<<19))))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		r := room{&storage.Watch{JetStream: js, Stream: name, Config: cfg, Log: slog.New(slog.DiscardHandler)}, &all, p}
		go func() { ended <- r.Run(ctx) }()
		return func() {
			cancel()
			testkit.Check(t, <-ended)
		}
	}
	warns := func(want string) {
		t.Helper()
		testkit.Eventually(t, 30*time.Second, func() error {
			if err := all.warn(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "storage.bytes_max") {
				return fmt.Errorf("it warns: %w", err)
			}
			return nil
		})
	}
	defer serve(0, storage.DefaultConfig())() // has room
	first := serve(1, cfg)
	second := serve(2, cfg)
	warns("partitions [1 2] accept no tasks")
	first()
	warns("partitions [2] accept no tasks")
	second()
	if err := all.warn(); err != nil {
		t.Errorf("what is full is not served any more: %v", err)
	}
}
