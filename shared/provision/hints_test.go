package provision_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// within bounds what a healthy cluster of servers does in seconds.
const within = 60 * time.Second

// hints makes the hint stream of shard 0, as its owner does, until that succeeds.
func hints(t *testing.T, js jetstream.JetStream) jetstream.StreamConfig {
	t.Helper()
	var stream jetstream.Stream
	testkit.Eventually(t, within, func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		stream, err = provision.Hints(ctx, js, 0, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})))
		return err
	})
	return stream.CachedInfo().Config
}

// TestHintsAreMadeAgain restarts a single server, which forgets what is in memory.
func TestHintsAreMadeAgain(t *testing.T) {
	t.Parallel()
	srv := natskit.Run(t)
	js := connect(t, srv)
	testkit.NoError(t, apply(t, js, two))
	want := config(t, js, topology.MatchingStream(0))
	srv.Restart(t)
	if got := hints(t, js); got.MaxBytes != want.MaxBytes || got.Retention != want.Retention || got.Storage != jetstream.MemoryStorage {
		t.Errorf("made again as %+v, was %+v", got, want)
	}
	for _, b := range topology.Buckets() {
		if _, err := js.KeyValue(t.Context(), b); err != nil {
			t.Errorf("bucket %s did not survive a restart: %v", b, err)
		}
	}
}

// TestR30_HintsSurviveANode: in a cluster of three servers hint streams have three replicas; one that
// has a single replica is raised, and made elsewhere if its server is away. Services start meanwhile.
func TestR30_HintsSurviveANode(t *testing.T) {
	t.Parallel()
	nodes, js := runCluster(t)
	three := provision.Options{Replicas: 3}
	start := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return provision.Apply(ctx, js, two, three)
	}
	testkit.NoError(t, start())
	single := config(t, js, topology.MatchingStream(0))
	testkit.MustEqual(t, "the hint stream has replicas", single.Replicas, 3)
	alone(t, js, single)
	if got := hints(t, js); got.Replicas != 3 {
		t.Errorf("raised to %d replicas", got.Replicas)
	}

	away := alone(t, js, single)
	for i, n := range nodes {
		if n.Server.Name() == away {
			nodes[i].Stop()
			defer nodes[i].Restart(t)
		}
	}
	began := time.Now()
	if err := start(); err != nil {
		t.Errorf("a service does not start while %s is away: %v", away, err)
	}
	t.Logf("started after %v", time.Since(began))
	hints(t, js)
	testkit.Eventually(t, within, func() error {
		_, err := js.Publish(t.Context(), topology.Matching(0), []byte("hint"))
		return err
	})
}

// alone makes the hint stream again with one replica and returns the name of the server that has it.
func alone(t *testing.T, js jetstream.JetStream, cfg jetstream.StreamConfig) (server string) {
	t.Helper()
	cfg.Replicas = 1
	testkit.Eventually(t, within, func() error {
		if err := js.DeleteStream(t.Context(), cfg.Name); err != nil {
			return err
		}
		s, err := js.CreateStream(t.Context(), cfg)
		if err != nil {
			return err
		}
		if server = s.CachedInfo().Cluster.Leader; server == "" {
			return fmt.Errorf("%s has no leader", cfg.Name)
		}
		return nil
	})
	return server
}

// TestKeptHintsAreMadeAgain: where services may not create streams, who keeps them does.
func TestKeptHintsAreMadeAgain(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits until a stream is missed")
	srv := natskit.Run(t)
	js := connect(t, srv)
	testkit.NoError(t, apply(t, js, two))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		provision.Keep(ctx, js, two, slog.New(slog.DiscardHandler))
	}()
	srv.Restart(t)
	for m := range two.Matching {
		testkit.Eventually(t, within, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := js.Stream(ctx, topology.MatchingStream(m))
			return err
		})
	}
	stop()
	<-done
}

// A hint stream is deleted where its servers are away, and left alone where the cluster says anything else about it: it
// may be there, with hints in it.
func TestOnlyHintsThatAreOfflineAreDeleted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code, errCode int
		deleted       bool
	}{
		"offline":             {500, 10118, true},
		"no leader":           {503, 10008, false},
		"too few servers":     {400, 10005, false},
		"not the leader":      {500, 10009, false},
		"not to be asked":     {503, 10039, false},
		"offline, by no code": {503, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := connect(t, natskit.Run(t, natskit.WithOptions(func(o *server.Options) { o.JetStream = false })))
			deleted := make(chan string, 1)
			_, err := js.Conn().Subscribe("$JS.API.STREAM.>", func(m *nats.Msg) {
				verb, stream, _ := strings.Cut(strings.TrimPrefix(m.Subject, "$JS.API.STREAM."), ".")
				answer := fmt.Sprintf(`{"config":{"name":%q,"num_replicas":1},"success":true}`, stream)
				switch {
				case verb == "DELETE":
					deleted <- stream
				case verb == "INFO" && stream == topology.MatchingStream(0):
					answer = fmt.Sprintf(`{"error":{"code":%d,"err_code":%d,"description":"stream is offline"}}`, c.code, c.errCode)
				}
				testkit.Check(t, m.Respond([]byte(answer)))
			})
			testkit.NoError(t, err)
			_, err = provision.Hints(t.Context(), js, 0, slog.New(slog.DiscardHandler))
			if (err == nil) != c.deleted || (len(deleted) == 1) != c.deleted {
				t.Errorf("%v; %d were deleted", err, len(deleted))
			}
		})
	}
}
