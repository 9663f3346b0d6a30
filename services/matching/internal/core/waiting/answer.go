package waiting

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
)

// answer ends a poll with what it was granted. A grant that does not fit into an answer is handed back.
func (s *Waiting[L]) answer(p *grab.Poll[L]) {
	s.End(p)
	a, back := s.answers.send(grab.Answer{Poll: p.ID, ReplyTo: p.ReplyTo, JSON: p.JSON}, p.Domain(), p.Granted, s.cfg.AnswerBytesMax)
	p.Granted = nil
	s.handBacks.TakeAllBack(back, true)
	if len(a.Tasks) > 0 {
		bytes := 0
		for _, task := range a.Tasks {
			bytes += len(task)
		}
		p.Weigh(bytes, len(a.Tasks))
	}
	s.out.Answers = append(s.out.Answers, a)
}

// bounced takes back what an answer contained that was not delivered.
func (s *Waiting[L]) bounced(back []grab.Grant, confirms bool) {
	s.counts.Bounced += int64(len(back))
	s.handBacks.TakeAllBack(back, confirms)
}

// Bounce takes back what an answer contained that was not delivered.
func (s *Waiting[L]) Bounce(id uint64) { s.bounced(s.answers.bounceID(id)) }

// GivenUp takes back what was sent to an inbox of a domain whose poll was given up without an answer. A poll that waits still ends: the server may
// take what is sent there for delivered.
func (s *Waiting[L]) GivenUp(inbox, domain string) {
	if p := s.polls.ByInbox(inbox); p != nil && p.Domain() == domain {
		s.bounced(p.Granted, true)
		p.Granted = nil
		s.answer(p)
	}
	s.bounced(s.answers.bounceOf(inbox, domain))
}

// Repeat sends the answers again that may have been lost with the connection.
func (s *Waiting[L]) Repeat() { s.out.Answers = append(s.out.Answers, s.answers.repeat()...) }

// Prove notes when a round trip to the server began that has ended.
func (s *Waiting[L]) Prove(began time.Duration) {
	s.answers.proven = max(s.answers.proven, began)
}

// Proven is when the last round trip to the server began that has ended.
func (s *Waiting[L]) Proven() time.Duration { return s.answers.proven }

// Confirm counts as received what a round trip has proven. It reports whether another one would confirm more.
func (s *Waiting[L]) Confirm() (unproven bool) {
	s.answers.confirm()
	return s.answers.unproven()
}

// Find takes in a grant of an owner before, which may not have been received.
func (s *Waiting[L]) Find(g *grab.Undelivered, grant grab.Grant) { s.answers.find(g, grant) }

// Redeliver sends again what owners before may not have sent, each inbox once.
func (s *Waiting[L]) Redeliver() {
	again, back := s.answers.redeliver(s.cfg.AnswerBytesMax)
	s.out.Answers = append(s.out.Answers, again...)
	s.handBacks.TakeAllBack(back, true)
}
