package sdk_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// within bounds what must happen soon; a healthy run needs milliseconds.
const within = 60 * time.Second

// TestMain runs more tests side by side than there are cores: most of the time they
// wait for servers and for the disk.
func TestMain(m *testing.M) {
	testkit.SideBySide(6)
	goleak.VerifyTestMain(m)
}

// stack is a NATS server, a fake engine and a client of it.
type stack struct {
	nats   *testkit.NATS
	engine *fake
	client *yard.Client
}

func newStack(t *testing.T, opts ...yard.ClientOption) *stack {
	t.Helper()
	server := testkit.RunNATS(t)
	s := &stack{nats: server, engine: newFake(t, server.Connect(t)).serve()}
	s.client = s.connect(t, opts...)
	return s
}

func (s *stack) connect(t *testing.T, opts ...yard.ClientOption) *yard.Client {
	t.Helper()
	client, err := yard.Connect(s.nats.URL, "shop", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// run runs a worker until the returned func is called, which returns Run's error.
// The test's end calls it too.
func run(t *testing.T, w *yard.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(within):
			return errors.New("the worker did not stop")
		}
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("stop the worker: %v", err)
		}
	})
	return stop
}

func quiet() yard.WorkerOption { return yard.WithLogger(slog.New(slog.DiscardHandler)) }

// soon is a context that ends where a healthy run has long been done.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	return ctx
}
