package natsrpc

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
)

// Message is a generated message.
type Message = codec.Message

// HeaderTimeout carries how long the caller waits from when it sends, ms. The handler's context ends
// so long after the call has come. It is a duration since clocks differ.
const HeaderTimeout = "Yard-Timeout-Ms"

// CallTimeoutDefault bounds a call whose context has no deadline, on both ends.
const CallTimeoutDefault = 30 * time.Second

// Call sends req to the process that serves subject and waits for the answer. It never
// retries. The error is always a *fault.Error:
//
//   - the server's own, where it answered with one;
//   - Unavailable where no node serves the subject, nothing came before ctx ended,
//     or the connection broke. Only in the first case is it certain that nothing
//     happened;
//   - Internal where a message is malformed or larger than the server takes.
func Call[Resp any, PResp interface {
	*Resp
	Message
}](ctx context.Context, nc *nats.Conn, subject string, req Message) (PResp, error) {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	data, err := codec.Marshal(codec.Protobuf, req)
	if err != nil {
		return nil, fault.From(err)
	}
	deadline, _ := ctx.Deadline()
	msg := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		HeaderTimeout: {strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 0), 10)},
	}}
	answer, err := Request(ctx, nc, msg)
	if err != nil {
		return nil, callFault(subject, err)
	}
	if e := fault.Decode(answer.Header.Get(fault.HeaderCode), answer.Header.Get(fault.HeaderDescription), answer.Data); e != nil {
		return nil, e
	}
	resp := PResp(new(Resp))
	if err := codec.Unmarshal(codec.Protobuf, answer.Data, resp); err != nil {
		return nil, fault.From(err)
	}
	return resp, nil
}

func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, CallTimeoutDefault)
}

func callFault(subject string, err error) *fault.Error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fault.New(fault.Unavailable, "no node serves %s now", subject)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Unavailable, "%s: timed out", subject)
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Unavailable, "%s: the caller gave up", subject)
	case errors.Is(err, ErrNotSent), errors.Is(err, ErrAnswerLost):
		return fault.New(fault.Unavailable, "%s: %v", subject, err)
	}
	return fault.New(fault.Internal, "%s: %v", subject, err)
}
