package yard_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// within bounds what must happen soon, in the bubble's time.
const within = 60 * time.Second

// inBubble runs a test on a stack of its own, in virtual time. A goroutine that the client leaves behind fails it.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	// nats.go keeps timers for its next use, and one of another bubble must not come into this: two collections empty
	// its pool. So these tests do not run side by side either.
	runtime.GC()
	runtime.GC()
	synctest.Test(t, test)
}

// stack is a NATS server in memory, a fake engine and a client of it.
type stack struct {
	nats   *server
	engine *fake
	client *yard.Client
}

func newStack(t *testing.T, opts ...yard.ClientOption) *stack {
	t.Helper()
	nats := newServer()
	s := &stack{nats: nats, engine: newFake(t, nats.connect(t)).serve()}
	s.client = s.connect(t, opts...)
	return s
}

// onStack runs a test in a bubble, on a stack of its own.
func onStack(t *testing.T, test func(t *testing.T, s *stack)) {
	t.Helper()
	inBubble(t, func(t *testing.T) { test(t, newStack(t)) })
}

func (s *stack) connect(t *testing.T, opts ...yard.ClientOption) *yard.Client {
	t.Helper()
	client, err := yard.Connect("", "shop", append([]yard.ClientOption{yard.WithNATSOptions(nats.InProcessServer(s.nats))}, opts...)...)
	checktest.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// eventually waits until check has nothing to say any more.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		err := check()
		if err == nil {
			return
		}
		if time.Since(began) > within {
			t.Fatal(err)
		}
	}
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
		checktest.Check(t, stop())
	})
	return stop
}

func quiet() yard.WorkerOption { return yard.WithLogger(slog.New(slog.DiscardHandler)) }

// soon is a context that ends where a healthy run has long been done.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	return ctx
}
