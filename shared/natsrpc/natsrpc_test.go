package natsrpc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

const soon = 60 * time.Second

type (
	request  = rpcv1.GetTaskRequest
	response = rpcv1.DescribeShardResponse
)

func call(ctx context.Context, nc *nats.Conn, req *request) (*response, error) {
	return natsrpc.Call[response](ctx, nc, "test.get", req)
}

func serve(t *testing.T, nc *nats.Conn, handle func(context.Context, *request) (natsrpc.Message, error)) {
	t.Helper()
	sub, err := natsrpc.Serve(nc, "test.get", nil, slog.New(slog.DiscardHandler), handle)
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	testkit.NoError(t, nc.Flush())
}

func TestCallIsAnswered(t *testing.T) {
	srv := natskit.Run(t)
	want := time.Now().Add(soon)
	serve(t, srv.Connect(t), func(ctx context.Context, req *request) (natsrpc.Message, error) {
		deadline, ok := ctx.Deadline()
		if !ok || deadline.Before(want.Add(-time.Millisecond)) || deadline.After(want.Add(soon/2)) {
			t.Errorf("the handler's deadline is %v, the caller's %v", deadline, want)
		}
		return &response{Ready: req.WaitMs + 1}, nil
	})
	ctx, cancel := context.WithDeadline(t.Context(), want)
	defer cancel()
	got, err := call(ctx, srv.Connect(t), &request{WaitMs: 6})
	if err != nil || got.Ready != 7 {
		t.Fatalf("%v %v", got, err)
	}
}

func TestFaultsCrossTheWire(t *testing.T) {
	srv := natskit.Run(t)
	want := &fault.Error{
		Code: fault.Stale, Message: "two\nlines", Path: "/token",
		Detail: map[string]string{"version": "3"}, RetryAfter: 250 * time.Millisecond,
	}
	outcome := map[string]func() (natsrpc.Message, error){
		"fault":  func() (natsrpc.Message, error) { return nil, want },
		"plain":  func() (natsrpc.Message, error) { return nil, errors.New("disk") },
		"panic":  func() (natsrpc.Message, error) { panic("boom") },
		"silent": func() (natsrpc.Message, error) { return nil, nil },
		"large": func() (natsrpc.Message, error) {
			return &response{Slots: map[string]int32{strings.Repeat("x", 2<<20): 1}}, nil
		},
	}
	serve(t, srv.Connect(t), func(_ context.Context, req *request) (natsrpc.Message, error) {
		return outcome[req.Domain]()
	})
	nc := srv.Connect(t)
	for name := range outcome {
		_, err := call(t.Context(), nc, &request{Domain: name})
		e := fault.From(err)
		if name == "fault" {
			if !reflect.DeepEqual(e, want) {
				t.Errorf("got %+v, want %+v", e, want)
			}
		} else if e == nil || e.Code != fault.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnansweredCallsAreUnavailable(t *testing.T) {
	srv := natskit.Run(t)
	nc := srv.Connect(t)
	if _, err := call(t.Context(), nc, &request{}); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "no node serves") {
		t.Errorf("no server: %v", err)
	}
	called := make(chan struct{}, 8)
	serve(t, srv.Connect(t), func(ctx context.Context, _ *request) (natsrpc.Message, error) {
		called <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	testkit.Code(t, "deadline", testkit.Err(call(short, nc, &request{})), fault.Unavailable)
	<-called

	failed := make(chan error)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	began := time.Now()
	go func() {
		_, err := call(ctx, nc, &request{})
		failed <- err
	}()
	<-called
	srv.Stop()
	if err := <-failed; fault.CodeOf(err) != fault.Unavailable || ctx.Err() != nil {
		t.Errorf("the connection broke: %v after %v", err, time.Since(began))
	}
	testkit.Code(t, "not connected", testkit.Err(call(t.Context(), nc, &request{})), fault.Unavailable)
}

// TestI14_TooManyCallsAreRefused: those of a domain that has three quarters of the places, and not those of another one.
func TestI14_TooManyCallsAreRefused(t *testing.T) {
	srv := natskit.Run(t)
	release := make(chan struct{})
	var begun sync.WaitGroup
	const most = natsrpc.ServeInFlightMax * 3 / 4
	begun.Add(most)
	serve(t, srv.Connect(t), func(_ context.Context, req *request) (natsrpc.Message, error) {
		if req.TaskId == nil {
			begun.Done()
			<-release
		}
		return &response{}, nil
	})
	nc := srv.Connect(t)
	var done sync.WaitGroup
	for range most {
		done.Go(func() {
			testkit.Check(t, testkit.Err(call(t.Context(), nc, &request{Domain: "flood"})))
		})
	}
	begun.Wait()
	late := []byte("late")
	_, err := call(t.Context(), nc, &request{Domain: "flood", TaskId: late})
	if e := fault.From(err); e == nil || e.Code != fault.ResourceExhausted || e.RetryAfter <= 0 {
		t.Errorf("one too many: %v", err)
	}
	testkit.NoError(t, testkit.Err(call(t.Context(), nc, &request{Domain: "shop", TaskId: late})))
	close(release)
	done.Wait()
	testkit.Eventually(t, soon, func() error {
		_, err := call(t.Context(), nc, &request{Domain: "flood", TaskId: late})
		return err
	})
}

func TestMalformedRequest(t *testing.T) {
	srv := natskit.Run(t)
	nc := srv.Connect(t)
	serve(t, nc, func(context.Context, *request) (natsrpc.Message, error) { return &response{}, nil })
	answer, err := nc.Request("test.get", []byte{0x0a, 0xff}, soon)
	if err != nil || answer.Header.Get(fault.HeaderCode) != string(fault.InvalidArgument) {
		t.Errorf("%v %v", answer, err)
	}
}

// lines is a log a test may read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) wait(t *testing.T, text string) {
	t.Helper()
	testkit.Eventually(t, soon, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !strings.Contains(l.b.String(), text) {
			return errors.New("no line says " + text + ": " + l.b.String())
		}
		return nil
	})
}

func TestConnectWaitsForTheServerAndComesBack(t *testing.T) {
	srv := natskit.Run(t)
	srv.Stop()
	log := &lines{}
	type result struct {
		nc  *nats.Conn
		err error
	}
	connected := make(chan result)
	go func() {
		nc, err := natsrpc.Connect(t.Context(), natsrpc.ConnConfig{URL: srv.URL}, "waiting", slog.New(slog.NewTextHandler(log, nil)))
		connected <- result{nc, err}
	}()
	log.wait(t, "waiting for NATS")
	srv.Restart(t)
	r := <-connected
	if r.err != nil {
		t.Fatal(r.err)
	}
	defer r.nc.Close()
	log.wait(t, "connected to NATS")

	srv.Stop()
	log.wait(t, "disconnected from NATS")
	if err := r.nc.Publish("x", nil); !errors.Is(err, nats.ErrReconnectBufExceeded) {
		t.Errorf("a publish while disconnected: %v", err)
	}
	srv.Restart(t)
	log.wait(t, "reconnected to NATS")
	testkit.Check(t, r.nc.Publish("x", nil))
}

func TestConnectGivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := natsrpc.Connect(ctx, natsrpc.ConnConfig{URL: "nats://me:secret@127.0.0.1:1"}, "x", slog.New(slog.DiscardHandler))
	if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestConnectInProcess(t *testing.T) {
	srv := natskit.Run(t)
	nc, err := natsrpc.ConnectInProcess(srv.Server, natsrpc.ConnConfig{}, "inside", slog.New(slog.DiscardHandler))
	testkit.NoError(t, err)
	defer nc.Close()
	serve(t, nc, func(context.Context, *request) (natsrpc.Message, error) { return &response{Ready: 3}, nil })
	if got, err := call(t.Context(), nc, &request{}); err != nil || got.Ready != 3 {
		t.Errorf("%v %v", got, err)
	}
}

func TestNoGoroutineOutlivesACall(t *testing.T) {
	srv := natskit.Run(t)
	nc := srv.Connect(t)
	serve(t, nc, func(context.Context, *request) (natsrpc.Message, error) { return &response{}, nil })
	testkit.NoError(t, testkit.Err(call(t.Context(), nc, &request{})))
	before := goleak.IgnoreCurrent()
	for range 10 {
		testkit.NoError(t, testkit.Err(call(t.Context(), nc, &request{})))
	}
	goleak.VerifyNone(t, before)
}

// R1: a call that wants its answer elsewhere than in a service's inbox is not handled.
func TestR1_CallsAreAnsweredInInboxesOnly(t *testing.T) {
	srv := natskit.Run(t)
	inboxes, err := topology.NewInboxes([]string{topology.TenantInboxes})
	testkit.NoError(t, err)
	log, metrics := slog.New(slog.DiscardHandler), signalkit.Metrics(t)
	replies := natsrpc.NewReplies(inboxes, "test", metrics, log)
	var handled atomic.Int64
	nc := srv.Connect(t, nats.CustomInboxPrefix(topology.ServiceInbox("test")))
	sub, err := natsrpc.Serve(nc, "test.get", replies, log, func(context.Context, *request) (natsrpc.Message, error) {
		handled.Add(1)
		return &response{}, nil
	})
	testkit.NoError(t, err)
	defer func() { _ = sub.Unsubscribe() }()
	wrong := []string{"$JS.API.STREAM.DELETE.X", topology.Event(0), topology.UserInbox("shop", "ann") + ".1", "_INBOX.1"}
	for _, reply := range wrong {
		testkit.NoError(t, nc.PublishRequest("test.get", reply, nil))
	}
	testkit.Check(t, testkit.Err(call(t.Context(), nc, &request{})))
	testkit.Equal(t, "calls were handled", handled.Load(), 1)
	if n := metrics.Counter(signals.RepliesRefused, "test").Value(); n != int64(len(wrong)) {
		t.Errorf("%d of %d were counted", n, len(wrong))
	}
}
