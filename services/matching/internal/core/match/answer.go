package match

import (
	"cmp"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
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
	p.by = s.pollers.Saw(report.Poll{Domain: m.Domain, Tasklist: m.Tasklist, Worker: m.Worker, Version: m.Version, Types: p.types}, s.now.Mono)
	if !l.join(p) {
		s.fx.Counts.PollsRefused++
		s.refuse(m, fault.ResourceExhausted, "the polls that wait name too many different sets of types", time.Second)
		return
	}
	s.polls.add(p)
	l.queue.add(p)
	s.mark(l)
	s.watchMove(p)
}

// hasRoom tells whether one more poll of a domain may wait (I14): the last quarter of the places is
// for domains that have a sixteenth of them at most, as in shared/admission.
func (s *Shard) hasRoom(name string) bool {
	mine, most := 1, s.cfg.PollsMax
	if d := s.domains[name]; d != nil {
		mine += d.alive
	}
	all := s.polls.alive + 1
	return all <= most-most/4 || all <= most && mine <= max(most/16, 1)
}

func (s *Shard) refuse(m *Poll, code fault.Code, why string, after time.Duration) {
	s.fx.Refusals = append(s.fx.Refusals, Refusal{Poll: m.ID, ReplyTo: m.ReplyTo, Code: string(code), Message: why, RetryAfter: after})
}

func (s *Shard) touch(p *poll) {
	if !p.touched && !p.answered {
		p.touched = true
		s.touched = append(s.touched, p)
	}
}

// finishPolls looks at polls whose grabs have all been decided, or are not waited for.
func (s *Shard) finishPolls() {
	for _, p := range s.touched {
		p.touched = false
		switch {
		case p.answered || p.pending > 0:
		case len(p.granted) > 0 || s.drain.on:
			s.answer(p)
		case p.until > s.now.Mono:
			s.waitOn(p)
		case p.rounds < wastedRounds: // a last look at the table, then it ends
			p.rounds++
			s.waitOn(p)
			s.polls.look(p, s.now.Mono)
		default:
			s.answer(p)
		}
	}
	clear(s.touched)
	s.touched = s.touched[:0]
}

// waitOn puts a poll that got nothing back into its place.
func (s *Shard) waitOn(p *poll) {
	p.lookBy, p.asked = 0, 0
	p.list.queue.add(p)
	s.mark(p.list)
	s.offer(p.list)
}

// expirePolls looks at the polls whose time is over.
func (s *Shard) expirePolls() {
	for {
		p, ok := s.polls.next()
		if !ok || p.at > s.now.Mono {
			return
		}
		s.expire(p)
	}
}

// expire looks at a poll whose time is over. Grants that it has wait for the verdicts on its other grabs, unless those are silent (silence).
func (s *Shard) expire(p *poll) {
	if s.moveUp(p) {
		return
	}
	switch {
	case s.now.Mono >= p.until+pollGrace:
		s.answer(p)
	case p.pending > 0:
		s.polls.look(p, p.until+pollGrace)
	case !s.drain.on && s.mayStillGet(p):
		p.list.overdue = append(p.list.overdue, p)
		s.polls.look(p, p.until+pollGrace)
	default:
		s.answer(p)
	}
}

// mayStillGet tells whether the table has yet to be asked for a poll, once.
func (s *Shard) mayStillGet(p *poll) bool {
	l := p.list
	if l.domain.state == opening {
		return !l.domain.down
	}
	if p.lookBy == 0 {
		p.lookBy = l.issued
		if l.dirty {
			p.lookBy++
		}
	}
	return l.done < p.lookBy && (l.dirty || l.asking)
}

// reconsider has the polls looked at that waited for a last look at the table.
func (s *Shard) reconsider(l *list) {
	for _, p := range l.overdue {
		if !p.answered {
			s.polls.look(p, s.now.Mono)
		}
	}
	clear(l.overdue)
	l.overdue = l.overdue[:0]
}

// end forgets a poll that is about to be answered, or given up.
func (s *Shard) end(p *poll) {
	p.list.queue.remove(p)
	p.list.leave(p)
	s.polls.remove(p)
	p.answered = true
	p.list.callAgain(s)
}

// answer ends a poll with what it was granted. A grant that does not fit into an answer is
// handed back.
func (s *Shard) answer(p *poll) {
	s.end(p)
	tasks := make([][]byte, 0, len(p.granted))
	bytes, most := 0, answerBytes(p.json, s.cfg.AnswerBytesMax)
	kept := p.granted[:0]
	for _, g := range p.granted {
		if bytes+len(g.task) > most && len(tasks) > 0 {
			g.batch.takeBack(g.i, true)
			continue
		}
		bytes += len(g.task)
		tasks = append(tasks, g.task)
		kept = append(kept, g)
	}
	p.granted = nil
	a := Answer{Poll: p.id, ReplyTo: p.replyTo, JSON: p.json, Tasks: tasks}
	if len(tasks) > 0 {
		p.list.weigh(bytes, len(tasks))
		a.ID = s.answers.add(&sentAnswer{replyTo: p.replyTo, domain: p.list.Domain, json: p.json, grants: kept}, s.now.Mono)
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
	if p := s.polls.byInbox[inbox]; p != nil && p.list.domain.name == domain {
		for _, g := range p.granted {
			g.batch.takeBack(g.i, true)
		}
		s.fx.Counts.Bounced += int64(len(p.granted))
		p.granted = nil
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
	bytes, most := 0, answerBytes(found.json, bytesMax)
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
	for _, p := range s.polls.due.All() {
		if p.workerID != "" && silent[SilentWorker{p.list.Domain, p.workerID}] {
			ended = append(ended, p)
		}
	}
	slices.SortFunc(ended, func(a, b *poll) int { return cmp.Compare(a.order, b.order) })
	for _, p := range ended {
		s.answer(p)
	}
}
