package natslog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
)

// A cursor reads with a pull consumer that the server keeps in memory and that
// needs no acknowledgements. It is written against the protocol because the
// readers of nats.go either re-create their consumer on each fetch or prefetch by
// count or bytes in a way that cannot be left alone for minutes; here exactly one
// request is open at a time, and what it allows is all that can be under way.
//
// It holds a position, not a consumer: whatever looks odd (a gap in the consumer's
// numbers, silence, a reconnect) is answered by a new consumer behind the last
// record handed out.
const (
	// pullMsgs is how many messages one request allows, at most.
	pullMsgs = 4096
	// pullExpiry ends a request that finds nothing to do; heartbeats tell meanwhile
	// that the server still knows of it.
	pullExpiry    = 30 * time.Second
	pullHeartbeat = time.Second
	// silenceMax is how long nothing may come before the consumer is given up. Its server may
	// be lost, and no message says so: in a cluster a reader stands still for as long.
	silenceMax = 3 * time.Second
	// aloneTimes is by how much longer both are on a server that is no part of a cluster: its loss breaks the connection.
	aloneTimes = 10
	// idleConsumerKept is how long the server keeps the consumer of a paused
	// reader. When it comes back later, it makes a new one.
	idleConsumerKept = 2 * time.Minute
	// createTimeoutFirst bounds each try to make a consumer for as long as NATS may take to elect a
	// leader, which is createTriesShort tries: a call that meets a lost one is never answered.
	// createTimeoutLast bounds those that follow: a loaded server takes its time.
	createTimeoutFirst = time.Second
	createTriesShort   = 10
	createTimeoutLast  = 8 * time.Second
	// overheadBytes covers what the server counts beside a message's payload:
	// its subject and the acknowledgement subject.
	overheadBytes = 4 << 10
)

// errEnd is what a one-shot cursor finds when its server has no more messages.
var errEnd = errors.New("end of the stream")

// errBroken says why the consumer must be created again.
var errBroken = errors.New("the consumer broke")

// cursor is not safe for concurrent use.
type cursor struct {
	js    jetstream.JetStream
	nc    *nats.Conn
	cfg   ReadConfig
	log   *slog.Logger
	toEnd bool // stop with errEnd instead of waiting for more
	// msgs is how many messages one request allows, at most.
	msgs int
	// acked: what is lost comes again by itself.
	acked  bool
	status chan nats.Status

	want uint64 // the first sequence still wanted
	// failed counts the tries to make a consumer that failed in a row.
	failed int

	// Of the current consumer; sub is nil while there is none.
	name      string
	sub       *nats.Subscription
	in        chan *nats.Msg
	inbox     string
	delivered uint64 // the consumer's number of its last message
	ahead     uint64 // how many of the messages that matched when it was made are still to come
	silence   *time.Timer
	times     time.Duration // 1, or aloneTimes

	// Of the open request.
	pull      int // its number, 0 = none was sent yet
	open      bool
	msgsLeft  int
	bytesLeft int
	bytesMax  int
	progress  bool // it has delivered something
}

func newCursor(js jetstream.JetStream, cfg ReadConfig, toEnd bool) *cursor {
	return &cursor{
		js: js, nc: js.Conn(), cfg: cfg, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), toEnd: toEnd,
		msgs:    pullMsgs,
		status:  js.Conn().StatusChanged(nats.CONNECTED, nats.CLOSED),
		want:    max(cfg.StartSeq, 1),
		silence: time.NewTimer(pace.Of(silenceMax)), bytesMax: cmp.Or(max(cfg.PrefetchBytes, 0), PrefetchBytesDefault),
	}
}

func (c *cursor) stop() {
	c.close()
	c.silence.Stop()
	c.nc.RemoveStatusListener(c.status)
}

// next waits for the next record. It repairs the consumer as often as it takes;
// an error is ctx's, errEnd, or final.
func (c *cursor) next(ctx context.Context) (Record, error) {
	for wait := backoff.New(reopenWaitFirst, reopenWaitLast); ; {
		if err := c.ensure(ctx); err != nil {
			switch {
			case ctx.Err() != nil:
				return Record{}, ctx.Err()
			case c.nc.IsClosed():
				return Record{}, nats.ErrConnectionClosed
			case errors.Is(err, jetstream.ErrStreamNotFound):
				return Record{}, err
			}
			if !errors.Is(err, natsrpc.ErrNotSent) { // who made the connection logs its loss
				c.log.Warn("cannot read the stream, trying again", "stream", c.cfg.Stream, "sequence", c.want, "error", err)
			}
			if err := c.rest(ctx, wait.Next()); err != nil {
				return Record{}, err
			}
			continue
		}
		r, err := c.receive(ctx)
		if !errors.Is(err, errBroken) {
			return r, err
		}
		c.log.Info("reading the stream again", "stream", c.cfg.Stream, "sequence", c.want, "reason", err)
		c.close()
	}
}

// ensure makes a consumer at the wanted sequence if there is none, and opens a
// request if none is open.
func (c *cursor) ensure(ctx context.Context) error {
	if c.sub == nil {
		if !c.nc.IsConnected() {
			return natsrpc.ErrNotSent
		}
		if err := c.create(ctx); err != nil {
			c.close()
			return err
		}
	}
	if c.open {
		return nil
	}
	if err := c.request(); err != nil {
		c.close()
		return err
	}
	return nil
}

// rest waits before the next try; a connection that comes back ends it.
func (c *cursor) rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.status:
	case <-time.After(d):
	}
	return nil
}

func (c *cursor) create(ctx context.Context) error {
	timeout := createTimeoutFirst
	if c.failed >= createTriesShort {
		timeout = createTimeoutLast
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, end := natsrpc.WhileConnected(ctx, c.nc)
	defer end()
	cfg := jetstream.ConsumerConfig{
		Name:              "read_" + rand.Text(),
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       c.want,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: pace.Of(idleConsumerKept),
		MemoryStorage:     true,
		Replicas:          1,
	}
	if len(c.cfg.Filters) == 1 {
		cfg.FilterSubject = c.cfg.Filters[0]
	} else {
		cfg.FilterSubjects = c.cfg.Filters
	}
	if err := c.subscribe(cfg.Name); err != nil {
		return err
	}
	made, err := c.js.CreateConsumer(ctx, c.cfg.Stream, cfg)
	if err != nil {
		c.failed++
		return err
	}
	c.failed = 0
	if c.ahead = made.CachedInfo().NumPending; c.ahead == 0 {
		c.caughtUp()
	}
	return nil
}

// subscribe listens to a consumer.
func (c *cursor) subscribe(consumer string) error {
	c.forgetStatus() // what happened before this consumer does not concern it
	if c.times = 1; c.nc.ConnectedClusterName() == "" {
		c.times = aloneTimes
	}
	c.name, c.inbox = consumer, c.nc.NewInbox()
	// Room for all that one request can bring, so that nats.go never drops: its
	// messages, its heartbeats, its last status, and a late one of the request before.
	c.in = make(chan *nats.Msg, c.msgs+int(pullExpiry/pullHeartbeat)+8)
	sub, err := c.nc.ChanSubscribe(c.inbox+".*", c.in)
	if err != nil {
		return err
	}
	c.sub, c.delivered, c.pull, c.open = sub, 0, 0, false
	c.bytesMax = max(c.bytesMax, int(c.nc.MaxPayload())+overheadBytes)
	return nil
}

// caughtUp reports, the first time, that all is handled that matched at the start.
func (c *cursor) caughtUp() {
	if report := c.cfg.CaughtUp; report != nil {
		c.cfg.CaughtUp = nil
		report()
	}
}

// close forgets the consumer. The server is notified, without waiting for its answer, and finds out by itself if it
// cannot be reached.
func (c *cursor) close() {
	if c.sub == nil {
		return
	}
	_ = c.sub.Unsubscribe() // fails only where the connection is closed
	c.sub, c.in, c.open = nil, nil, false
	if !c.nc.IsConnected() {
		return
	}
	end := apiSubject(c.js, "CONSUMER.DELETE."+c.cfg.Stream+"."+c.name)
	if err := c.nc.PublishRequest(end, c.inbox+".deleted", nil); err != nil {
		c.log.Debug("a consumer was not removed; the server removes it later", "stream", c.cfg.Stream, "consumer", c.name, "error", err)
	}
}

// request asks for the next messages.
func (c *cursor) request() error {
	body := fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`, c.msgs, c.bytesMax, pace.Of(pullExpiry), pace.Of(c.times*pullHeartbeat))
	if c.toEnd {
		body = fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"no_wait":true}`, c.msgs, c.bytesMax)
	}
	c.pull++
	subject := apiSubject(c.js, "CONSUMER.MSG.NEXT."+c.cfg.Stream+"."+c.name)
	if err := c.nc.PublishRequest(subject, c.inbox+"."+strconv.Itoa(c.pull), body); err != nil {
		return fmt.Errorf("ask for messages: %w", err)
	}
	c.open, c.progress = true, false
	c.msgsLeft, c.bytesLeft = c.msgs, c.bytesMax
	return nil
}

func (c *cursor) forgetStatus() {
	for {
		select {
		case <-c.status:
		default:
			return
		}
	}
}
