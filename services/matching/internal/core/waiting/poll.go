package waiting

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
)

// Poll is a worker's poll.
type Poll struct {
	// ID names it in its answer or refusal: polls may share an inbox. 0 where no one asks.
	ID               uint64
	Domain, Tasklist string
	// Partition of the tasklist, 0..63. Moved: another one had it before.
	Partition int
	Moved     bool
	// Back: no one serves where it was to go; it waits here for a while.
	Back bool
	Max  int
	// Types that it accepts; empty = all.
	Types []string
	// Worker and Version are for people.
	Worker, Version string
	// WorkerID is that of its worker's signs of life; empty = it sends none.
	WorkerID string
	ReplyTo  string
	JSON     bool
	// For is how long it may wait, from the step that takes it in.
	For time.Duration
}

// GivenUp are inboxes of a domain.
type GivenUp struct {
	Domain  string
	Inboxes []string
}

// SilentWorker names a worker by the id of its signs of life.
type SilentWorker struct{ Domain, ID string }

// Refusal ends a poll that was not taken.
type Refusal struct {
	// Poll is the poll's ID.
	Poll    uint64
	ReplyTo string
	Why     *fault.Error
}

// Replies go to polls.
type Replies struct {
	Answers  []grab.Answer
	Refusals []Refusal
}

// Reset empties replies and keeps their memory.
func (r *Replies) Reset() {
	clear(r.Answers)
	*r = Replies{Answers: r.Answers[:0], Refusals: r.Refusals[:0]}
}

// PollCounts is what a turn has done with polls, for metrics.
type PollCounts struct {
	Polls, PollsRefused int64
	// Bounced counts attempts whose answers were not delivered, PollsUp polls that were given up to the parent of a partition.
	Bounced, PollsUp int64
}

// wellFormed reports whether a poll names a partition of a tasklist, and takes tasks.
func (m *Poll) wellFormed() bool {
	return m.Domain != "" && m.Tasklist != "" && m.Max >= 1 && m.Partition >= 0 && m.Partition < ids.PartitionsMax
}

// Empty is the answer that the wait of a poll is over.
func (m *Poll) Empty() grab.Answer { return grab.Answer{Poll: m.ID, ReplyTo: m.ReplyTo, JSON: m.JSON} }

// Admit counts a poll that arrives. It returns false if the poll may not wait: then it is answered or refused. d counts the polls of its
// domain; nil = there are none.
func (s *Waiting[L]) Admit(m *Poll, d *pairing.Domain) bool {
	if !m.Moved {
		s.counts.Polls++
	}
	switch {
	case s.leaving:
		s.out.Answers = append(s.out.Answers, m.Empty())
	case !m.wellFormed():
		s.refuse(m, fault.New(fault.InvalidArgument, "a poll needs a domain, a tasklist with its partition, and max_tasks"))
	case !s.polls.HasRoom(d, s.cfg.PollsMax):
		s.full(m, "too many polls wait")
	default:
		return true
	}
	return false
}

// Add has a poll wait at its tasklist, whose queue is q, or refuses it.
func (s *Waiting[L]) Add(m *Poll, l L, q *pairing.Queue[L, grab.Grant]) {
	p := &grab.Poll[L]{
		ID: m.ID, List: l, Max: m.Max, Worker: m.Worker, WorkerID: m.WorkerID, ReplyTo: m.ReplyTo, JSON: m.JSON,
		Moved: m.Moved, Back: m.Back, Since: s.now, Until: s.now + max(0, m.For),
	}
	p.Accept(m.Types)
	p.By = s.pollers.Saw(report.Poll{Domain: m.Domain, Tasklist: m.Tasklist, Worker: m.Worker, Version: m.Version, Types: p.Types}, s.now)
	if !q.Join(p) {
		s.full(m, "the polls that wait name too many different sets of types")
		return
	}
	p.By.Wait(1)
	s.polls.Add(p)
	p.EnterLine()
	if m.Partition > 0 && p.ID != 0 { // it may go to the parent partition in this turn
		s.polls.Look(p, min(p.Until, s.now))
	}
	l.Resume()
}

// full refuses a poll for which there is no place.
func (s *Waiting[L]) full(m *Poll, why string) {
	s.counts.PollsRefused++
	s.refuse(m, fault.New(fault.ResourceExhausted, "%s", why).After(time.Second))
}

func (s *Waiting[L]) refuse(m *Poll, why *fault.Error) {
	s.out.Refusals = append(s.out.Refusals, Refusal{Poll: m.ID, ReplyTo: m.ReplyTo, Why: why})
}
