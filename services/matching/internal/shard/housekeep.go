package shard

import (
	"context"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
)

// housekeepSoon makes sure that the loop looks after itself before long.
func (s *Shard) housekeepSoon() {
	if soon := s.now.Add(housekeepEvery); soon.Before(s.housekeepAt) {
		s.housekeepAt = soon
	}
}

// housekeep does what no message brings about. Where there is nothing to look
// after, it is not due again for long: an idle shard sleeps.
func (s *Shard) housekeep() {
	s.housekeepAt = s.now.Add(idleAfter)
	s.resend()
	s.heal()
	s.complain()
	s.forgetAnswers()
	s.forgetLists()
	s.Metrics.WaitingPolls[s.Shard].Set(int64(s.alive))
	busy := s.alive > 0 || len(s.batches) > 0 || s.tablesDown || len(s.answered)+len(s.answeredBefore) > 0
	if busy || s.again {
		s.housekeepSoon()
	}
}

// heal tries types that were set aside: a slot may have lapsed, or the word that
// one was freed been lost, on its way here or before it was booked out.
func (s *Shard) heal() {
	if s.now.Before(s.healAt) {
		return
	}
	s.healAt = s.now.Add(healEvery)
	for _, d := range s.domains {
		if len(d.aside) > 0 {
			if !s.now.Before(d.auditAt) {
				s.audit(d)
			}
			clear(d.aside)
			s.markDomain(d)
			s.again = true
		}
	}
}

// complain tells history of tasklists where polls wait and the table is empty:
// triggers may have been lost.
func (s *Shard) complain() {
	for _, l := range s.lists {
		switch {
		case l.polls.n == 0 || !l.index.Empty():
			l.hungryAt = time.Time{}
		case l.hungryAt.IsZero():
			l.hungryWait = hungryMin
			l.hungryAt = s.now.Add(l.hungryWait)
		case !s.now.Before(l.hungryAt):
			s.Outbox.Hungry(l.Domain, l.Name)
			l.hungryWait = min(2*l.hungryWait, hungryMax)
			l.hungryAt = s.now.Add(l.hungryWait)
		}
	}
}

// forgetAnswers drops what has been heard, as nobody said otherwise.
func (s *Shard) forgetAnswers() {
	if s.now.Before(s.answeredTurnAt) {
		return
	}
	s.answeredTurnAt = s.now.Add(unheardWithin)
	clear(s.answeredBefore)
	s.answered, s.answeredBefore = s.answeredBefore, s.answered
}

// forgetLists drops tasklists that hold nothing and that nobody has asked for in a while.
func (s *Shard) forgetLists() {
	for name, l := range s.lists {
		switch {
		case l.alive > 0 || !l.index.Empty() || l.dirty || l.putting:
			l.idleSince = time.Time{}
		case l.idleSince.IsZero():
			l.idleSince = s.now
		case s.now.Sub(l.idleSince) >= idleAfter && len(l.domain.held) == 0:
			delete(s.lists, name)
			delete(l.domain.lists, name)
		}
	}
}

// Describe tells how a tasklist stands. Slots are those of its domain.
func (s *Shard) Describe(ctx context.Context, req *rpcv1.DescribeShardRequest) (*rpcv1.DescribeShardResponse, error) {
	resp := &rpcv1.DescribeShardResponse{Slots: map[string]int32{}}
	done := make(chan struct{})
	s.call(func() {
		for name, l := range s.lists {
			if name.Domain == req.Domain && name.Name == req.Tasklist {
				resp.Ready += int64(l.index.Triggers())
				resp.WaitingPolls += int64(l.alive)
			}
		}
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	types := s.Limits.Limited(req.Domain)
	counts, err := s.Tables.Slots(ctx, req.Domain, types, time.Now())
	if err != nil {
		return nil, err
	}
	for i, typ := range types {
		resp.Slots[typ] = int32(counts[i])
	}
	return resp, nil
}
