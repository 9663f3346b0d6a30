package shard

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/yardmaster-io/yardmaster/contracts/signals"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// carryOut does what a step asks for, in the order of match.Effects.
func (s *Shard) carryOut(fx *match.Effects) {
	for i := range fx.Answers {
		s.answer(&fx.Answers[i])
	}
	for i := range fx.Refusals {
		s.Outbox.Refuse(&fx.Refusals[i])
	}
	if len(fx.Moves) > 0 {
		s.Outbox.Moves(fx.Moves)
	}
	for i := range fx.Batches {
		s.Outbox.Batch(&fx.Batches[i])
	}
	for _, c := range fx.Calls {
		s.group(c.Domain).calls.queue(c)
	}
	for _, domain := range fx.Opens {
		s.group(domain).chores.queue(chore{domain: domain})
	}
	for _, d := range fx.Drops {
		for _, limit := range d.Limits {
			s.group(d.Domain).chores.queue(chore{domain: d.Domain, drop: limit})
		}
	}
	for _, g := range s.groups {
		g.calls.start()
		g.chores.start()
	}
	for _, a := range fx.Asks {
		s.asks[a.Partition].queue(a)
	}
	for _, a := range fx.Asks {
		s.asks[a.Partition].start()
	}
	if len(fx.Freed)+len(fx.Restore)+len(fx.Hungry) > 0 {
		s.Outbox.Hints(fx.Freed, fx.Restore, fx.Hungry)
	}
	s.Outbox.Branches(fx.Branches)
	s.Outbox.Loads(fx.Loads)
	for _, a := range fx.Acks {
		s.Outbox.Ack(a)
	}
	for i := range fx.Traced {
		s.trace(&fx.Traced[i])
	}
	for _, took := range fx.Decided {
		s.Metrics.Grabs.Record(took, 1)
	}
	s.Metrics.count(s.Shard, &fx.Counts)
	if n := fx.Counts.Malformed; n > 0 {
		s.Log.Warn("malformed hints were dropped", "hints", n)
	}
	if fx.Prove && s.proving.CompareAndSwap(false, true) {
		s.beside.Go(s.prove)
	}
	if fx.Open {
		s.beside.Go(s.open)
	}
}

// answer sends an answer. One that cannot be sent was not delivered.
func (s *Shard) answer(a *grab.Answer) {
	err := s.Outbox.Answer(a)
	if err == nil {
		return
	}
	s.Log.Warn("an answer to a poll was not sent", "error", err, "tasks", len(a.Tasks))
	if id := a.ID; id != 0 {
		s.Put(func(in *match.Inputs) { in.Bounced = append(in.Bounced, id) })
	}
}

// prove makes a round trip to the server. The core asks again where it fails.
func (s *Shard) prove() {
	began := s.Clock.Now().Mono
	ctx, cancel := context.WithTimeout(s.ctx, proveTimeout)
	defer cancel()
	broke, err := s.RoundTrip(ctx)
	if err != nil {
		backoff.Sleep(s.ctx, proveRetry)
	}
	s.proving.Store(false)
	s.Put(func(in *match.Inputs) {
		switch {
		case err != nil:
		case broke:
			in.Broke = true
		default:
			in.Proven = max(in.Proven, began)
		}
	})
}

// open shows that this owner is ready, however often it takes.
func (s *Shard) open() {
	for s.ctx.Err() == nil {
		err := s.Open(s.ctx)
		switch {
		case err == nil:
			return
		case errors.Is(err, ErrOvertaken):
			s.end(err)
			return
		}
		s.Log.Debug("publish the epoch of the shard", "error", err)
		backoff.Sleep(s.ctx, openRetry)
	}
}

// trace shows what a traced task went through here.
func (s *Shard) trace(t *grab.Traced) {
	if !s.Tracing.On() {
		return
	}
	outcome := cmp.Or(t.Code, "OK")
	about := signals.Task{Domain: t.Domain, Tasklist: t.Tasklist, Type: t.Type, ID: t.ID.String(), Partition: t.Partition}
	show := func(span string, since, until time.Time, more ...attribute.KeyValue) {
		s.Tracing.Span(t.Trace, span, signals.SpanKind(span), since, until, about.Attributes(span, append(more, signals.Attribute(signals.Code, outcome))...)...)
	}
	matched, sent, decided := s.Clock.at(t.Matched), s.Clock.at(t.Sent), s.Clock.at(t.Decided)
	var why []attribute.KeyValue
	if t.ReadyMS > 0 {
		if text := reasons(t, t.Matched-matched.Sub(time.UnixMilli(t.ReadyMS))); text != "" {
			why = append(why, signals.Attribute(signals.Reason, text))
		}
	}
	show(signals.SpanMatch, matched, sent, why...)
	show(signals.SpanGrab, sent, decided)
}
