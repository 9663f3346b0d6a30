package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// answerRoom is what of the server's largest message an answer leaves to headers
// and framing.
const answerRoom = 64 << 10

// Config says whose side of NATS a Port is. All fields but Replies and Provisions are required.
type Config struct {
	NATS         *nats.Conn
	Partitioning topology.Partitioning
	// Shard is the shard's number, Epoch that of this ownership of it.
	Shard int
	Epoch uint64
	// Replies says which reply subjects are answered; nil is the default.
	Replies *natsrpc.Replies
	// Provisions tells that this process may create streams.
	Provisions bool
	// LogVersion is the version to write.
	LogVersion func() uint32
	Log        *slog.Logger
}

// Port is one ownership's side of NATS. It is the shard's Outbox and History.
type Port struct {
	Config
	js    jetstream.JetStream
	inbox string
	// frame and events are reused by what only the shard's loop calls.
	frame  []byte
	events *encoder
	// deliveries are the messages of the hint stream that are not taken care of (*nats.Msg), by the number
	// that the core knows them by, and lastDelivery the last number. The consumer bounds them.
	deliveries   sync.Map
	lastDelivery atomic.Uint64
	answered     *answered
	moves        moves
	// reconnects is how often the connection had been restored as of the last round trip.
	reconnects uint64
}

// New returns the port of one ownership.
func New(c Config) (*Port, error) {
	js, err := jetstream.New(c.NATS)
	if err != nil {
		return nil, fmt.Errorf("matching: %w", err)
	}
	p := &Port{
		Config: c, js: js, inbox: c.NATS.NewInbox(), moves: moves{sent: map[uint64][]tree.Move{}}, reconnects: c.NATS.Stats().Reconnects,
	}
	p.events = newEncoder(c, p.verdictsTo)
	p.answered = newAnswered(func(to string, ids []uint64) { p.hint(to, &rpcv1.PollsAnswered{Ids: ids}) })
	return p, nil
}

// verdictsTo is where a history partition answers this port's events.
func (p *Port) verdictsTo(partition int) string { return p.inbox + ".v." + strconv.Itoa(partition) }

// answerReply is the reply subject of an answer, on which the server tells that
// there is no subscriber.
func (p *Port) answerReply(id uint64) string {
	return p.inbox + ".a." + strconv.FormatUint(id, 36)
}

// lastToken is what verdictsTo and answerReply put at the end.
func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }

// AnswerBytesMax is how many bytes of tasks fit into one answer.
func (p *Port) AnswerBytesMax() int {
	limit := int(p.NATS.MaxPayload())
	return max(limit-answerRoom, limit/2)
}

// Answer implements shard.Outbox.
func (p *Port) Answer(a *grab.Answer) error {
	if a.ReplyTo == "" {
		return errors.New("the poll names no inbox")
	}
	p.answered.done(a.Poll)
	msg := &nats.Msg{Subject: a.ReplyTo, Header: nats.Header{}}
	if a.ID != 0 {
		msg.Reply = p.answerReply(a.ID)
	}
	if !a.JSON {
		msg.Header[codec.HeaderContentType] = []string{string(codec.Protobuf)}
		msg.Data = p.splice(a.Tasks)
		return p.NATS.PublishMsg(msg)
	}
	msg.Header[codec.HeaderContentType] = []string{string(codec.JSON)}
	resp := &yardv1.PollResponse{Tasks: make([]*yardv1.PolledTask, len(a.Tasks))}
	for i, b := range a.Tasks {
		resp.Tasks[i] = new(yardv1.PolledTask)
		if err := resp.Tasks[i].UnmarshalVT(b); err != nil {
			return fmt.Errorf("a polled task of history: %w", err)
		}
	}
	var err error
	if msg.Data, err = codec.Marshal(codec.JSON, resp); err != nil {
		return err
	}
	return p.NATS.PublishMsg(msg)
}

// RoundTrip returns when the server has taken in all that was sent before. It reports whether the connection broke
// since the call before.
func (p *Port) RoundTrip(ctx context.Context) (broke bool, err error) {
	if err := p.NATS.FlushWithContext(ctx); err != nil {
		return false, fmt.Errorf("wait for NATS: %w", err)
	}
	n := p.NATS.Stats().Reconnects
	broke, p.reconnects = n != p.reconnects, n
	return broke, nil
}

// splice frames encoded tasks as a yardv1.PollResponse: field 1, one after the
// other. The result is good until the next call; publishing copies it.
func (p *Port) splice(tasks [][]byte) []byte {
	b := p.frame[:0]
	for _, t := range tasks {
		b = protowire.AppendTag(b, 1, protowire.BytesType)
		b = protowire.AppendBytes(b, t)
	}
	p.frame = b
	return b
}

// Refuse implements shard.Outbox.
func (p *Port) Refuse(r *waiting.Refusal) {
	p.answered.done(r.Poll)
	p.refuse(r.ReplyTo, r.Why)
}

func (p *Port) refuse(to string, why *fault.Error) {
	p.failed("refuse a poll", natsrpc.RespondError(p.NATS, to, why))
}

// Batch implements shard.Outbox. The verdicts are the only answer.
func (p *Port) Batch(b *grab.Batch) {
	p.failed("send events", p.NATS.Publish(topology.EventRequests(b.Partition), p.events.encode(b)))
}

// Hints implements shard.Outbox.
func (p *Port) Hints(freed, restore []match.LimitHint, hungry []match.Hungry) {
	for _, f := range freed {
		p.hint(topology.HintFreed, &rpcv1.Freed{Domain: f.Domain, Limits: as[string](f.Limits)})
	}
	for _, r := range restore {
		p.hint(topology.HintRestore, &rpcv1.Restore{Domain: r.Domain, Limits: as[string](r.Limits)})
	}
	for _, h := range hungry {
		p.hint(topology.HintMissingTriggers, &rpcv1.Hungry{Domain: h.Domain, Tasklist: h.Tasklist, Present: h.Present})
	}
}

func (p *Port) hint(subject string, m natsrpc.Message) {
	data, err := m.MarshalVT()
	if err == nil {
		err = p.NATS.Publish(subject, data)
	}
	p.failed("send a hint", err)
}

// Ack implements shard.Outbox.
func (p *Port) Ack(delivery uint64) {
	if m, ok := p.deliveries.LoadAndDelete(delivery); ok {
		p.failed("acknowledge a hint", m.(*nats.Msg).Ack())
	}
}

// failed logs what the loss of a message may be due to; the loss itself does no harm.
func (p *Port) failed(what string, err error) {
	if err != nil {
		p.Log.Debug(what, "error", err)
	}
}

// as converts references to texts, or back.
func as[To, From ~string](all []From) []To {
	out := make([]To, len(all))
	for i, one := range all {
		out[i] = To(one)
	}
	return out
}
