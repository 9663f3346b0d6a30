package waiting

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
)

// Times, on the clock of the turn.
const (
	// StoppedAfter is after how long without a turn a shard was stopped: while an answer may not have been received,
	// it takes one within grab.HeardAfter.
	StoppedAfter = 2 * grab.HeardAfter
	// BouncedWithin is for how long an answer may turn out to be undelivered: a worker may take seconds to
	// find out that its connection is dead.
	BouncedWithin = 10 * time.Second
)

// answers are those with tasks, for as long as they may turn out to be undelivered.
type answers struct {
	lastID uint64
	// proven is when the last round trip to the server began that has ended.
	proven time.Duration
	byID   map[uint64]*sent
	// byInbox has the last one of each inbox.
	byInbox map[string]*sent
	// queue is in the order of sending; the first forgotten of it are nil, those up to confirmed are confirmed.
	queue                []*sent
	forgotten, confirmed int
	// found are grants of owners before, by inbox; order is that of the inboxes.
	found map[string]*sent
	order []string
}

// sent is one of them.
type sent struct {
	id uint64
	// firstAt is when it was sent, at when last, or when the shard went on after a stop.
	firstAt, at time.Duration
	// replyTo, domain and json are its poll's. The grants have their tasks until it is confirmed, but for those of owners before that were not sent again.
	replyTo string
	domain  string
	json    bool
	grants  []grab.Grant
	// confirmed: it counts as received. bounced: there was no subscriber.
	confirmed, bounced bool
}

// unconfirmed reports whether an answer does not count as received yet.
func (a *answers) unconfirmed() bool { return a.confirmed < len(a.queue) }

// answer ends a poll with what it was granted, as far as that fits. A grant that does not is handed back.
func (s *Waiting[L]) answer(p *grab.Poll[L]) {
	s.End(p)
	out := grab.Answer{Poll: p.ID, ReplyTo: p.ReplyTo, JSON: p.JSON, Tasks: make([][]byte, 0, len(p.Granted))}
	bytes, most := 0, pairing.AnswerBytes(out.JSON, s.cfg.AnswerBytesMax)
	kept, back := p.Granted[:0], []grab.Grant(nil)
	for _, g := range p.Granted {
		if bytes+len(g.Task) > most && len(out.Tasks) > 0 {
			back = append(back, g)
			continue
		}
		bytes += len(g.Task)
		out.Tasks, kept = append(out.Tasks, g.Task), append(kept, g)
	}
	p.Granted = nil
	s.handBacks.TakeAllBack(back, true)
	if len(kept) > 0 {
		out.ID = s.remember(&sent{replyTo: out.ReplyTo, domain: p.Domain(), json: out.JSON, grants: kept})
		p.Weigh(bytes, len(kept))
	}
	s.out.Answers = append(s.out.Answers, out)
}

// remember numbers an answer.
func (s *Waiting[L]) remember(one *sent) uint64 {
	s.lastID = max(s.lastID+1, 1)
	one.id, one.firstAt, one.at = s.lastID, s.now, s.now
	s.byID[one.id], s.byInbox[one.replyTo] = one, one
	s.queue = append(s.queue, one)
	return one.id
}

// Bounce takes back what an answer contained that was not delivered.
func (s *Waiting[L]) Bounce(id uint64) { s.bounce(s.byID[id]) }

func (s *Waiting[L]) bounce(one *sent) {
	if one != nil && !one.bounced {
		one.bounced = true
		s.takeBack(one.grants, !one.confirmed)
	}
}

// takeBack hands back what was not delivered. confirms: that confirms it.
func (s *Waiting[L]) takeBack(all []grab.Grant, confirms bool) {
	s.counts.Bounced += int64(len(all))
	s.handBacks.TakeAllBack(all, confirms)
}

// GivenUp takes back what was sent to an inbox of a domain whose poll was given up without an answer. A poll that waits still ends: the server may
// take what is sent there for delivered.
func (s *Waiting[L]) GivenUp(inbox, domain string) {
	if p := s.polls.ByInbox(inbox); p != nil && p.Domain() == domain {
		s.takeBack(p.Granted, true)
		p.Granted = nil
		s.answer(p)
	}
	if one := s.byInbox[inbox]; one != nil && one.domain == domain {
		s.bounce(one)
	}
}

// Repeat sends the answers again that may have been lost with the connection. A worker that has one ignores it. An undelivered repeat
// says nothing: a worker that has its tasks waits no more. An old grant is left to its deadline: a worker
// that gets it now would count from now, and the attempt may be another's before.
func (s *Waiting[L]) Repeat() {
	for _, one := range s.queue[s.confirmed:] {
		if !one.bounced && s.now-one.firstAt < grab.RepeatWithin {
			one.at = s.now
			s.sendAgain(one)
		}
	}
}

// sendAgain sends an answer again: no one hears whether there was a subscriber.
func (s *Waiting[L]) sendAgain(one *sent) {
	out := grab.Answer{ReplyTo: one.replyTo, JSON: one.json}
	for _, g := range one.grants {
		if g.Task != nil {
			out.Tasks = append(out.Tasks, g.Task)
		}
	}
	s.out.Answers = append(s.out.Answers, out)
}

// Find takes in a grant of an owner before, which may not have been received. An inbox gets no more tasks than its poll takes: the owner before may have
// been granted more, and handed back what was too much.
func (s *Waiting[L]) Find(g *grab.Undelivered, grant grab.Grant) {
	one := s.found[g.ReplyTo]
	if one == nil {
		one = &sent{replyTo: g.ReplyTo, domain: g.Domain, json: g.JSON}
		s.found[g.ReplyTo] = one
		s.order = append(s.order, g.ReplyTo)
	}
	if len(one.grants) >= g.Max {
		grant.Task = nil
	}
	one.grants = append(one.grants, grant)
}

// Redeliver sends again what owners before may not have sent, each inbox once. A worker that has the tasks ignores them. So an undelivered repeat
// says nothing, but an inbox whose worker says that it has got nothing is known: all of its grants are handed back, at once if that is known already.
func (s *Waiting[L]) Redeliver() {
	for _, inbox := range s.order {
		found := s.found[inbox]
		if one := s.byInbox[inbox]; one != nil { // a second answer reaches no worker
			for _, g := range found.grants {
				g.Task = nil
				if one.grants = append(one.grants, g); one.bounced {
					s.handBacks.TakeAllBack([]grab.Grant{g}, true)
				}
			}
			continue
		}
		bytes, most := 0, pairing.AnswerBytes(found.json, s.cfg.AnswerBytesMax)
		for i := range found.grants {
			g := &found.grants[i]
			if bytes += len(g.Task); i > 0 && bytes > most {
				g.Task = nil
			}
		}
		s.remember(found)
		s.sendAgain(found)
	}
	clear(s.found)
	s.order = nil
}

// Prove notes when a round trip to the server began that has ended.
func (s *Waiting[L]) Prove(began time.Duration) { s.proven = max(s.proven, began) }

// Confirm counts as received what was sent long enough before a round trip to the server, which would have brought the report that there was no
// subscriber. It forgets what cannot be undelivered any more, and reports whether another round trip would confirm more.
func (s *Waiting[L]) Confirm() (unproven bool) {
	a := &s.answers
	for ; a.unconfirmed() && a.proven-a.queue[a.confirmed].at >= grab.HeardAfter; a.confirmed++ {
		one := a.queue[a.confirmed]
		one.confirmed = true
		for i := range one.grants {
			g := &one.grants[i]
			g.Task = nil
			if !one.bounced {
				g.Received()
			}
		}
	}
	for ; a.forgotten < a.confirmed && s.now-a.queue[a.forgotten].at >= BouncedWithin; a.forgotten++ {
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
	return a.unconfirmed() && s.now >= a.provableAt()
}

// provableAt is when a round trip confirms the next one.
func (a *answers) provableAt() time.Duration { return a.queue[a.confirmed].at + grab.HeardAfter }
