package match

import (
	"math/rand/v2"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/dealing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// New returns the shard of a new owner. Its first step fences.
func New(cfg Config, catalog Catalog, now Now) *Shard {
	s := &Shard{
		cfg: cfg, catalog: catalog, now: now, dice: rand.New(rand.NewPCG(cfg.Seed, cfg.Epoch)),
		domains: map[string]*domain{}, lists: map[table.Tasklist]*list{},
		questions: question.New(cfg.Partitions),
	}
	s.limits = limit.New(catalog, cfg.Partitions)
	s.waiting = waiting.New[*list](waiting.Config{PollsMax: cfg.PollsMax, AnswerBytesMax: cfg.AnswerBytesMax}, s.dice.Uint64(), now.Mono, &s.grabs)
	s.grabs = grab.New[*list](grab.Config{
		Partitions: cfg.Partitions, InFlightMax: cfg.GrabsInFlight, EventsMax: cfg.GrabEventsMax, AnswerBytesMax: cfg.AnswerBytesMax, Nonce: s.dice.Uint64,
	})
	s.calls = tablecall.NewCalls(tablecall.Config[*list]{
		Shard: cfg.Shard, Shards: cfg.Shards, Epoch: cfg.Epoch, AnswerBytesMax: cfg.AnswerBytesMax, PopMax: cfg.PopMax,
		Strict: catalog.Strict, Last: s.waiting.Last, Retrigger: s.questions.RetriggerAll, Policies: &s.policies,
		Of: func(l *limit.List) *source { return &listOf(l).source }, Source: (*list).Source,
	}, &s.limits, &s.arrivals)
	s.dealing = dealing.New(dealing.Config[*list]{
		AnswerBytesMax: cfg.AnswerBytesMax, Find: s.list, Source: (*list).Source, Tables: (*list).Tables,
		Retrigger: func(partition int) { s.questions.Retrigger(partition, "") },
	}, dealing.Rooms[*list]{Grabs: &s.grabs, Arrivals: &s.arrivals, Limits: &s.limits, Waiting: &s.waiting, Calls: &s.calls})
	s.policies = overflow.Turn{Polled: func(l *limit.List, typ string) bool { return listOf(l).polledFor(typ) }, Add: s.dealing.AddStop}
	return s
}

// Step is one turn. fx is emptied first; it is good until the next step.
func (s *Shard) Step(in *Inputs, now Now, fx *Effects) {
	fx.reset()
	s.now, s.fx = now, fx
	s.waiting.Begin(now.Mono, &fx.Replies, &fx.Counts.PollCounts)
	s.tree.Begin(now.Mono, &fx.Reports)
	s.grabs.Begin(now.Mono, &fx.Effects, &fx.Counts.Counts)
	s.limits.Begin(now.Mono, now.MS)
	s.arrivals.Begin(&fx.Acks)
	s.calls.Begin(now.Mono, &fx.Requests, &fx.Counts.CallCounts)
	s.dealing.Begin(now.Mono, &fx.Counts.DealCounts)
	s.policies.Now, s.policies.MS = now.Mono, now.MS
	s.unmoved(in.Unmoved)
	if s.overtaken || s.drain.done {
		s.ended(in)
		return
	}
	s.begin()
	s.learn(in)
	if s.overtaken { // a newer owner serves the shard
		fx.Overtaken, fx.Wake = true, now.Mono+idleAfter
		return
	}
	s.hear(in)
	s.dealing.Listen()
	s.waiting.Finish()
	for i := range in.Branches {
		s.heard(&in.Branches[i])
	}
	for i := range in.Polls {
		s.arrivePoll(&in.Polls[i])
	}
	if in.Drain {
		s.leave()
	}
	s.act()
	s.conclude(in)
}

// hear takes in what was said to the shard.
func (s *Shard) hear(in *Inputs) {
	s.waiting.Prove(in.Proven)
	for _, id := range in.Bounced {
		s.waiting.Bounce(id)
	}
	if in.Broke {
		s.waiting.Repeat()
	}
	for _, g := range in.GivenUp {
		for _, inbox := range g.Inboxes {
			s.waiting.GivenUp(inbox, g.Domain)
		}
	}
	s.waiting.Silence(in.Silent)
	for _, h := range in.Freed {
		for _, ref := range h.Limits {
			if d := s.domains[h.Domain]; d != nil {
				d.Domain.Freed(ref)
			}
		}
	}
	for _, h := range in.Restore {
		if d, _ := s.limited(h.Domain); d != nil {
			for _, ref := range h.Limits {
				d.Restore(ref)
			}
		}
	}
	for i := range in.Hints {
		s.arrive(&in.Hints[i])
	}
	if in.HintsLost || in.ReleasesLost { // slots whose release may have been lost are looked for
		for _, d := range s.inOrder {
			d.AuditNow(s.now.Mono)
		}
		s.sweepAt = s.now.Mono
	}
	if in.HintsLost {
		s.questions.RetriggerAll("")
	}
}

// act is matching, and what comes of it.
func (s *Shard) act() {
	s.dealing.Match()
	if s.now.Mono >= s.sweepAt {
		s.sweep()
	}
	s.limits.Ripen()
	s.passAll()
	s.calls.CallAll()
	s.dealing.End(s.grabs.Send())
	s.waiting.Expire()
	s.waiting.Finish()
	s.tree.ReportAll()
	s.redeliver()
	s.fx.Prove = s.waiting.Confirm()
	s.dealing.HandOver()
	s.fx.Asks = s.questions.Due(s.now.Mono, s.grabs.MayAsk, s.fx.Asks) // counts must be asked for behind the fence
	s.drained()
}

// learn takes in what is known again, and what history decided.
func (s *Shard) learn(in *Inputs) {
	for _, name := range in.Limits {
		s.limitsChanged(name)
	}
	for i := range in.Outcomes {
		s.called(&in.Outcomes[i])
	}
	for i := range in.Opened {
		s.opened(&in.Opened[i])
	}
	for i := range in.Answers {
		s.answered(&in.Answers[i])
	}
	for i := range in.Verdicts {
		s.overtaken = s.dealing.Decide(&in.Verdicts[i]) || s.overtaken
	}
}

// reset empties fx and keeps its memory.
func (fx *Effects) reset() {
	fx.Replies.Reset()
	fx.Requests.Reset()
	fx.Effects.Reset()
	fx.Reports.Reset()
	*fx = Effects{
		Replies: fx.Replies, Effects: fx.Effects, Reports: fx.Reports, Requests: fx.Requests,
		Drops: fx.Drops[:0], Asks: fx.Asks[:0], Freed: fx.Freed[:0], Restore: fx.Restore[:0],
		Hungry: fx.Hungry[:0], Acks: fx.Acks[:0],
	}
}
