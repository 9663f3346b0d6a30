package match

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
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
		s.fx.Answers = append(s.fx.Answers, Answer{Poll: m.ID, ReplyTo: m.ReplyTo, JSON: m.JSON})
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
	s.offer(p.List)
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
	case !s.drain.on && s.mayStillGet(p):
		p.List.overdue = append(p.List.overdue, p)
		s.polls.Look(p, p.Until+pollGrace)
	default:
		s.answer(p)
	}
}

// mayStillGet tells whether the table has yet to be asked for a poll, once.
func (s *Shard) mayStillGet(p *poll) bool {
	l := p.List
	if l.domain.state == opening {
		return !l.domain.down
	}
	if p.LookBy == 0 {
		p.LookBy = l.issued
		if l.dirty {
			p.LookBy++
		}
	}
	return l.done < p.LookBy && (l.dirty || l.asking)
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
	p.List.callAgain(s)
}

// answer ends a poll with what it was granted. A grant that does not fit into an answer is
// handed back.
func (s *Shard) answer(p *poll) {
	s.end(p)
	tasks := make([][]byte, 0, len(p.Granted))
	bytes, most := 0, pairing.AnswerBytes(p.JSON, s.cfg.AnswerBytesMax)
	kept := p.Granted[:0]
	for _, g := range p.Granted {
		if bytes+len(g.task) > most && len(tasks) > 0 {
			g.batch.takeBack(g.i, true)
			continue
		}
		bytes += len(g.task)
		tasks = append(tasks, g.task)
		kept = append(kept, g)
	}
	p.Granted = nil
	a := Answer{Poll: p.ID, ReplyTo: p.ReplyTo, JSON: p.JSON, Tasks: tasks}
	if len(tasks) > 0 {
		p.List.queue.Weigh(bytes, len(tasks))
		a.ID = s.answers.add(&sentAnswer{replyTo: p.ReplyTo, domain: p.List.Domain, json: p.JSON, grants: kept}, s.now.Mono)
	}
	s.fx.Answers = append(s.fx.Answers, a)
}

// bounced takes back what an answer held that was not delivered.
func (s *Shard) bounced(id uint64) {
	a := s.answers.byID[id]
	if a == nil || a.bounced {
		return
	}
	a.bounced = true
	s.fx.Counts.Bounced += int64(len(a.grants))
	for _, g := range a.grants {
		g.batch.takeBack(g.i, !a.confirmed)
	}
}

// givenUp takes back what was sent to an inbox of a domain whose poll was given up without an answer. A poll that waits still ends: the server may
// take what is sent there for delivered.
func (s *Shard) givenUp(inbox, domain string) {
	if p := s.polls.ByInbox(inbox); p != nil && p.List.domain.Name == domain {
		for _, g := range p.Granted {
			g.batch.takeBack(g.i, true)
		}
		s.fx.Counts.Bounced += int64(len(p.Granted))
		p.Granted = nil
		s.answer(p)
	}
	if a := s.answers.byInbox[inbox]; a != nil && a.domain == domain {
		s.bounced(a.id)
	}
}

// repeat sends again what may have been lost with the connection. A worker that has it ignores it. An undelivered repeat
// says nothing: a worker that has its tasks waits no more. An old grant is left to its deadline: a worker
// that gets it now would count from now, and the attempt may be another's before.
func (s *Shard) repeat() {
	for _, one := range s.answers.queue[s.answers.confirmed:] {
		if one.bounced || s.now.Mono-one.firstAt >= repeatWithin {
			continue
		}
		one.at = s.now.Mono
		s.fx.Answers = append(s.fx.Answers, one.again())
	}
}

// again is the answer as it is sent again: no one hears whether there was a subscriber.
func (a *sentAnswer) again() Answer {
	out := Answer{ReplyTo: a.replyTo, JSON: a.json}
	for _, g := range a.grants {
		if g.task != nil {
			out.Tasks = append(out.Tasks, g.task)
		}
	}
	return out
}

// again takes in what an owner before may have sent to an inbox, and returns it with the tasks that fit into an answer; nil if the inbox has been sent
// some: a second answer reaches no one.
func (a *answers) again(found *sentAnswer, bytesMax int, now time.Duration) *sentAnswer {
	if sent := a.byInbox[found.replyTo]; sent != nil {
		for _, g := range found.grants {
			g.task = nil
			if sent.grants = append(sent.grants, g); sent.bounced {
				g.batch.takeBack(g.i, true)
			}
		}
		return nil
	}
	bytes, most := 0, pairing.AnswerBytes(found.json, bytesMax)
	for i := range found.grants {
		g := &found.grants[i]
		if bytes += len(g.task); i > 0 && bytes > most {
			g.task = nil
		}
	}
	a.add(found, now)
	return found
}

// answers are those that held tasks, for as long as they may turn out to be bounced.
type answers struct {
	last uint64
	// proven is when the last round trip to the server began that has ended.
	proven time.Duration
	byID   map[uint64]*sentAnswer
	// byInbox has the last one of each inbox.
	byInbox map[string]*sentAnswer
	// queue is in the order of sending; the first forgotten of it are nil, those up to confirmed are confirmed.
	queue                []*sentAnswer
	forgotten, confirmed int
}

// sentAnswer is one of them.
type sentAnswer struct {
	id uint64
	// firstAt is when it was sent, at when last, or when the shard went on after a stop.
	firstAt, at time.Duration
	// replyTo, domain and json are its poll's. The grants have their tasks until it is confirmed, but for those of owners before that were not sent again.
	replyTo string
	domain  string
	json    bool
	grants  []grant
	// confirmed: it counts as received. bounced: there was no subscriber.
	confirmed, bounced bool
}

func (a *answers) add(one *sentAnswer, now time.Duration) uint64 {
	a.last++
	if a.last == 0 {
		a.last++
	}
	one.id, one.firstAt, one.at = a.last, now, now
	a.byID[one.id], a.byInbox[one.replyTo] = one, one
	a.queue = append(a.queue, one)
	return one.id
}

// stopped: the shard has heard nothing for long. The report that there was no subscriber may only come now.
func (a *answers) stopped(now time.Duration) {
	for _, one := range a.queue[a.confirmed:] {
		one.at = now
	}
}

// confirm counts as received what was sent long enough before a round trip to the server, which would have
// brought the word that there was no subscriber. It forgets what cannot be bounced any more.
func (a *answers) confirm(now time.Duration) {
	for ; a.confirmed < len(a.queue) && a.proven-a.queue[a.confirmed].at >= heardAfter; a.confirmed++ {
		one := a.queue[a.confirmed]
		one.confirmed = true
		for i := range one.grants {
			g := &one.grants[i]
			g.task = nil
			if !one.bounced {
				g.batch.unconfirmed--
			}
		}
	}
	for ; a.forgotten < a.confirmed && now-a.queue[a.forgotten].at >= bouncedWithin; a.forgotten++ {
		one := a.queue[a.forgotten]
		a.queue[a.forgotten] = nil
		delete(a.byID, one.id)
		if a.byInbox[one.replyTo] == one {
			delete(a.byInbox, one.replyTo)
		}
	}
	if a.forgotten > len(a.queue)/2 { // not at each: the queue is of seconds
		a.queue = slices.Delete(a.queue, 0, a.forgotten)
		a.confirmed -= a.forgotten
		a.forgotten = 0
	}
}

// unproven tells whether a round trip would confirm one.
func (a *answers) unproven(now time.Duration) bool {
	return a.confirmed < len(a.queue) && now-a.queue[a.confirmed].at >= heardAfter
}

// wake is when a round trip confirms the next one. Where one is under way, its end is a turn.
func (a *answers) wake(w, now time.Duration) time.Duration {
	if a.confirmed < len(a.queue) && !a.unproven(now) {
		w = min(w, a.queue[a.confirmed].at+heardAfter)
	}
	return w
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
