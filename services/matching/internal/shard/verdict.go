package shard

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// verdicts applies history's answer to one batch, or to a part of one.
func (s *Shard) verdicts(v *logv1.VerdictBatch) {
	b := s.batches[v.RequestId]
	if b == nil {
		return // repeated, or given up
	}
	if len(b.grabs) == 0 { // hand-backs: whatever it says, it was heard
		s.handedBack(b, true)
		return
	}
	for i, verdict := range v.Verdicts {
		at := int(v.First) + i
		if at < len(b.grabs) && b.grabs[at].poll != nil {
			s.decide(b, at, verdict)
		}
	}
	if b.left == 0 {
		s.close(b)
	}
}

// decide applies one verdict. What is granted is kept for the answer; whether its
// booking still counts is asked for all verdicts at once, by settle.
func (s *Shard) decide(b *batch, i int, v *logv1.EventVerdict) {
	g := &b.grabs[i]
	p := g.poll
	if len(v.Trace) > 0 {
		s.trace(b, g, v)
	}
	switch {
	case v.Code != "":
		s.Metrics.GrabsRefused.Add(1)
		s.release(g)
	case p.answered:
		s.Metrics.GrabsGranted.Add(1)
		s.handBack = append(s.handBack, handBack{fence: b.fence(i)})
	default:
		s.Metrics.GrabsGranted.Add(1)
		p.granted = append(p.granted, grant{fence: b.fence(i), task: v.Task})
		if g.booked {
			a := s.account(p.list.domain, g.typ)
			a.Extend = append(a.Extend, table.Extension{
				Member: g.trigger.Booking(), Until: v.DeadlineMs + bookingSlack.Milliseconds(),
			})
			a.grants = append(a.grants, grantRef{p, len(p.granted) - 1})
		}
	}
	b.left--
	g.poll = nil
	p.pending--
	s.touch(p)
}

// trace tells what a traced task went through here.
func (s *Shard) trace(b *batch, g *grab, v *logv1.EventVerdict) {
	if !s.Tracing.On() {
		return
	}
	outcome := v.Code
	if outcome == "" {
		outcome = "GRANTED"
	}
	attrs := []attribute.KeyValue{
		attribute.String("yard.domain", g.poll.list.Domain),
		attribute.String("yard.tasklist", g.poll.list.Name),
		attribute.String("yard.type", g.typ),
		attribute.String("yard.task_id", g.trigger.ID.String()),
		attribute.Int("yard.partition", b.lane.partition),
		attribute.String("yard.verdict", outcome),
	}
	s.Tracing.Span(v.Trace, "match", trace.SpanKindInternal, g.takenAt, b.firstAt, attrs...)
	s.Tracing.Span(v.Trace, "grab", trace.SpanKindClient, b.firstAt, time.Now(), attrs...)
}

// account names one limit.
type account struct {
	domain *domain
	typ    string
}

// settlement is what a turn changes about one limit, and who asked for it.
type settlement struct {
	table.Settlement
	// grants are those whose bookings are extended, in the order of Extend.
	grants []grantRef
	// deliveries brought the releases.
	deliveries []*delivery
}

// grantRef is one grant of a poll.
type grantRef struct {
	poll *poll
	i    int
}

// account finds or makes this turn's changes of a limit.
func (s *Shard) account(d *domain, typ string) *settlement {
	at := account{d, typ}
	a := s.accounts[at]
	if a == nil {
		a = &settlement{Settlement: table.Settlement{Domain: d.name, Type: typ, Limit: s.limit(d, typ)}}
		s.accounts[at] = a
	}
	return a
}

// settle carries out what the turn gathered about bookings, in one call. A grant
// whose booking is gone, or cannot be extended for sure, is handed back: the limit
// counts only those that are booked.
func (s *Shard) settle() {
	if len(s.accounts) == 0 {
		return
	}
	all := make([]table.Settlement, 0, len(s.accounts))
	who := make([]*settlement, 0, len(s.accounts))
	for _, a := range s.accounts {
		all, who = append(all, a.Settlement), append(who, a)
	}
	clear(s.accounts)
	var settled []table.Settled
	ok := false
	if s.tablesUsable() {
		ctx, cancel := s.callContext()
		var err error
		settled, err = s.Tables.Settle(ctx, all)
		cancel()
		ok = s.called("settle", err)
	}
	freed := map[string][]string{}
	for i, a := range who {
		for _, d := range a.deliveries {
			d.settle(ok)
		}
		if !ok {
			for _, ref := range a.grants {
				s.takeBack(ref)
			}
			continue
		}
		for _, missing := range settled[i].Missing {
			s.takeBack(a.grants[missing])
		}
		if settled[i].Freed {
			freed[a.Domain] = append(freed[a.Domain], a.Type)
		}
	}
	for name, types := range freed {
		s.unblock(name, types)
		s.Outbox.Freed(name, types)
	}
}

// takeBack keeps a grant out of its poll's answer.
func (s *Shard) takeBack(ref grantRef) {
	g := &ref.poll.granted[ref.i]
	s.handBack = append(s.handBack, handBack{fence: g.fence})
	g.task = nil
}

// lostDomains are the domains a LostError names.
func lostDomains(err error) []string {
	var lost *table.LostError
	if errors.As(err, &lost) {
		return lost.Domains
	}
	return nil
}
