package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

const (
	// hintConsumerPrefix and the epoch name the durable consumer of one ownership.
	hintConsumerPrefix = "owner-"
	// hintsPending bounds the messages that are not taken care of: what is held in
	// memory, and what comes again when an owner dies.
	hintsPending = 1024
	// hintsAckWait is after how long hints come again that this owner has lost.
	hintsAckWait = 5 * time.Second
	// consumerTimeoutMin bounds the first consumerQuick tries to find or make the consumer: a call that meets a lost leader is never answered. Each
	// further one may take twice as long, up to consumerTimeoutMax: a loaded server takes its time.
	consumerQuick      = 4
	consumerTimeoutMin = 1500 * time.Millisecond
	consumerTimeoutMax = 8 * time.Second
	// consumeRetry is how long to wait before the next.
	consumeRetry = 250 * time.Millisecond
)

// consumerTimeout bounds the try that comes after so many that were not answered.
func consumerTimeout(unanswered int) time.Duration {
	timeout := consumerTimeoutMin
	for n := consumerQuick; n <= unanswered && timeout < consumerTimeoutMax; n++ {
		timeout *= 2
	}
	return min(timeout, consumerTimeoutMax)
}

// consume hands the shard its hint stream until ctx ends. A stream or consumer that
// is gone, as after a restart of the server that held it in memory, is made again. A
// consumer of a newer owner ends the shard.
func (p *Port) consume(ctx context.Context, s *shard.Shard) {
	broken, unanswered := false, 0
	for ctx.Err() == nil {
		err := p.consumeOnce(ctx, s, consumerTimeout(unanswered), broken)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, shard.ErrOvertaken) {
			s.Overtaken()
			return
		}
		if !broken {
			p.Log.Warn("the hint stream failed, trying again", "error", err)
		}
		broken = err != nil
		if unanswered++; !errors.Is(err, context.DeadlineExceeded) {
			unanswered = 0
		}
		backoff.Sleep(ctx, consumeRetry)
	}
}

// consumeOnce returns when consuming breaks off. Again: it did before. Then the stream may have had no leader: what was sent to it meanwhile is lost,
// and no sender hears of that.
func (p *Port) consumeOnce(ctx context.Context, s *shard.Shard, timeout time.Duration, again bool) error {
	consumer, lost, err := p.consumer(ctx, timeout)
	if err != nil {
		return err
	}
	if lost || again {
		s.Put(func(in *match.Inputs) { in.HintsLost, in.ReleasesLost = in.HintsLost || lost, true })
	}
	return natslog.Consume(ctx, p.js, consumer, p.Log, func(m *nats.Msg) { p.hints(s, m) })
}

// consumer finds or makes the consumer of this ownership, and removes those of the ones
// before: what they had not acknowledged comes again at once rather than after
// hintsAckWait, since the stream keeps what is not acknowledged, and a new consumer begins
// with the oldest. A consumer of a higher epoch is shard.ErrOvertaken.
//
// Lost tells that hints may have been: no consumer is there that has delivered anything. If
// the server has lost what it held in memory, the hints of the stream before are lost, and
// so are those that were sent while there was none.
func (p *Port) consumer(ctx context.Context, timeout time.Duration) (consumer jetstream.Consumer, lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := p.hintStream(ctx)
	if err != nil {
		return nil, false, err
	}
	delivered, err := p.succeed(ctx, stream)
	if err != nil {
		return nil, false, err
	}
	consumer, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable:       hintConsumerPrefix + strconv.FormatUint(p.Epoch, 10),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       hintsAckWait,
		MaxAckPending: hintsPending,
		MaxDeliver:    -1,
		MemoryStorage: true,
	})
	return consumer, !delivered, err
}

// hintStream finds the shard's stream, and mends it if this process may.
func (p *Port) hintStream(ctx context.Context) (jetstream.Stream, error) {
	if !p.Provisions {
		return p.js.Stream(ctx, topology.MatchingStream(p.Shard))
	}
	return provision.Hints(ctx, p.js, p.Shard, p.Log)
}

// succeed removes the consumers of owners before. It tells whether any consumer, its own
// included, has delivered something. The cluster knows their names while their servers are away.
func (p *Port) succeed(ctx context.Context, stream jetstream.Stream) (delivered bool, err error) {
	all := stream.ConsumerNames(ctx)
	var old []string
	for name := range all.Name() {
		epoch, _ := strconv.ParseUint(strings.TrimPrefix(name, hintConsumerPrefix), 10, 64) // 0: of a program before epochs
		if epoch > p.Epoch {
			err = fmt.Errorf("the hint stream is read by epoch %d, this is %d: %w", epoch, p.Epoch, shard.ErrOvertaken)
		}
		if c, unknown := stream.Consumer(ctx, name); unknown == nil {
			delivered = delivered || c.CachedInfo().Delivered.Consumer > 0
		}
		if epoch < p.Epoch {
			old = append(old, name)
		}
	}
	if err = errors.Join(err, all.Err()); err != nil {
		return false, err
	}
	for _, name := range old {
		if err := stream.DeleteConsumer(ctx, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return false, err
		}
	}
	return delivered, nil
}

func (p *Port) hints(s *shard.Shard, m *nats.Msg) {
	h, err := readHints(m.Data)
	if err != nil {
		p.Log.Error("an unreadable hint was dropped", "subject", m.Subject, "bytes", len(m.Data), "error", err)
		p.failed("drop a hint", m.Term())
		return
	}
	h.Delivery = p.lastDelivery.Add(1)
	p.deliveries.Store(h.Delivery, m)
	s.Put(func(in *match.Inputs) { in.Hints = append(in.Hints, h) })
}
