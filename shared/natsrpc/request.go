package natsrpc

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// Errors of Request, apart from those of nats.go (ErrNoResponders foremost).
var (
	// ErrNotSent: there was no connection, so nothing was sent.
	ErrNotSent = errors.New("not connected to NATS")
	// ErrAnswerLost: the connection broke while waiting. The request may or may
	// not have been carried out, and its answer will not come.
	ErrAnswerLost = errors.New("the connection to NATS broke while waiting for the answer")
)

// How soon a waiting request learns that its connection broke; it asks more
// seldom as it waits longer. nats.go itself would let it wait until its deadline.
const (
	brokenCheckFirst = 100 * time.Millisecond
	brokenCheckLast  = time.Second
)

// Request sends msg and waits for one answer until ctx ends, or until the
// connection breaks.
func Request(ctx context.Context, nc *nats.Conn, msg *nats.Msg) (*nats.Msg, error) {
	if !nc.IsConnected() {
		return nil, ErrNotSent
	}
	waiting, cancel := WhileConnected(ctx, nc)
	defer cancel()
	answer, err := nc.RequestMsgWithContext(waiting, msg)
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionDraining):
		return nil, ErrNotSent
	case errors.Is(context.Cause(waiting), ErrAnswerLost), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return nil, ErrAnswerLost
	}
	return nil, err
}

// WhileConnected returns a context that ends with the cause ErrAnswerLost soon
// after the connection breaks, for calls of nats.go that would wait on until their
// deadline. Cancel must be called.
func WhileConnected(ctx context.Context, nc *nats.Conn) (waiting context.Context, cancel func()) {
	reconnects := nc.Stats().Reconnects
	waiting, end := context.WithCancelCause(ctx)
	// A timer and not a status listener: most calls are over before it fires.
	timer := time.AfterFunc(brokenCheckFirst, func() { watch(waiting, nc, reconnects, end) })
	return waiting, func() {
		timer.Stop()
		end(nil)
	}
}

// watch ends waiting once its connection broke.
func watch(waiting context.Context, nc *nats.Conn, reconnects uint64, cancel context.CancelCauseFunc) {
	for wait := backoff.New(brokenCheckFirst, brokenCheckLast); ; {
		if !nc.IsConnected() || nc.Stats().Reconnects != reconnects {
			cancel(ErrAnswerLost)
			return
		}
		if !wait.Sleep(waiting) {
			return
		}
	}
}
