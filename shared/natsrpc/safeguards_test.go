package natsrpc_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// I14, R1: each kind of asker is answered in its own inboxes only; what is dropped is counted each time, and logged once, shortened.
func TestR1_RepliesAreJudgedByWhoAsks(t *testing.T) {
	strict, err := topology.NewInboxes([]string{topology.TenantInboxes})
	testkit.NoError(t, err)
	var out bytes.Buffer
	metrics := signalkit.Metrics(t)
	r := natsrpc.NewReplies(strict, "test", metrics, slog.New(slog.NewTextHandler(&out, nil)))
	mine, others := topology.UserInbox("shop", "ann")+".1", topology.UserInbox("other", "ann")+".1"
	operators, services := topology.OperatorInbox("ann")+".1", topology.ServiceInbox("timer")+".1"
	for i, reply := range []string{mine, others, operators, services} {
		got := [...]bool{r.Asker("shop", reply), r.Asker("other", reply), r.Operator(reply), r.Service(reply)}
		want := [4]bool{}
		want[i] = true
		testkit.Equal(t, reply+": shop, other, operator and service", got, want)
		if r.Asker(topology.ReservedDomain, reply) != (reply == operators) {
			t.Errorf("an administrative request for %s", reply)
		}
	}
	testkit.Equal(t, "counted", metrics.Counter(signals.RepliesRefused, "test").Value(), 4*3+3)
	testkit.Equal(t, "logged times", strings.Count(out.String(), "level=WARN"), 1)
	out.Reset()
	natsrpc.NewReplies(strict, "test", metrics, slog.New(slog.NewTextHandler(&out, nil))).Operator(strings.Repeat("x", 3000))
	if n := out.Len(); n == 0 || n > 1000 {
		t.Errorf("an unknown client's subject takes %d bytes of the log", n)
	}
	if lenient := (*natsrpc.Replies)(nil); !lenient.Asker("shop", "_INBOX.1") || lenient.Service("$JS.API.STREAM.DELETE.X") {
		t.Error("the default is otherwise")
	}
}

// A timeout is what an unknown client wrote: it is bounded, and does not overflow.
func TestTimeoutsAreBounded(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1500": 1500 * time.Millisecond, "0": 0, "-1": 0, strconv.Itoa(math.MinInt64): 0,
		strconv.Itoa(math.MaxInt64): natsrpc.TimeoutMax, strconv.FormatInt(natsrpc.TimeoutMax.Milliseconds()+1, 10): natsrpc.TimeoutMax,
	} {
		if got, ok := natsrpc.ParseTimeout(text); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "soon", "1.5", "9223372036854775808"} {
		if got, ok := natsrpc.ParseTimeout(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A call whose caller does not wait any more is not begun.
func TestNothingIsDoneForWhoDoesNotWait(t *testing.T) {
	nc := natskit.Run(t).Connect(t)
	var handled atomic.Int64
	serve(t, nc, func(context.Context, *request) (natsrpc.Message, error) {
		handled.Add(1)
		return &response{}, nil
	})
	for range natsrpc.ServeInFlightMax / 2 {
		testkit.NoError(t, nc.PublishMsg(&nats.Msg{Subject: "test.get", Reply: nc.NewInbox(), Header: nats.Header{natsrpc.HeaderTimeout: {"0"}}}))
	}
	testkit.NoError(t, testkit.Err(call(t.Context(), nc, &request{})))
	testkit.Equal(t, "calls were handled", handled.Load(), 1)
}

// What can never work is an error at once, not a wait for a server.
func TestWrongConnectionsAreRefused(t *testing.T) {
	for what, c := range map[string]natsrpc.ConnConfig{
		"an inbox below the API":     {InboxPrefix: "$JS.API"},
		"an inbox of the system":     {InboxPrefix: "yard.history"},
		"a wildcard":                 {InboxPrefix: "_INBOX.>"},
		"a certificate alone":        {TLS: natsrpc.TLSConfig{Cert: "only"}},
		"a key alone":                {TLS: natsrpc.TLSConfig{Key: "only"}},
		"a key pair that is missing": {TLS: natsrpc.TLSConfig{Cert: "missing", Key: "missing"}},
		"a seed that is missing":     {NKeySeed: "missing"},
		"credentials that are gone":  {Credentials: "missing"},
		"an authority that is gone":  {TLS: natsrpc.TLSConfig{CA: "missing"}},
		"a CA file without any":      {TLS: natsrpc.TLSConfig{CA: "safeguards_test.go"}},
	} {
		if _, err := c.Options(); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// A connection is tried again forever, also where the server refused it, as while its users are rendered again; it
// notices soon that it is broken, and keeps nothing that its caller believes to have failed.
func TestAConnectionIsNeverGivenUp(t *testing.T) {
	srv := natskit.Run(t)
	nc, err := natsrpc.Connect(t.Context(), natsrpc.ConnConfig{URL: srv.URL, InboxPrefix: "_INBOX.s.test"}, "x", slog.New(slog.DiscardHandler))
	testkit.NoError(t, err)
	defer nc.Close()
	if o := nc.Opts; !o.IgnoreAuthErrorAbort || o.MaxReconnect >= 0 || o.ReconnectBufSize >= 0 || o.PingInterval*time.Duration(o.MaxPingsOut+1) > 5*time.Second {
		t.Errorf("%+v", o)
	}
	if inbox := nc.NewInbox(); !strings.HasPrefix(inbox, "_INBOX.s.test.") {
		t.Errorf("its inbox is %s", inbox)
	}
}

// No password of a URL is printed, whatever is wrong with it.
func TestNoPasswordIsPrinted(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, url := range []string{"nats://me:s3cret@127.0.0.1:1", "nats://me:s3cret@127.0.0.1:port", "nats://me:s3cret%zz@127.0.0.1:1", "nats://127.0.0.1:1,nats://me:s3 cret@x:1", "nats://a:b@127.0.0.1:1,nats://me:s3cret%zz@127.0.0.1:1", "nats://me:s3/cret@127.0.0.1:1", "nats://me:12/cret@127.0.0.1:1"} {
		var out bytes.Buffer
		waiting, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		logged := writer(func(line []byte) (int, error) { // then it waits
			defer stop()
			return out.Write(line)
		})
		for _, ctx := range []context.Context{waiting, over} {
			_, err := natsrpc.Connect(ctx, natsrpc.ConnConfig{URL: url}, "x", slog.New(slog.NewTextHandler(logged, nil)))
			if err == nil || strings.Contains(err.Error(), "cret") || strings.Contains(out.String(), "cret") || out.Len() == 0 {
				t.Errorf("%v, and logged %q", err, out.String())
			}
		}
	}
}

type writer func(line []byte) (int, error)

func (w writer) Write(line []byte) (int, error) { return w(line) }

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
