package match

import (
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/dealing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// Effects are what a step asks for, to be carried out in the order of the fields.
type Effects struct {
	// Replies are those to polls: answers, then refusals.
	waiting.Replies
	// Reports are those of trees: polls that are given up to their frontends, and reports to parents and frontends, which may go later. A move
	// that no frontend takes comes back as Inputs.Unmoved.
	tree.Reports
	// Effects are those of grabs: batches that go to the log of history partitions.
	grab.Effects
	// Requests are those to the tables: calls, each of which comes back as an Outcome, and domains to be opened.
	tablecall.Requests
	// Drops are limits that are no more; no one waits for it.
	Drops []LimitHint
	// Asks are questions to history.
	Asks []question.Question
	// Freed, Restore and Hungry are hints to others.
	Freed, Restore []LimitHint
	Hungry         []Hungry
	// Acks are messages of the hint stream that are taken care of. Others come again to the next owner, or after a while.
	Acks   []uint64
	Counts Counts

	// Prove: a round trip to the server is wanted, unless one is under way.
	Prove bool
	// Wake is when to step even if nothing comes in, on the clock of Now.Mono; 0 = never.
	Wake time.Duration
	// Open: what owners before had under way is decided and sent again, as far as could be
	// found out: frontends may end the polls that these owners had. It is said once.
	Open bool
	// Overtaken: a newer owner serves this shard. Nothing goes out any more but what is above.
	Overtaken bool
	// Drained: nothing is under way any more.
	Drained bool
}

// Hungry is a tasklist where polls wait for what its table does not hold.
type Hungry struct {
	Domain, Tasklist string
	// Present are types that it does hold, tree.PresentMax of them at most: copies of their triggers would pile up.
	Present []string
}

// Counts is what one step has done, for metrics; WaitingPolls is how many wait after it.
type Counts struct {
	// Counts are those of grabs.
	grab.Counts
	// PollCounts are those of polls.
	waiting.PollCounts
	// CallCounts are those of tables.
	tablecall.CallCounts
	// DealCounts are those of triggers.
	dealing.DealCounts
	HintBatches, Triggers, Audited, WouldWait int64
	// PollsDown counts polls that were given up to a partition below.
	PollsDown    int64
	WaitingPolls int64
}
