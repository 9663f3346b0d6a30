package natsgate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// EventListener hears what becomes of events.
type EventListener interface {
	TakeVerdicts(data []byte)
	EventsRefused(id uint64, why string)
}

// PollListener hears what becomes of polls.
type PollListener interface {
	PollBounced(id uint64)
	TasksBounced(id uint64)
	TakeAnswered(data []byte)
}

// Inbox sends on core NATS and hands what comes back to its listeners. It is the
// gateway's Bus, and a part for lifecycle.Group.
type Inbox struct {
	nc     *nats.Conn
	prefix string
	ready  chan struct{}
	events EventListener
	polls  PollListener
	// hints are what takes them, by subject.
	hints map[string]func(data []byte)
}

// NewInbox makes an inbox with a name of its own. Listen comes before Run.
func NewInbox(nc *nats.Conn) *Inbox {
	return &Inbox{nc: nc, prefix: nc.NewInbox(), ready: make(chan struct{})}
}

// Listen says who hears what arrives, and hints by their subject.
func (b *Inbox) Listen(events EventListener, polls PollListener, hints map[string]func(data []byte)) {
	b.events, b.polls, b.hints = events, polls, hints
}

// Tokens of the inbox's subjects behind its prefix.
const (
	tokenVerdicts = "v"
	tokenEvents   = "e"
	tokenPoll     = "p"
	tokenAnswered = "a"
	tokenTasks    = "t"
)

// Ready is closed when the subscriptions stand.
func (b *Inbox) Ready() <-chan struct{} { return b.ready }

// Run listens until ctx ends.
func (b *Inbox) Run(ctx context.Context) error {
	mine, err := b.nc.Subscribe(b.prefix+".>", b.arrived)
	if err != nil {
		return fmt.Errorf("listen to the inbox: %w", err)
	}
	// Verdicts hold no payloads, so what waits here is small; dropping some would
	// cost their requests a repetition.
	if err := mine.SetPendingLimits(-1, pendingBytesMax); err != nil {
		return fmt.Errorf("listen to the inbox: %w", err)
	}
	var hints []*nats.Subscription
	for subject, take := range b.hints {
		sub, err := b.nc.Subscribe(subject, func(m *nats.Msg) { take(m.Data) })
		if err != nil {
			return fmt.Errorf("listen to %s: %w", subject, err)
		}
		hints = append(hints, sub)
	}
	// The server must know of them before the first request is sent.
	if err := b.nc.Flush(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("listen to the inbox: %w", err)
	}
	close(b.ready)
	<-ctx.Done()
	for _, s := range hints {
		if err := s.Unsubscribe(); err != nil && !closing(err) {
			return fmt.Errorf("stop listening: %w", err)
		}
	}
	return endListening(mine)
}

// endTimeout bounds how long what has arrived is still heard at the end.
const endTimeout = time.Second

// endListening ends the subscription of the inbox once what has arrived is heard: a poll that was given up just then is
// sent on.
func endListening(s *nats.Subscription) error {
	ended := make(chan struct{})
	s.SetClosedHandler(func(string) { close(ended) })
	if err := s.Drain(); err != nil {
		if closing(err) {
			return nil
		}
		return fmt.Errorf("stop listening: %w", err)
	}
	select {
	case <-ended:
	case <-time.After(endTimeout):
	}
	return nil
}

// closing tells whether err says that the connection ends or has ended.
func closing(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionDraining)
}

const pendingBytesMax = 256 << 20

// VerdictsTo is the subject that leads to TakeVerdicts.
func (b *Inbox) VerdictsTo() string { return b.prefix + "." + tokenVerdicts }

// PublishEvents sends events to the owner of partition p. It answers with verdicts and not on this reply subject, which is
// there for the server to say that there is no owner.
func (b *Inbox) PublishEvents(p int, id uint64, data []byte) error {
	return b.nc.PublishRequest(topology.EventRequests(p), b.reply(tokenEvents, id), data)
}

// PublishPoll sends a poll to the owner of a matching shard in an epoch. Matching answers the
// poller and not this reply subject, which is there for the server to say that no one is.
func (b *Inbox) PublishPoll(shard int, epoch, id uint64, data []byte) error {
	return b.nc.PublishRequest(topology.MatchingPoll(shard, epoch), b.reply(tokenPoll, id), data)
}

// AnswerPoll implements gateway.Bus. The reply subject is there for the server to say that no one waits.
func (b *Inbox) AnswerPoll(to string, json bool, id uint64, resp *yardv1.PollResponse) error {
	form := codec.Protobuf
	if json {
		form = codec.JSON
	}
	data, err := codec.Marshal(form, resp)
	if err != nil {
		return fmt.Errorf("encode the answer of a poll: %w", err)
	}
	return b.nc.PublishMsg(&nats.Msg{Subject: to, Reply: b.reply(tokenTasks, id), Header: nats.Header{codec.HeaderContentType: {string(form)}}, Data: data})
}

// PublishGivenUp implements gateway.Bus.
func (b *Inbox) PublishGivenUp(data []byte) error { return b.nc.Publish(topology.HintGivenUp, data) }

// PublishSilent implements gateway.Bus.
func (b *Inbox) PublishSilent(data []byte) error { return b.nc.Publish(topology.HintSilent, data) }

// PublishUse implements gateway.Bus.
func (b *Inbox) PublishUse(data []byte) error { return b.nc.Publish(topology.HintUse, data) }

// PublishCancelHint implements gateway.Bus.
func (b *Inbox) PublishCancelHint(domain string, data []byte) error {
	return b.nc.Publish(topology.CancelHint(domain), data)
}

// AnsweredTo is the subject that leads to TakeAnswered.
func (b *Inbox) AnsweredTo() string { return b.prefix + "." + tokenAnswered }

func (b *Inbox) reply(token string, id uint64) string {
	return b.prefix + "." + token + "." + strconv.FormatUint(id, 10)
}

const (
	headerStatus       = "Status"
	statusNoResponders = "503"
)

func (b *Inbox) arrived(m *nats.Msg) {
	kind, number, _ := strings.Cut(m.Subject[len(b.prefix)+1:], ".")
	switch kind {
	case tokenVerdicts:
		b.events.TakeVerdicts(m.Data)
		return
	case tokenAnswered:
		b.polls.TakeAnswered(m.Data)
		return
	}
	id, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return // not ours
	}
	if m.Header.Get(headerStatus) != statusNoResponders {
		return
	}
	switch kind {
	case tokenPoll:
		b.polls.PollBounced(id)
	case tokenTasks:
		b.polls.TasksBounced(id)
	case tokenEvents:
		b.events.EventsRefused(id, "no node serves this partition")
	}
}
