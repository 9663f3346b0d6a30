package yard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard/coded"
	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/caller"
)

// How soon a waiting request learns that its connection broke; it checks less often as it waits longer. nats.go itself would let it wait until its deadline.
const (
	brokenCheckFirst = 100 * time.Millisecond
	brokenCheckLast  = time.Second
)

// tryTimeout bounds one try of a call that may be repeated, so that the answer of a process that died is not waited for until the end. It is longer
// than the engine needs to answer that it does not know (10 s).
const tryTimeout = 12 * time.Second

// payloadRoom is left free in a NATS message for headers and framing, bytes.
const payloadRoom = 64 << 10

// requestBytesMax is the aimed size of a request, bytes; NATS takes 1 MiB by default.
const requestBytesMax = 900 << 10

var errConnectionBroke = errors.New("the connection to NATS broke before the answer came")

// transport sends requests as protobuf and reads their answers.
type transport struct {
	nc      *nats.Conn
	timeout time.Duration
	content coded.Codec
}

// call sends req, which has the same effect twice, until it is answered with anything but a passing trouble, or
// until ctx ends. Without a deadline ctx gets the client's timeout.
func call[Resp any, P interface {
	*Resp
	codec.Message
}](ctx context.Context, t *transport, subject string, req codec.Message) (P, error) {
	ctx, cancel := t.bounded(ctx)
	defer cancel()
	for try := 0; ; try++ {
		resp, err := callOnce[Resp, P](ctx, t, subject, req)
		if err == nil {
			return resp, nil
		}
		e := fault.From(err)
		again := e.Code.Retryable() || e.Code == fault.Unknown && !final(e)
		if !again || t.nc.IsClosed() || !pause(ctx, backoff(try, e.RetryAfter)) {
			return nil, ended(ctx, err)
		}
	}
}

// callOnce is one try. A missing answer is UNKNOWN; what was certainly not sent or not received is UNAVAILABLE.
func callOnce[Resp any, P interface {
	*Resp
	codec.Message
}](ctx context.Context, t *transport, subject string, req codec.Message) (P, error) {
	if err := coded.Encode(t.content, req); err != nil {
		return nil, err
	}
	data, err := codec.Marshal(codec.Protobuf, req)
	if err != nil {
		return nil, err
	}
	answer, err := t.exchange(ctx, &nats.Msg{Subject: subject, Data: data, Header: headers(ctx)})
	if err != nil {
		return nil, err
	}
	resp := P(new(Resp))
	if err := t.decode(answer, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// exchange sends msg and waits for one answer until ctx ends, the try has lasted too long, or the connection breaks.
func (t *transport) exchange(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	if !t.nc.IsConnected() {
		return nil, notSent(ctx, t.nc)
	}
	if size, most := len(msg.Data), t.nc.MaxPayload(); size > int(most) {
		return nil, fault.New(fault.InvalidArgument, "a request of %d bytes is more than the NATS server takes (%d)", size, most)
	}
	if ctx.Err() != nil {
		return nil, ended(ctx, fault.New(fault.Unavailable, "%s: the request was not sent in time", msg.Subject))
	}
	reconnects := t.nc.Stats().Reconnects
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A timer and not a status listener: most requests are answered before it fires.
	watch := time.AfterFunc(brokenCheckFirst, func() { watchConn(waiting, t.nc, reconnects, cancel) })
	defer watch.Stop()
	answer, err := t.nc.RequestMsgWithContext(waiting, msg)
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fault.New(fault.Unavailable, "no node serves %s now", msg.Subject)
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionDraining):
		return nil, notSent(ctx, t.nc)
	case errors.Is(context.Cause(waiting), errConnectionBroke), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		return nil, fault.New(fault.Unknown, "%v", errConnectionBroke)
	case waiting.Err() != nil:
		return nil, ended(ctx, fault.New(fault.Unknown, "%s: no answer in time", msg.Subject))
	}
	return nil, fault.New(fault.Internal, "%s: %v", msg.Subject, err)
}

// watchConn ends a request whose connection broke, since its answer is lost, and one that has lasted too long.
func watchConn(waiting context.Context, nc *nats.Conn, reconnects uint64, cancel context.CancelCauseFunc) {
	giveUp := time.Now().Add(tryTimeout)
	for wait := brokenCheckFirst; ; wait = min(2*wait, brokenCheckLast) {
		if connBroke(nc, reconnects) {
			cancel(errConnectionBroke)
			return
		}
		if time.Now().After(giveUp) {
			cancel(nil)
			return
		}
		if !pause(waiting, wait) {
			return
		}
	}
}

func connBroke(nc *nats.Conn, reconnects uint64) bool {
	return !nc.IsConnected() || nc.Stats().Reconnects != reconnects
}

func (t *transport) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, t.timeout)
}

// bytesMax is how large a request may become.
func (t *transport) bytesMax() int {
	if limit := int(t.nc.MaxPayload()); limit > 0 {
		return min(requestBytesMax, max(limit-payloadRoom, limit/2))
	}
	return requestBytesMax
}

// fitting is how many of n entries go into one request: at least one, if there is any.
func fitting(n, bytesMax int, size func(i int) int) int {
	n = min(n, requestTasksMax)
	bytes := 0
	for i := range n {
		if bytes += size(i); i > 0 && bytes > bytesMax {
			return i
		}
	}
	return n
}

func headers(ctx context.Context) nats.Header {
	h := nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}}
	if t := traceOf(ctx); t != "" {
		h[headerTraceparent] = []string{t}
	}
	if by := caller.Of(ctx); by != "" {
		h[codec.HeaderBy] = []string{by}
	}
	return h
}

// decode reads an answer: a message, or the fault in its headers.
func (t *transport) decode(answer *nats.Msg, into codec.Message) error {
	if answer.Header != nil {
		if e := fault.Decode(answer.Header.Get(fault.HeaderCode), answer.Header.Get(fault.HeaderDescription), answer.Data); e != nil {
			return e
		}
	}
	err := codec.Unmarshal(codec.Protobuf, answer.Data, into)
	coded.Decode(t.content, into)
	return err
}

// retryAfterOf is how long the engine asks to wait, 0 where it does not say.
func retryAfterOf(err error) time.Duration {
	if err == nil {
		return 0
	}
	return fault.From(err).RetryAfter
}

func notSent(ctx context.Context, nc *nats.Conn) error {
	if nc.IsClosed() {
		return closedForGood()
	}
	return ended(ctx, fault.New(fault.Unavailable, "not connected to NATS"))
}

func closedForGood() error {
	return fmt.Errorf("%w: %w", fault.New(fault.Unavailable, "the connection to NATS is closed"), nats.ErrConnectionClosed)
}

// ended adds the context's error where the context has ended, so that callers find both the code and context.Canceled or context.DeadlineExceeded.
func ended(ctx context.Context, err error) error {
	if end := ctx.Err(); err != nil && end != nil && !errors.Is(err, end) {
		return fmt.Errorf("%w: %w", err, end)
	}
	return err
}
