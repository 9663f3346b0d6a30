package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
)

// arrivePoll queues a poll or refuses it.
func (s *Shard) arrivePoll(m *Poll) {
	if !m.Moved {
		s.fx.Counts.Polls++
	}
	for _, inbox := range m.Unanswered {
		s.givenUp(inbox, m.Domain)
	}
	switch {
	case s.drain.on:
		s.fx.Answers = append(s.fx.Answers, grab.Answer{Poll: m.ID, ReplyTo: m.ReplyTo, JSON: m.JSON})
		return
	case m.Domain == "" || m.Tasklist == "" || m.Max < 1 || m.Partition < 0 || m.Partition >= ids.PartitionsMax:
		s.refuse(m, fault.InvalidArgument, "a poll needs a domain, a tasklist with its partition, and max_tasks", 0)
		return
	case !s.hasRoom(m.Domain):
		s.fx.Counts.PollsRefused++
		s.refuse(m, fault.ResourceExhausted, "too many polls wait", time.Second)
		return
	}
	l := s.list(table.Tasklist{Domain: m.Domain, Name: m.Tasklist, Partition: m.Partition})
	p := newPoll(l, m, s.now.Mono)
	p.By = s.pollers.Saw(report.Poll{Domain: m.Domain, Tasklist: m.Tasklist, Worker: m.Worker, Version: m.Version, Types: p.Types}, s.now.Mono)
	if !l.queue.Join(p) {
		s.fx.Counts.PollsRefused++
		s.refuse(m, fault.ResourceExhausted, "the polls that wait name too many different sets of types", time.Second)
		return
	}
	p.By.Wait(1)
	s.polls.Add(p)
	l.queue.Add(p)
	s.mark(l)
	s.watchMove(p)
}

// hasRoom reports whether one more poll of a domain may wait.
func (s *Shard) hasRoom(name string) bool {
	if d := s.domains[name]; d != nil {
		return s.polls.HasRoom(&d.polls, s.cfg.PollsMax)
	}
	return s.polls.HasRoom(nil, s.cfg.PollsMax)
}

func (s *Shard) refuse(m *Poll, code fault.Code, why string, after time.Duration) {
	s.fx.Refusals = append(s.fx.Refusals, Refusal{Poll: m.ID, ReplyTo: m.ReplyTo, Code: string(code), Message: why, RetryAfter: after})
}

// finishPolls looks at polls whose grabs have all been decided, or are not waited for.
func (s *Shard) finishPolls() {
	s.polls.EachTouched(func(p *poll) {
		switch {
		case p.Answered || p.Pending > 0:
		case len(p.Granted) > 0 || s.drain.on:
			s.answer(p)
		case p.Until > s.now.Mono:
			s.waitOn(p)
		case p.Rounds < wastedRounds: // a last look at the table, then it ends
			p.Rounds++
			s.waitOn(p)
			s.polls.Look(p, s.now.Mono)
		default:
			s.answer(p)
		}
	})
}

// waitOn puts a poll that got nothing back into its place.
func (s *Shard) waitOn(p *poll) {
	p.LookBy, p.Asked = 0, 0
	p.List.queue.Add(p)
	s.mark(p.List)
	s.tree.Offer(&p.List.node)
}

// expirePolls looks at the polls that have waited for long enough.
func (s *Shard) expirePolls() {
	for {
		p, ok := s.polls.Next()
		if !ok || p.At() > s.now.Mono {
			return
		}
		s.expire(p)
	}
}

// expire looks at a poll whose time is over, or whose first grant has waited for the verdicts on its other grabs for long enough. Those of a silent
// partition are not waited for (silence).
func (s *Shard) expire(p *poll) {
	if s.moveUp(p) {
		return
	}
	switch {
	case s.now.Mono >= p.Until+pollGrace, len(p.Granted) > 0:
		s.answer(p)
	case p.Pending > 0:
		s.polls.Look(p, p.Until+pollGrace)
	case !s.drain.on && p.List.source.MayStillGet(p):
		p.List.overdue = append(p.List.overdue, p)
		s.polls.Look(p, p.Until+pollGrace)
	default:
		s.answer(p)
	}
}

// reconsider has the polls looked at that waited for a last look at the table, and for nothing else.
func (s *Shard) reconsider(l *list) {
	for _, p := range l.overdue {
		if !p.Answered && p.Pending == 0 {
			s.polls.Look(p, s.now.Mono)
		}
	}
	clear(l.overdue)
	l.overdue = l.overdue[:0]
}

// end forgets a poll that is about to be answered, or given up.
func (s *Shard) end(p *poll) {
	p.List.queue.Remove(p)
	p.List.queue.Leave(p)
	p.By.Wait(-1)
	s.polls.Remove(p)
	s.tree.CallAgain(&p.List.node, func() tree.Shape { return s.shape(p.List) })
}

// answer ends a poll with what it was granted. A grant that does not fit into an answer is
// handed back.
func (s *Shard) answer(p *poll) {
	s.end(p)
	a, back := s.answers.Send(grab.Answer{Poll: p.ID, ReplyTo: p.ReplyTo, JSON: p.JSON}, p.List.Domain, p.Granted, s.cfg.AnswerBytesMax)
	p.Granted = nil
	s.grabs.TakeAllBack(back, true)
	if len(a.Tasks) > 0 {
		bytes := 0
		for _, task := range a.Tasks {
			bytes += len(task)
		}
		p.List.queue.Weigh(bytes, len(a.Tasks))
	}
	s.fx.Answers = append(s.fx.Answers, a)
}

// bounced takes back what an answer held that was not delivered.
func (s *Shard) bounced(back []grab.Grant, confirms bool) {
	s.fx.Counts.Bounced += int64(len(back))
	s.grabs.TakeAllBack(back, confirms)
}

// givenUp takes back what was sent to an inbox of a domain whose poll was given up without an answer. A poll that waits still ends: the server may
// take what is sent there for delivered.
func (s *Shard) givenUp(inbox, domain string) {
	if p := s.polls.ByInbox(inbox); p != nil && p.List.domain.Name == domain {
		s.bounced(p.Granted, true)
		p.Granted = nil
		s.answer(p)
	}
	s.bounced(s.answers.BounceOf(inbox, domain))
}

// fellSilent ends the polls of workers that send no more signs of life, so that no more tasks are granted to them. One whose grabs are under
// way is answered, too: what they bring is handed back. A worker that lives polls again.
func (s *Shard) fellSilent(all []SilentWorker) {
	if len(all) == 0 {
		return
	}
	silent := make(map[SilentWorker]bool, len(all))
	for _, w := range all {
		silent[w] = true
	}
	var ended []*poll
	for _, p := range s.polls.All() {
		if p.WorkerID != "" && silent[SilentWorker{p.List.Domain, p.WorkerID}] {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, func(a, b *poll) int { return pairing.Compare(a, b) })
	for _, p := range ended {
		s.answer(p)
	}
}

func newPoll(l *list, m *Poll, now time.Duration) *poll {
	p := &poll{
		ID: m.ID, List: l, Max: m.Max, Worker: m.Worker, WorkerID: m.WorkerID, ReplyTo: m.ReplyTo, JSON: m.JSON,
		Moved: m.Moved, Back: m.Back, Since: now, Until: now + max(0, m.For),
	}
	p.Accept(m.Types)
	return p
}
