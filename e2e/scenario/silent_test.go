package scenario_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// cable is a network that can be cut: what is sent is lost, nothing comes, and no server learns that a connection has ended.
type cable struct {
	mu   sync.Mutex
	cut  chan struct{}
	ends []net.Conn
}

func newCable(t *testing.T) *cable {
	c := &cable{cut: make(chan struct{})}
	t.Cleanup(func() {
		for _, end := range c.ends {
			_ = end.Close()
		}
	})
	return c
}

func (c *cable) isCut() bool {
	select {
	case <-c.cut:
		return true
	default:
		return false
	}
}

// Dial implements nats.CustomDialer.
func (c *cable) Dial(network, address string) (net.Conn, error) {
	if c.isCut() {
		return nil, fmt.Errorf("dial %s: the cable is cut", address)
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, conn)
	return &cableEnd{Conn: conn, cable: c, closed: make(chan struct{})}, nil
}

// cableEnd is a connection over a cable. Its real one stays open until the test ends.
type cableEnd struct {
	net.Conn
	cable  *cable
	once   sync.Once
	closed chan struct{}
}

func (e *cableEnd) Write(p []byte) (int, error) {
	if e.cable.isCut() {
		return len(p), nil
	}
	return e.Conn.Write(p)
}

func (e *cableEnd) Read(p []byte) (int, error) {
	for {
		if e.cable.isCut() {
			<-e.closed
			return 0, net.ErrClosed
		}
		_ = e.Conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, err := e.Conn.Read(p)
		if e.cable.isCut() {
			continue
		}
		if again, ok := err.(net.Error); !ok || !again.Timeout() || n > 0 {
			return n, err
		}
		select {
		case <-e.closed:
			return 0, net.ErrClosed
		default:
		}
	}
}

// SetReadDeadline is Read's business.
func (e *cableEnd) SetReadDeadline(time.Time) error { return nil }

// SetDeadline leaves out that of reads.
func (e *cableEnd) SetDeadline(at time.Time) error { return e.SetWriteDeadline(at) }

// Close keeps the real connection, so that no FIN is sent, unless the cable is whole.
func (e *cableEnd) Close() error {
	e.once.Do(func() { close(e.closed) })
	if e.cable.isCut() {
		return nil
	}
	return e.Conn.Close()
}

// silentWorker runs a worker over a cable whose handlers return when they are stopped. Its identity is "cut-off".
func (w *world) silentWorker(c *cable, n int, opts ...yard.WorkerOption) {
	w.t.Helper()
	nc := connect(w.t, w.stack, sealed.Admin(w.domain), nats.SetCustomDialer(c), nats.PingInterval(time.Second), nats.MaxReconnects(-1))
	client, err := yard.NewClient(nc, w.domain)
	testkit.NoError(w.t, err)
	worker := yard.NewWorker(client, list, append(opts, yard.WithConcurrency(n), yard.WithIdentity("cut-off"), yard.WithVersion("v1"),
		yard.WithDrainTimeout(0), yard.WithStopGrace(time.Second), yard.WithPollWait(time.Minute))...)
	yard.Handle(worker, "long", func(ctx context.Context, _ any) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		nc.Close()
		if err := <-ended; err != nil {
			w.t.Logf("the worker that was cut off could not report: %v", err)
		}
	})
}

// worker finds the one with a name among those that are alive.
func (w *world) worker(name string) (one yard.LiveWorker, found bool) {
	w.t.Helper()
	live, err := w.client.Workers(w.soon())
	testkit.NoError(w.t, err)
	i := slices.IndexFunc(live.All, func(l yard.LiveWorker) bool { return l.Worker == name })
	if i < 0 {
		return one, false
	}
	return live.All[i], true
}

// TestTheAttemptsOfASilentWorkerComeBackAtOnce: a host with 100 attempts, which have minutes and no heartbeats, is cut off without the end of its
// connection. All of them run elsewhere, no failure is counted, and no task goes to the polls that it had waiting.
func TestTheAttemptsOfASilentWorkerComeBackAtOnce(t *testing.T) {
	testkit.Slow(t, "waits for seconds, or runs many tasks")
	everywhere(t, func(t *testing.T, w *world) {
		const n = 100
		tasks := many(n, &yardv1.NewTask{Type: "long", Retry: &yardv1.RetryPolicy{MaxAttempts: 1}})
		all := w.submit(tasks...)
		host := newCable(t)
		w.silentWorker(host, 2*n, yard.WithSignsOfLife(500*time.Millisecond))
		w.eventually(func() error {
			one, found := w.worker("cut-off")
			if !found || one.AttemptsCount != n || len(one.Attempts) != 10 {
				return fmt.Errorf("the workers are %+v, %v", one, found)
			}
			if one.Version != "v1" || one.ID == "" || one.Every != 500*time.Millisecond || !slices.Equal(one.Tasklists, []string{list}) || one.Attempts[0].Type != "long" || one.Attempts[0].Tasklist != list {
				t.Errorf("it is %+v", one)
			}
			return nil
		})
		close(host.cut)
		cut := time.Now()
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "long", func(context.Context, any) (string, error) { return "done", nil })
		}, yard.WithConcurrency(n), yard.WithIdentity("another"))
		last := int64(0)
		for _, id := range all {
			task := w.ended(id)
			want(t, task, "completed", "submitted started lost started completed")
			equal(t, "failures", task.Failures, 0)
			for _, e := range task.Events {
				if kindOf(e) == "started" {
					last = max(last, e.AtMs)
				}
			}
		}
		t.Logf("the last one began again %v after the cut", time.UnixMilli(last).Sub(cut).Round(time.Millisecond))
		_, found := w.worker("cut-off")
		equal(t, "found", found, false)
		if _, found = w.worker("another"); !found {
			t.Error("the other worker is not found")
		}
		_, err := w.raw("workers.list", `{"limit":1001}`)
		refused(t, err, fault.InvalidArgument)
		_, err = w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WorkerId: "too short"})
		refusedAt(t, err, fault.InvalidArgument, "/worker_id")
		w.examined()
	})
}
