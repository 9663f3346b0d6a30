package question

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
)

// Kind tells the questions apart.
type Kind uint8

// The questions.
const (
	// Bookings: the attempts of the shard that use slots, of all domains.
	Bookings Kind = iota + 1
	// Undelivered: grants of the shard's owners before this one that may not have reached their polls. It is asked once the fence is in the log.
	Undelivered
	// Running: all running attempts of Types of Domain, of the shard; of all types where it names none.
	Running
	// Retrigger: have all triggers of the shard sent again, of Domain or of all domains.
	Retrigger
	// Holders: of limits, the attempts of all shards that use slots for the longest, and how many tasks wait.
	Holders
)

// Question is one to a history partition.
type Question struct {
	// ID names it in its answer.
	ID        uint64
	Kind      Kind
	Partition int
	Domain    string
	Types     []string
	Holders   []overflow.Query
}

// Answer is what history answered, all pages of it.
type Answer struct {
	Question Question
	// Failed: the partition gave no answer; ask again.
	Failed bool
	// Running are attempts that run (Bookings, Running). Superseded: a newer owner has fenced this one.
	Running    []limit.Running
	Superseded bool
	// Undelivered are grants of owners before (Undelivered).
	Undelivered []grab.Undelivered
	// Holders are by Question.Holders (Holders).
	Holders []overflow.Holders
}

// asked is a question with what the shard remembers of it.
type asked struct {
	Question
	// count is that of Running, round that of Holders.
	count *limit.Audit
	round *overflow.Round
	// after is the last batch of grabs that must be decided before: it may hold tasks of groups that are not known.
	after uint64
	// askedAt is when it was asked, dueAt when it may be asked again.
	askedAt, dueAt time.Duration
	// again: it came up again while it was under way.
	again bool
}

// place is a domain in a partition.
type place struct {
	kind      Kind
	partition int
	domain    string
}

func (q *asked) place() place { return place{q.Kind, q.Partition, q.Domain} }

const (
	// RetryEvery is when a question is asked again that a partition did not answer.
	RetryEvery = 250 * time.Millisecond
	// A question that comes up again while it is asked waits for AgainRest times as long as that took, and AgainRestMax at most: all
	// triggers of a domain are sent again, for one that pauses and resumes its groups over and over, and history has those of others to
	// see to (I14).
	AgainRest    = 3
	AgainRestMax = 5 * time.Second
)

// Questions are those that are not answered. Use New.
type Questions struct {
	partitions int
	last       uint64
	// open are those under way by ID, waiting those to be asked.
	open    map[uint64]*asked
	waiting []*asked
	// retriggers are those of which there is one of a partition and domain, counting the places of which a count is under way.
	retriggers map[place]*asked
	counting   map[place]bool
	// undelivered counts partitions that have not answered what is to be sent again.
	undelivered int
}

// New returns no questions to some partitions.
func New(partitions int) Questions {
	return Questions{partitions: partitions, open: map[uint64]*asked{}, retriggers: map[place]*asked{}, counting: map[place]bool{}}
}

// Len counts the questions that are not answered.
func (s *Questions) Len() int { return len(s.open) + len(s.waiting) }

// Start has all partitions asked for what owners before have left.
func (s *Questions) Start() {
	s.undelivered = s.partitions
	for p := range s.partitions {
		s.add(asked{Question: Question{Kind: Bookings, Partition: p}})
		s.add(asked{Question: Question{Kind: Undelivered, Partition: p}})
	}
}

// Undelivered counts the partitions that have not answered what is to be sent again.
func (s *Questions) Undelivered() int { return s.undelivered }

// RetriggerAll has the triggers of a domain sent again by all partitions, or of all domains.
func (s *Questions) RetriggerAll(domain string) {
	for p := range s.partitions {
		s.Retrigger(p, domain)
	}
}

// Retrigger does so with one partition. If it is asked for that already, it is asked again: what is under way may have come too early.
func (s *Questions) Retrigger(partition int, domain string) {
	q := Question{Kind: Retrigger, Partition: partition, Domain: domain}
	at := place{Retrigger, partition, domain}
	if same := s.retriggers[at]; same != nil {
		same.again = true
		return
	}
	s.retriggers[at] = s.add(asked{Question: q})
}

// Count asks all partitions which attempts run that limits of a domain cover, of some types. after returns the batch of grabs of a partition that
// must be decided before.
func (s *Questions) Count(domain string, types []string, c *limit.Audit, after func(partition int) uint64) {
	for p := range s.partitions {
		s.add(asked{Question: Question{Kind: Running, Partition: p, Domain: domain, Types: types}, count: c, after: after(p)})
	}
}

// AskHolders asks all partitions which attempts may make room in limits of a domain.
func (s *Questions) AskHolders(domain string, r *overflow.Round) {
	for p := range s.partitions {
		s.add(asked{Question: Question{Kind: Holders, Partition: p, Domain: domain, Holders: r.Queries}, round: r})
	}
}

func (s *Questions) add(q asked) *asked {
	s.last++
	q.ID = s.last
	s.waiting = append(s.waiting, &q)
	return &q
}

// Due adds the questions to out that are to be asked now. ready reports whether a partition may be asked, and has decided about a batch of grabs.
func (s *Questions) Due(now time.Duration, ready func(partition int, after uint64) bool, out []Question) []Question {
	s.waiting = slices.DeleteFunc(s.waiting, func(q *asked) bool {
		at, counts := q.place(), q.Kind == Running
		switch {
		case counts && q.count.Pointless():
			return true
		case !ready(q.Partition, q.after) || now < q.dueAt || counts && s.counting[at]:
			return false
		case counts:
			s.counting[at] = true
		}
		q.askedAt, q.again = now, false
		s.open[q.ID] = q
		out = append(out, q.Question)
		return true
	})
	return out
}

// Learned is what an answer is about.
type Learned struct {
	// Kind is 0 if there is nothing to learn: no such question is under way, or it is asked again.
	Kind Kind
	// Malformed counts attempts without a name, of a count that was compared.
	Malformed int64
	// Round is that of Holders, which are of Domain.
	Round  *overflow.Round
	Domain string
	// Superseded: a newer owner has fenced this one.
	Superseded bool
}

// Learn takes in an answer. A count is compared with what it is about.
func (s *Questions) Learn(a *Answer, now time.Duration) (l Learned) {
	q := s.open[a.Question.ID]
	if q == nil {
		return l
	}
	if a.Superseded {
		return Learned{Superseded: true}
	}
	if !s.end(q, a.Failed, now) {
		return l
	}
	l = Learned{Kind: q.Kind, Round: q.round, Domain: q.Domain}
	switch q.Kind {
	case Undelivered:
		s.undelivered--
	case Running:
		l.Malformed = q.count.Learn(q.Partition, q.askedAt, a.Running)
	}
	return l
}

// end ends a question that is under way. It reports false if it is asked again: it failed, or came up again meanwhile.
func (s *Questions) end(q *asked, failed bool, now time.Duration) bool {
	delete(s.open, q.ID)
	if q.Kind == Running {
		delete(s.counting, q.place())
	}
	switch {
	case failed:
		q.dueAt = now + RetryEvery
	case q.again:
		q.dueAt = now + min(AgainRest*(now-q.askedAt), AgainRestMax)
	default:
		if s.retriggers[q.place()] == q {
			delete(s.retriggers, q.place())
		}
		return true
	}
	s.waiting = append(s.waiting, q)
	return false
}
