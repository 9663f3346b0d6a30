package shard

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// ErrOvertaken tells that a newer owner serves the shard.
var ErrOvertaken = errors.New("a newer owner serves this shard")

// Deps is what a shard works with; all of it is needed but Tracing.
type Deps struct {
	// Shard is its number, Partitions how many history partitions there are.
	Shard, Partitions int
	// Core decides, by Clock.
	Core  Core
	Clock Clock

	Tables  tables.Tables
	Outbox  Outbox
	History History
	// Open shows others that this owner is ready. It is tried again until it
	// succeeds, or fails with ErrOvertaken.
	Open func(ctx context.Context) error
	// RoundTrip asks NATS for a sign of life, behind all that was sent: broke tells that the connection broke since
	// the call before, and is back. It is called from one goroutine at a time.
	RoundTrip func(ctx context.Context) (broke bool, err error)
	Metrics   *Metrics
	Tracing   *telemetry.Tracing
	Log       *slog.Logger
}

// Shard is one matching shard while it is owned. Its fields belong to the loop,
// except the mailbox.
type Shard struct {
	Deps
	box mailbox
	// ended receives why to stop at once.
	ended chan error

	// ctx ends when the shard ends; what runs beside the loop uses it.
	ctx    context.Context
	beside sync.WaitGroup
	groups map[string]*group
	asks   []*lane[question.Question]
	// proving: a round trip is under way.
	proving atomic.Bool

	mail     mail
	fx       match.Effects
	looks    []look // that are left from turns before
	draining bool
}

// New returns a shard that is ready to be run.
func New(d Deps) *Shard {
	s := &Shard{
		Deps: d, box: mailbox{wake: make(chan struct{}, 1)}, ended: make(chan error, 1),
		groups: map[string]*group{}, asks: make([]*lane[question.Question], d.Partitions),
	}
	for p := range s.asks {
		s.asks[p] = &lane[question.Question]{run: s.ask, beside: &s.beside}
	}
	return s
}

// Put adds to what the next turn takes in. It is safe for concurrent use. add runs under a
// lock: it only appends.
func (s *Shard) Put(add func(in *match.Inputs)) { s.box.put(func(m *mail) { add(&m.Inputs) }) }

// Overtaken ends Run with ErrOvertaken. It is safe for concurrent use.
func (s *Shard) Overtaken() { s.end(ErrOvertaken) }

func (s *Shard) end(why error) {
	select {
	case s.ended <- why:
	default: // it is ending already
	}
}

// Run takes turns until ctx ends, then drains: it returns nil when the core has nothing
// under way any more. It returns ErrOvertaken as soon as it learns of a newer owner.
func (s *Shard) Run(ctx context.Context) error {
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer s.beside.Wait()
	defer cancel()
	err := s.turns(ctx)
	if errors.Is(err, ErrOvertaken) {
		s.Metrics.Overtaken.Add(1)
	}
	s.Metrics.WaitingPolls[s.Shard].Set(0)
	return err
}

func (s *Shard) turns(ctx context.Context) error {
	wake := time.NewTimer(0)
	defer wake.Stop()
	leave, cut := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case <-leave:
			s.draining, leave, cut = true, nil, time.After(drainTimeout)
		case <-cut:
			s.Log.Warn("the drain of a shard was not finished")
			return nil
		case why := <-s.ended:
			return why
		case <-s.box.wake:
		case <-wake.C:
		}
		now := s.turn()
		switch {
		case s.fx.Overtaken:
			return ErrOvertaken
		case s.fx.Drained:
			return nil
		case s.fx.Wake == 0:
			wake.Stop()
		case s.fx.Wake <= now:
			s.box.poke()
		default:
			wake.Reset(s.fx.Wake - now)
		}
	}
}

// turn takes in what there is and carries out what follows. It returns when it began.
func (s *Shard) turn() time.Duration {
	now := s.Clock.Now()
	s.mail = s.box.take(s.mail)
	s.mail.Drain = s.draining
	s.Core.Step(&s.mail.Inputs, now, &s.fx)
	s.carryOut(&s.fx)
	var looks []look
	looks, s.looks = some(append(s.looks, s.mail.looks...))
	for _, l := range looks {
		l.at(s.Core)
	}
	if len(s.looks) > 0 {
		s.box.poke()
	}
	return now.Mono
}
