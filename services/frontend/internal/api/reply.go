package api

import (
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/gateway"
)

// HeaderTraceparent is the W3C trace context of a request. NATS headers are
// case-sensitive, and this is how it is written.
const HeaderTraceparent = "traceparent"

// reply answers one request, from any goroutine.
type reply struct {
	api         *API
	tally       *tally
	to          string
	contentType codec.ContentType
	place       call.Place
	domain      string
	trace       []byte
	released    atomic.Bool

	mu sync.Mutex
	// handled is the request while its handler runs: afterwards micro checks whether an error was noted in it.
	handled micro.Request
}

// receive admits a request and reads its headers. A nil reply means that it has
// been answered already, or never will be.
func (a *API) receive(req micro.Request, t *tally) (call.Call, *reply, error) {
	now := time.Now()
	a.last.Store(now.UnixNano())
	domain := topology.DomainOf(req.Subject())
	if to := req.Reply(); to != "" && !a.Replies.Asker(domain, to) {
		return call.Call{}, nil, nil // who asks for that would not read an error
	}
	r := &reply{api: a, tally: t, to: req.Reply(), contentType: codec.JSON, handled: req, domain: domain}
	var err error
	if r.place, err = a.Gateway.Run.Admit(domain, len(req.Data())); err != nil {
		r.refuse(fault.From(err))
		return call.Call{}, nil, nil
	}
	h := req.Headers()
	contentType, err := codec.ParseContentType(h.Get(codec.HeaderContentType))
	if err != nil {
		return call.Call{}, r, err
	}
	r.contentType = contentType
	c := call.Call{
		Domain: domain, Tasklist: topology.TasklistOf(req.Subject()), JSON: contentType == codec.JSON, Reply: r.to,
		Received: now, Now: a.Clock.At(now), Deadline: now.Add(a.timeout(h.Get(natsrpc.HeaderTimeout))),
	}
	if text := h.Get(HeaderTraceparent); text != "" {
		c.Trace = telemetry.ParseTraceparent(text)
		r.trace = c.Trace
	}
	return c, r, nil
}

// timeout reads the timeout header; a malformed one counts as none.
func (a *API) timeout(header string) time.Duration {
	if d, ok := natsrpc.ParseTimeout(header); ok {
		return min(d, gateway.DeadlineMax)
	}
	return a.RequestTimeout
}

// The headers of answers, shared: they are only read when sent.
var (
	headerJSON     = nats.Header{codec.HeaderContentType: {string(codec.JSON)}}
	headerProtobuf = nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}}
)

// answer is a call.Answer.
func (r *reply) answer(resp codec.Message, err error) {
	// Counted out last, so that a drain does not close the connection under it.
	defer r.release()
	switch {
	case err != nil:
		r.refuse(fault.From(err))
		return
	case resp == nil || r.to == "":
		return
	}
	data, err := codec.Marshal(r.contentType, resp)
	if err == nil && int64(len(data)) > r.api.NATS.MaxPayload() {
		err = fault.New(fault.FailedPrecondition, "the answer has %d bytes, more than the server accepts: ask for less", len(data))
	}
	if err != nil {
		r.refuse(fault.From(err))
		return
	}
	header := headerJSON
	if r.contentType == codec.Protobuf {
		header = headerProtobuf
	}
	r.send(&nats.Msg{Subject: r.to, Header: header, Data: data})
}

func (r *reply) refuse(e *fault.Error) {
	r.tally.fail(e.Code)
	if e.Code == fault.Internal {
		r.log().Error("a request failed with an internal error", signals.Error, e)
	}
	m := natsrpc.ErrorMsg(e)
	if r.refuseHandled(m) || r.to == "" {
		return
	}
	m.Subject = r.to
	r.send(m)
}

// log returns a logger whose lines name the request, and the trace that the client sent with it.
func (r *reply) log() *slog.Logger {
	log := r.api.Log.With(signals.Verb, r.tally.verb, signals.Domain, r.domain)
	if sc := telemetry.ToSpanContext(r.trace); sc.IsValid() {
		log = log.With(signals.TraceID, sc.TraceID().String())
	}
	return log
}

// refuseHandled sends a refusal by way of micro, which then counts it as an error, while the handler runs. A
// request without a reply subject is counted and not answered.
func (r *reply) refuseHandled(m *nats.Msg) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := m.Header
	if r.handled == nil || h.Get(fault.HeaderDescription) == "" { // micro would not send that
		return false
	}
	if err := r.handled.Error(h.Get(fault.HeaderCode), h.Get(fault.HeaderDescription), m.Data, micro.WithHeaders(micro.Headers(h))); err != nil && r.to != "" {
		r.log().Debug("an answer was not sent", signals.Error, err)
	}
	return true
}

// returned is called when the handler is about to return.
func (r *reply) returned() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handled = nil
}

func (r *reply) send(m *nats.Msg) {
	if err := r.api.NATS.PublishMsg(m); err != nil {
		r.log().Debug("an answer was not sent", signals.Error, err)
	}
}

// release counts the request out, once: a poll may be answered after that it was
// handed on.
func (r *reply) release() {
	if r.released.CompareAndSwap(false, true) {
		r.api.Gateway.Run.Release(r.place)
	}
}

// recovered answers INTERNAL where a handler panicked: a defect that one request
// brings out must not end all others.
func (r *reply) recovered() {
	if p := recover(); p != nil {
		r.log().Error("a handler panicked", signals.Panic, p, signals.Stack, string(debug.Stack()))
		r.answer(nil, fault.New(fault.Internal, "the request could not be handled"))
	}
}
