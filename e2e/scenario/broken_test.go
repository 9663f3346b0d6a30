package scenario_test

import (
	"bytes"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// lossy dials connections. One that brings a task while it is armed breaks instead, as that to a server that dies
// with the answer of a poll.
type lossy struct{ armed atomic.Bool }

// Dial implements nats.CustomDialer.
func (l *lossy) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &lossyConn{conn, l}, err
}

type lossyConn struct {
	net.Conn
	by *lossy
}

// Read implements net.Conn.
func (c *lossyConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if err == nil && bytes.Contains(into[:n], []byte("lost-on-its-way")) && c.by.armed.CompareAndSwap(true, false) {
		return 0, c.Close()
	}
	return n, err
}

// TestR41ATaskLostWithTheConnectionOfItsWorkerIsNoFailure: the SDK tells with its next poll that it got no answer, and
// the task comes at once. A machine that takes longer than the engine remembers its answers gets another try.
func TestR41ATaskLostWithTheConnectionOfItsWorkerIsNoFailure(t *testing.T) {
	testkit.Slow(t, "waits for leases, delays or retries")
	everywhere(t, func(t *testing.T, w *world) {
		loss := &lossy{}
		u := sealed.Admin(w.domain)
		client, err := yard.NewClient(connect(t, w.stack, u, nats.SetCustomDialer(loss), nats.MaxReconnects(-1)), w.domain)
		testkit.NoError(t, err)
		handedBack := func() error {
			loss.armed.Store(true)
			id := w.submitOne(&yardv1.NewTask{Type: "x", Payload: jsonPayload(`"lost-on-its-way"`), StartToCloseMs: 15_000})
			for {
				tasks, err := client.Wire().Poll(w.soon(), &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 500})
				if err == nil && len(tasks) == 1 {
					equal(t, "complete", w.complete(tasks[0]), "OK")
					break
				}
			}
			equal(t, "armed", loss.armed.Load(), false)
			for _, e := range w.get(id).Events {
				if kindOf(e) == "timed_out" {
					return errors.New("the attempt that was lost counts as a failure")
				}
			}
			return nil
		}
		w.eventually(handedBack)
	})
}
