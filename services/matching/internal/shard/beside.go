package shard

import (
	"context"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// group is the tables of domains that fail together. A table that is slow, or silent,
// holds up these domains only.
type group struct {
	calls  lane[table.Call]
	chores lane[chore]
	// down: the last batch of calls failed. It belongs to the lane of the calls.
	down bool
}

// chore is a domain to be opened, or a limit of it to be forgotten.
type chore struct {
	domain string
	drop   table.Ref
}

// group finds or makes the group of a domain.
func (s *Shard) group(domain string) *group {
	n := s.Tables.Group(domain)
	g := s.groups[n]
	if g == nil {
		g = &group{}
		g.calls = lane[table.Call]{run: func(batch []table.Call) { s.call(g, batch) }, beside: &s.beside}
		g.chores = lane[chore]{run: s.do, beside: &s.beside}
		s.groups[n] = g
	}
	return g
}

// call makes calls of one group and puts their outcomes into the mailbox.
func (s *Shard) call(g *group, calls []table.Call) {
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	outcomes, errs := s.Tables.Do(ctx, calls)
	var failed error
	n := 0
	for _, err := range errs {
		if err != nil {
			failed = err
			n++
		}
	}
	s.Metrics.TableCalls.Add(int64(len(calls)))
	s.Metrics.TableFailed.Add(int64(n))
	switch {
	case s.ctx.Err() != nil:
		return
	case n == len(calls) && !g.down:
		g.down = true
		s.Log.Error("tables do not answer; types with a limit wait, others continue",
			"domain", calls[0].Domain, "domains", len(calls), "error", failed)
	case failed == nil && g.down:
		g.down = false
		s.Log.Info("the tables answer again", "domain", calls[0].Domain)
	}
	s.Put(func(in *match.Inputs) {
		for i := range calls {
			o := match.CallOutcome{Domain: calls[i].Domain, Failed: errs[i] != nil}
			if !o.Failed {
				o.Outcome = outcomes[i]
			}
			in.Outcomes = append(in.Outcomes, o)
		}
	})
}

// do carries out chores of one group, some at the same time, all within one timeout.
func (s *Shard) do(chores []chore) {
	ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	_ = parallel.Each(ctx, len(chores), choresAtOnce, func(ctx context.Context, i int) error {
		s.doOne(ctx, chores[i])
		return nil
	})
}

func (s *Shard) doOne(ctx context.Context, c chore) {
	if c.drop != "" {
		if err := s.Tables.Drop(ctx, c.domain, c.drop); err != nil {
			s.Log.Debug("delete a limit", "domain", c.domain, "limit", c.drop, "error", err)
		}
		return
	}
	opened, err := s.Tables.Open(ctx, c.domain)
	if err != nil {
		s.Log.Debug("open the tables of a domain", "domain", c.domain, "error", err)
	}
	s.Put(func(in *match.Inputs) {
		in.Opened = append(in.Opened, match.OpenOutcome{Domain: c.domain, Failed: err != nil, Opened: opened})
	})
}

// ask puts questions to one history partition, one after the other.
func (s *Shard) ask(asks []question.Question) {
	for _, a := range asks {
		out, err := s.History.Ask(s.ctx, a)
		if err != nil {
			s.Metrics.AsksFailed.Add(1)
			s.Log.Debug("ask history", "partition", a.Partition, "error", err)
			out = question.Answer{Failed: true}
			backoff.Sleep(s.ctx, askPause)
		}
		if s.ctx.Err() != nil {
			return
		}
		out.Question = a
		s.Put(func(in *match.Inputs) { in.Answers = append(in.Answers, out) })
	}
}
