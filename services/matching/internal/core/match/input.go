package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// Now is the time of a step: Mono never jumps, and all waiting is measured with it. MS is
// the wall clock, Unix ms, which only dates what people and other processes read.
type Now struct {
	Mono time.Duration
	MS   int64
}

// Inputs is everything that came in since the last turn, in the order of the fields. Their
// slices may be reused after the step; the bytes of tasks, triggers and payloads are kept.
type Inputs struct {
	// Limits are domains whose limits may have changed.
	Limits []string
	// Outcomes are what became of Effects.Calls.
	Outcomes []CallOutcome
	// Opened are what became of Effects.Opens.
	Opened []OpenOutcome
	// Answers are what became of Effects.Asks.
	Answers []question.Answer
	// Verdicts are history's answers to batches.
	Verdicts []grab.Verdicts
	// Bounced are ids of answers that were not delivered.
	Bounced []uint64
	// Proven is when a round trip to the server began that has ended, on the clock of Now.Mono; 0 = none.
	Proven time.Duration
	// Broke: the connection broke since the last round trip, and is back. Messages may be lost.
	Broke bool
	// Freed and Restore are hints of other shards.
	Freed, Restore []LimitHint
	// Hints are messages of the hint stream.
	Hints []Hints
	// Branches are what partitions of tasklists say to their parents here.
	Branches []tree.Branch
	// Unmoved are those of Effects.Moves that no frontend took.
	Unmoved []tree.Move
	// GivenUp are inboxes of domains whose polls were given up without an answer: what was sent there was not delivered.
	GivenUp []waiting.GivenUp
	// Silent are workers that send no more signs of life: their polls end.
	Silent []waiting.SilentWorker
	// Polls are new polls.
	Polls []waiting.Poll
	// HintsLost: hints may have been lost, triggers and those of released slots. ReleasesLost: the latter may have been; triggers come again by themselves.
	HintsLost, ReleasesLost bool
	// Drain: the shard is given up: no poll and no hint is taken any more.
	Drain bool
}

// CallOutcome is what became of the call about a domain that is under way.
type CallOutcome struct {
	Domain string
	// Failed: it is not known whether it was carried out.
	Failed  bool
	Outcome table.Outcome
}

// OpenOutcome is what became of opening a domain.
type OpenOutcome struct {
	Domain string
	Failed bool
	Opened table.Opened
}

// LimitHint names limits of a domain.
type LimitHint struct {
	Domain string
	Limits []table.Ref
}

// Hints is one message of the hint stream.
type Hints struct {
	// Delivery names it in Effects.Acks.
	Delivery uint64
	Releases []Release
	Triggers []arrival.Triggers
}

// Release is attempts of one domain, type and path that are over.
type Release struct {
	Domain, Type string
	Path         []table.Ref
	// Bookings are packed (ids.BookingBytes each).
	Bookings []byte
}

// Catalog tells what operators have set.
type Catalog interface {
	// Limits are those of a domain, sorted by reference, each once. The result never changes.
	Limits(domain string) []limit.Setting
	// Weights are those of a domain's groups, of at least 0; the others have 1. The result never changes.
	Weights(domain string) map[string]float64
	// Partitions is how many a tasklist has, at least 1.
	Partitions(domain, tasklist string) int
	// Scales tells whether the engine sets that number, by what comes into the partitions.
	Scales(domain, tasklist string) bool
	// Strict tells whether of a tasklist a more urgent priority goes first, however long others wait; else they take turns by weight.
	Strict(domain, tasklist string) bool
	// GroupLimits are how many attempts of single groups may run at once, at least 1, in each limit that counts them; the others have
	// what the limit says. The result never changes.
	GroupLimits(domain string) map[string]int
	// PausedGroups are the groups of a domain of which nothing may start. The result never changes.
	PausedGroups(domain string) map[string]bool
}
