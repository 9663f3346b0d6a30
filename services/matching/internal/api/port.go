package api

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// answerRoom is what of the server's largest message an answer leaves to headers
// and framing.
const answerRoom = 64 << 10

// Port is one shard's side of NATS. It is the shard's Outbox and History.
type Port struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	shard int
	parts topology.Partitioning
	log   *slog.Logger
	inbox string
	// frame is reused by Answer, which only the shard's loop calls.
	frame []byte
}

// New returns the port of one shard.
func New(nc *nats.Conn, shard int, parts topology.Partitioning, log *slog.Logger) (*Port, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("matching: %w", err)
	}
	return &Port{nc: nc, js: js, shard: shard, parts: parts, log: log, inbox: nc.NewInbox()}, nil
}

// VerdictsTo is where history answers this port's events.
func (p *Port) VerdictsTo() string { return p.inbox + ".v" }

// answerReply is the reply subject of an answer, on which the server tells that
// nobody is there.
func (p *Port) answerReply(id uint64) string {
	return p.inbox + ".a." + strconv.FormatUint(id, 36)
}

func answerID(reply string) (uint64, error) {
	return strconv.ParseUint(reply[strings.LastIndexByte(reply, '.')+1:], 36, 64)
}

// AnswerBytesMax is how many bytes of tasks fit into one answer.
func (p *Port) AnswerBytesMax() int {
	limit := int(p.nc.MaxPayload())
	return max(limit-answerRoom, limit/2)
}

// Events implements shard.Outbox. The log's acknowledgement is not asked for: the
// verdict is one.
func (p *Port) Events(partition int, batch []byte) error {
	return p.nc.Publish(topology.Event(partition), batch)
}

// Answer implements shard.Outbox.
func (p *Port) Answer(to string, json bool, tasks [][]byte, id uint64) error {
	if to == "" {
		return fault.New(fault.InvalidArgument, "the poll names nobody to answer")
	}
	msg := &nats.Msg{Subject: to, Header: nats.Header{}}
	if len(tasks) > 0 {
		msg.Reply = p.answerReply(id)
	}
	if !json {
		msg.Header[codec.HeaderContentType] = []string{string(codec.Protobuf)}
		msg.Data = p.splice(tasks)
		return p.nc.PublishMsg(msg)
	}
	msg.Header[codec.HeaderContentType] = []string{string(codec.JSON)}
	resp := &yardv1.PollResponse{Tasks: make([]*yardv1.PolledTask, len(tasks))}
	for i, b := range tasks {
		resp.Tasks[i] = new(yardv1.PolledTask)
		if err := resp.Tasks[i].UnmarshalVT(b); err != nil {
			return fmt.Errorf("a polled task of history: %w", err)
		}
	}
	var err error
	if msg.Data, err = codec.Marshal(codec.JSON, resp); err != nil {
		return err
	}
	return p.nc.PublishMsg(msg)
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
func (p *Port) Refuse(to string, why *fault.Error) {
	p.told("refuse a poll", natsrpc.RespondError(p.nc, to, why))
}

// Freed implements shard.Outbox.
func (p *Port) Freed(domain string, types []string) {
	data, err := (&rpcv1.Freed{Domain: domain, Types: types}).MarshalVT()
	if err == nil {
		err = p.nc.Publish(topology.HintFreed, data)
	}
	p.told("tell of freed slots", err)
}

// Hungry implements shard.Outbox.
func (p *Port) Hungry(domain, tasklist string) {
	data, err := (&rpcv1.Hungry{Domain: domain, Tasklist: tasklist}).MarshalVT()
	if err == nil {
		err = p.nc.Publish(topology.HintHungry, data)
	}
	p.told("tell of an empty table", err)
}

// told logs what a hint's loss may be due to; the loss itself does no harm.
func (p *Port) told(what string, err error) {
	if err != nil {
		p.log.Debug(what, "error", err)
	}
}

// Bookings implements shard.History.
func (p *Port) Bookings(ctx context.Context, partition int, domain string) ([]table.Booking, error) {
	resp, err := natsrpc.Call[rpcv1.BookingsResponse](ctx, p.nc, topology.HistoryCall(partition, "bookings"), &rpcv1.BookingsRequest{Domain: domain})
	if err != nil {
		return nil, err
	}
	var all []table.Booking
	for _, t := range resp.Types {
		if len(t.Bookings) != len(t.ExpiresMs)*ids.BookingBytes {
			return nil, fmt.Errorf("history told of %d bytes of bookings and %d expiries", len(t.Bookings), len(t.ExpiresMs))
		}
		for i, until := range t.ExpiresMs {
			member := t.Bookings[i*ids.BookingBytes : (i+1)*ids.BookingBytes]
			all = append(all, table.Booking{Type: t.Type, Member: string(member), Until: until})
		}
	}
	return all, nil
}

// Retrigger implements shard.History. The empty domain stands for all of them.
func (p *Port) Retrigger(ctx context.Context, partition int, domain string) error {
	req := &rpcv1.RetriggerRequest{Domain: domain, Shard: int32(p.shard)}
	_, err := natsrpc.Call[rpcv1.RetriggerResponse](ctx, p.nc, topology.HistoryCall(partition, "retrigger"), req)
	return err
}
