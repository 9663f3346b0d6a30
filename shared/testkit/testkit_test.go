package testkit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestNATSKeepsDataAndPortAcrossRestart(t *testing.T) {
	t.Parallel()
	n := natskit.Run(t)
	url := n.URL
	nc := n.Connect(t)
	js, err := jetstream.New(nc)
	testkit.NoError(t, err)
	ctx := t.Context()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(js.Publish(ctx, "s", []byte("kept"))))

	n.Stop()
	testkit.Eventually(t, 10*time.Second, func() error {
		if nc.IsConnected() {
			return errors.New("the connection has not noticed that the server is gone")
		}
		return nil
	})
	n.Restart(t)

	if n.URL != url {
		t.Fatalf("the server moved from %s to %s", url, n.URL)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		msg, err := stream.GetMsg(ctx, 1)
		if err != nil {
			return err
		}
		if string(msg.Data) != "kept" {
			return errors.New("wrong data")
		}
		return nil
	})
}

func TestRedisRestartsEmptyOnTheSamePort(t *testing.T) {
	t.Parallel()
	r := testkit.RunRedis(t)
	addr := r.Addr
	testkit.MustEqual(t, "SET answered", redisDo(t, addr, "SET k v"), "+OK")
	testkit.MustEqual(t, "GET answered", redisDo(t, addr, "GET k"), "$1")
	r.Restart(t)
	if r.Addr != addr {
		t.Fatalf("the server moved from %s to %s", addr, r.Addr)
	}
	testkit.MustEqual(t, "GET on the restarted server answered", redisDo(t, addr, "GET k"), "$-1")
	r.Stop()
	r.Stop() // stopping twice is allowed
}

func TestRedisAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("YARD_TESTS", "")
	t.Run("quick", func(t *testing.T) {
		defer func() {
			if !t.Skipped() {
				t.Error("found a redis-server in an empty folder")
			}
		}()
		testkit.RunRedis(t)
	})
	t.Setenv("YARD_TESTS", "all")
	said := expectFatal(t, func(tb testing.TB) { testkit.RunRedis(tb) })
	if !strings.Contains(said, "YARD_TESTS") {
		t.Fatalf("failed with %q, which does not name YARD_TESTS", said)
	}
}

func TestSeedReplays(t *testing.T) {
	t.Setenv(testkit.SeedEnv, "42")
	a, b := testkit.Seed(t), testkit.Seed(t)
	for range 10 {
		if x, y := a.Uint64(), b.Uint64(); x != y {
			t.Fatalf("the same seed gave %d and %d", x, y)
		}
	}
	t.Setenv(testkit.SeedEnv, "many")
	expectFatal(t, func(tb testing.TB) { testkit.Seed(tb) })
}

func TestEventually(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		testkit.Eventually(t, time.Minute, func() error {
			if calls++; calls < 10 {
				return errors.New("not yet")
			}
			return nil
		})
		testkit.MustEqual(t, "called times", calls, 10)
		said := expectFatal(t, func(tb testing.TB) {
			testkit.Eventually(tb, time.Second, func() error { return errors.New("never true") })
		})
		if !strings.Contains(said, "never true") {
			t.Fatalf("failed with %q, which is not the condition's error", said)
		}
	})
}

func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.txt")
	expectFatal(t, func(tb testing.TB) { testkit.Golden(tb, path, nil) })
	testkit.NoError(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o644))
	testkit.Golden(t, path, []byte("one\ntwo\n"))
	for got, where := range map[string]string{
		"one\n2\n":         "line 2",
		"one\ntwo":         "line 3",
		"one\ntwo\n\nfour": "line 4",
	} {
		if said := expectFatal(t, func(tb testing.TB) { testkit.Golden(tb, path, []byte(got)) }); !strings.Contains(said, where) {
			t.Errorf("%q: said %q, want %q in it", got, said, where)
		}
	}
}

func TestTraceSink(t *testing.T) {
	t.Parallel()
	sink := signalkit.RunTraceSink(t)
	conn, err := grpc.NewClient(strings.TrimPrefix(sink.Endpoint, "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.NoError(t, err)
	defer conn.Close()
	text := func(k, v string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
	}
	_, err = collector.NewTraceServiceClient(conn).Export(t.Context(), &collector.ExportTraceServiceRequest{
		ResourceSpans: []*tracepb.ResourceSpans{{
			Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "history")}},
			ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
				Name: "commit", TraceId: make([]byte, 16), SpanId: make([]byte, 8), StartTimeUnixNano: 7,
				Attributes: []*commonpb.KeyValue{
					text("yardmaster.domain", "d"),
					{Key: "yard.batch.size", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: 3}}},
				},
			}}}},
		}},
	})
	testkit.NoError(t, err)
	spans := sink.Spans()
	testkit.MustEqual(t, "spans", len(spans), 1)
	s := spans[0]
	if s.Service != "history" || s.Name != "commit" || s.ParentID != "" || s.Start != time.Unix(0, 7) ||
		s.Attrs["yardmaster.domain"] != "d" || s.Attrs["yard.batch.size"] != "3" {
		t.Fatalf("got %+v", s)
	}
	sink.Reset()
	testkit.MustEqual(t, "spans after a reset", len(sink.Spans()), 0)
}
