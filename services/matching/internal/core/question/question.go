package question

import (
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
