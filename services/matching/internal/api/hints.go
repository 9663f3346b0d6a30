package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/provision"
)

const (
	// hintConsumer is the durable consumer that all owners of a shard share, one
	// after the other, and harmlessly at once.
	hintConsumer = "owner"
	// hintsPending bounds the messages that are not taken care of: what is held in
	// memory, and what comes again when an owner dies.
	hintsPending = 1024
	// hintsAckWait is after how long the hints of an owner that died come again.
	hintsAckWait = 5 * time.Second
	// hintsRetry is how long a hint stays away that could not be taken care of.
	hintsRetry = 500 * time.Millisecond
	// consumerTimeout bounds one try to find or make the consumer.
	consumerTimeout = 5 * time.Second
	// consumeRetry is how long to wait before the next.
	consumeRetry = 250 * time.Millisecond
)

// consume hands the shard its hint stream until ctx ends. A stream or consumer that
// is gone, as after a restart of the server that held it in memory, is made again.
func (p *Port) consume(ctx context.Context, s *shard.Shard) {
	broken := false
	for ctx.Err() == nil {
		err := p.consumeOnce(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if !broken {
			p.log.Warn("the hint stream broke off; trying again", "shard", p.shard, "error", err)
		}
		broken = err != nil
		pause(ctx, consumeRetry)
	}
}

// consumeOnce returns when consuming breaks off.
func (p *Port) consumeOnce(ctx context.Context, s *shard.Shard) error {
	consumer, err := p.consumer(ctx)
	if err != nil {
		return err
	}
	if consumer.CachedInfo().Delivered.Consumer == 0 {
		asking, stop := context.WithCancel(ctx)
		defer stop()
		go p.retriggerAll(asking)
		s.HintsLost()
	}
	failed := make(chan error, 1)
	consuming, err := consumer.Consume(
		func(m jetstream.Msg) { p.hints(s, m) },
		jetstream.PullMaxMessages(256),
		jetstream.PullHeartbeat(2*time.Second), jetstream.PullExpiry(10*time.Second),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case failed <- err:
			default:
			}
		}),
	)
	if err != nil {
		return err
	}
	defer consuming.Stop()
	select {
	case <-ctx.Done():
		consuming.Drain() // hand over what has come
		select {
		case <-consuming.Closed():
		case <-time.After(stopTimeout):
		}
		return nil
	case err := <-failed:
		return err
	case <-consuming.Closed():
		return errors.New("closed")
	}
}

// retriggerAll asks history for all triggers of the shard, of whatever domain. A
// consumer that has delivered nothing is a new one: if the server has lost what it
// held in memory, the hints of the stream before are lost, and so are those that
// were sent while there was none. Where the cluster itself is new, it costs a call
// per history partition.
func (p *Port) retriggerAll(ctx context.Context) {
	var calls sync.WaitGroup
	for partition := range p.parts.History {
		calls.Go(func() {
			for ctx.Err() == nil {
				asking, cancel := context.WithTimeout(ctx, consumerTimeout)
				err := p.Retrigger(asking, partition, "")
				cancel()
				if err == nil {
					return
				}
				p.told("ask for lost triggers", err)
				pause(ctx, consumeRetry)
			}
		})
	}
	calls.Wait()
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (p *Port) consumer(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, consumerTimeout)
	defer cancel()
	want := jetstream.ConsumerConfig{
		Durable:       hintConsumer,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       hintsAckWait,
		MaxAckPending: hintsPending,
		MaxDeliver:    -1,
		MemoryStorage: true,
	}
	consumer, err := p.js.CreateOrUpdateConsumer(ctx, topology.MatchingStream(p.shard), want)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return consumer, err
	}
	// Its hints are lost with it, which costs latency only.
	if err := provision.Apply(ctx, p.js, p.parts, provision.Options{Log: p.log}); err != nil {
		return nil, err
	}
	return p.js.CreateOrUpdateConsumer(ctx, topology.MatchingStream(p.shard), want)
}

func (p *Port) hints(s *shard.Shard, m jetstream.Msg) {
	h := new(logv1.Hints)
	if err := h.UnmarshalVT(m.Data()); err != nil {
		p.log.Error("an unreadable hint was dropped", "subject", m.Subject(), "bytes", len(m.Data()), "error", err)
		p.told("drop a hint", m.Term())
		return
	}
	s.Hints(shard.Delivery{Hints: h, Done: func(ok bool) {
		if ok {
			p.told("acknowledge a hint", m.Ack())
		} else {
			p.told("put a hint off", m.NakWithDelay(hintsRetry))
		}
	}})
}
