package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// broken is a connection to a server that dies as soon as a message to a subject is written: its writer has
// heard of no failure.
type broken struct {
	net.Conn
	by *breaker
}

// breaker dials connections, of which it breaks one.
type breaker struct {
	// header is how a message begins that is lost, nil = none.
	header atomic.Pointer[[]byte]
	broke  atomic.Int32
}

// Dial implements nats.CustomDialer.
func (b *breaker) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return &broken{conn, b}, err
}

// lose has the next message to a subject be lost.
func (b *breaker) lose(subject string) {
	header := []byte("HPUB " + subject + " ")
	b.header.Store(&header)
}

// Write implements net.Conn.
func (c *broken) Write(data []byte) (int, error) {
	header := c.by.header.Load()
	if header == nil || !bytes.Contains(data, *header) || !c.by.header.CompareAndSwap(header, nil) {
		return c.Conn.Write(data)
	}
	c.by.broke.Add(1)
	return len(data), c.Conn.Close()
}

// TestR41_AnAnswerLostWithTheServerIsSentAgain to the same inbox, where the worker still waits.
func TestR41_AnAnswerLostWithTheServerIsSentAgain(t *testing.T) {
	t.Parallel()
	s, b := newStack(t), &breaker{}
	s.dial = []nats.Option{nats.SetCustomDialer(b)}
	s.start()
	waiting := s.send(1, time.Hour, nil)
	s.awaitPolls(1)
	b.lose(waiting.sub.Subject)
	s.history.submit("a", 3, 1)
	got := waiting.tasks()
	if len(got) != 1 || b.broke.Load() != 1 {
		t.Fatalf("got %v, %d answers were lost", got, b.broke.Load())
	}
	s.history.complete(got)
	s.await(func() error {
		if n := s.history.count(func() int { return len(s.history.grants) }); n != 0 {
			return fmt.Errorf("%d grants are not delivered", n)
		}
		return nil
	})
	if _, err := waiting.sub.NextMsg(0); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("another answer came, or %v", err)
	}
}
