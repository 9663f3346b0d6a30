package natsrpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/shared/admission"
)

// ServeInFlightMax is how many calls of one subscription are handled at once, three quarters of them for one domain (package admission).
// Further ones are answered ResourceExhausted.
const ServeInFlightMax = 256

// serveFullRetryAfter is how long a caller refused by ServeInFlightMax must wait.
const serveFullRetryAfter = 50 * time.Millisecond

// Serve answers calls to subject with handle, each in a goroutine of its own,
// until the subscription is drained or unsubscribed. The context of handle ends
// when its caller stops waiting, and not when the subscription ends: calls
// already begun are finished.
//
// A call whose reply subject is not a service's inbox is dropped before anything is done for
// it (Replies).
//
// An error of handle goes to the caller as fault.From makes it (Unavailable where
// it is that of a context which ended), and is not logged. A panic, and an answer
// too large for the server, are logged and are Internal to the caller.
func Serve[Req any, PReq interface {
	*Req
	Message
}](nc *nats.Conn, subject string, replies *Replies, log *slog.Logger, handle func(ctx context.Context, req PReq) (Message, error)) (*nats.Subscription, error) {
	s := &server{nc: nc, log: log, places: admission.New(ServeInFlightMax)}
	sub, err := nc.Subscribe(subject, func(msg *nats.Msg) {
		if msg.Reply != "" && !replies.Service(msg.Reply) {
			return
		}
		req := PReq(new(Req))
		// Leniently: the caller may be newer and know more fields.
		if err := req.UnmarshalVT(msg.Data); err != nil {
			s.refuse(msg, fault.New(fault.InvalidArgument, "%s: bad protobuf: %v", subject, err))
			return
		}
		domain := domainOf(req)
		if !s.places.Enter(domain) {
			s.refuse(msg, fault.New(fault.ResourceExhausted, "%s: too many calls at once", subject).After(serveFullRetryAfter))
			return
		}
		go func() {
			defer s.places.Leave(domain)
			s.answer(msg, func(ctx context.Context) (Message, error) { return handle(ctx, req) })
		}()
	})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", subject, err)
	}
	return sub, nil
}

// domainOf is the domain that a request is for; "" if it names none.
func domainOf(req Message) string {
	if r, ok := req.(interface{ GetDomain() string }); ok {
		return r.GetDomain()
	}
	return ""
}

// server is the part of Serve that knows no types.
type server struct {
	nc     *nats.Conn
	log    *slog.Logger
	places *admission.Room
}

func (s *server) answer(msg *nats.Msg, handle func(context.Context) (Message, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), timeoutOf(msg))
	defer cancel()
	if ctx.Err() != nil {
		return // no one waits for it any more
	}
	resp, err := s.guarded(ctx, msg.Subject, handle)
	if err != nil {
		s.refuse(msg, handlerFault(ctx, msg.Subject, err))
		return
	}
	data, err := codec.Marshal(codec.Protobuf, resp)
	if err == nil && int64(len(data)) > s.nc.MaxPayload() {
		err = fault.New(fault.Internal, "the answer has %d bytes, more than the server accepts", len(data))
	}
	if err != nil {
		s.log.Error("a call could not be answered", "subject", msg.Subject, "error", err)
		s.refuse(msg, fault.From(err))
		return
	}
	if msg.Reply == "" {
		return
	}
	if err := s.nc.Publish(msg.Reply, data); err != nil {
		s.log.Debug("an answer was not sent", "subject", msg.Subject, "error", err)
	}
}

// handlerFault is err as its caller sees it. A handler that stopped because the
// caller's time was over did nothing wrong.
func handlerFault(ctx context.Context, subject string, err error) *fault.Error {
	var e *fault.Error
	if !errors.As(err, &e) && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fault.New(fault.Unavailable, "%s: timed out", subject)
	}
	return fault.From(err)
}

// guarded calls handle and turns a panic or a missing answer into Internal.
func (s *server) guarded(ctx context.Context, subject string, handle func(context.Context) (Message, error)) (resp Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a handler panicked", "subject", subject, "panic", p, "stack", string(debug.Stack()))
			resp, err = nil, fault.New(fault.Internal, "%s: the handler panicked", subject)
		}
	}()
	resp, err = handle(ctx)
	if err == nil && resp == nil {
		err = fault.New(fault.Internal, "%s: the handler returned no answer", subject)
	}
	return resp, err
}

func (s *server) refuse(msg *nats.Msg, e *fault.Error) {
	if err := RespondError(s.nc, msg.Reply, e); err != nil {
		s.log.Debug("an error answer was not sent", "subject", msg.Subject, "error", err)
	}
}

// RespondError sends e to reply as micro's error headers and a JSON body. An
// empty reply is no one and no error.
func RespondError(nc *nats.Conn, reply string, e *fault.Error) error {
	if reply == "" {
		return nil
	}
	msg := ErrorMsg(e)
	msg.Subject = reply
	return nc.PublishMsg(msg)
}

// ErrorMsg is the message of an error answer; its subject is still to be set.
func ErrorMsg(e *fault.Error) *nats.Msg {
	code, description, body := fault.Encode(e)
	return &nats.Msg{Data: body, Header: nats.Header{
		fault.HeaderCode:        {code},
		fault.HeaderDescription: {oneLine.Replace(description)},
		codec.HeaderContentType: {string(codec.JSON)},
	}}
}

// oneLine makes a text fit one header line.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// TimeoutMax bounds what ParseTimeout returns.
const TimeoutMax = 24 * time.Hour

func timeoutOf(msg *nats.Msg) time.Duration {
	if d, ok := ParseTimeout(msg.Header.Get(HeaderTimeout)); ok {
		return d
	}
	return CallTimeoutDefault
}

// ParseTimeout reads a value of HeaderTimeout, at most TimeoutMax; ok is false where it is none.
func ParseTimeout(value string) (d time.Duration, ok bool) {
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(min(max(ms, 0), TimeoutMax.Milliseconds())) * time.Millisecond, true
}
