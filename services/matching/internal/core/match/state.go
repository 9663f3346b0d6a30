package match

import (
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/dealing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// The types of rooms for a shard. A poll is a worker's until it is answered.
type (
	poll    = grab.Poll[*list]
	request = grab.Request[*list]
	arrived = arrival.Arrival[*list]
	source  = tablecall.Source[*list]
	node    = tree.Node[*list]
)

// Config of a Shard.
type Config struct {
	// Shard is its number, Shards how many there are, Partitions how many history
	// partitions there are.
	Shard, Shards, Partitions int
	// Epoch is this ownership's, from 1.
	Epoch uint64
	// Seed makes nonces and ids of answers: two owners of one shard never have the same.
	Seed uint64
	// AnswerBytesMax bounds the tasks of one answer, in encoded bytes.
	AnswerBytesMax int
	// PollsMax, GrabEventsMax, GrabsInFlight and PopMax are bounds; see shard.Config.
	PollsMax, GrabEventsMax, GrabsInFlight, PopMax int
	// PollsEvery is how often it looks after polls for which nothing waits. Default sweepEvery.
	PollsEvery time.Duration
}

// Times, on the clock of Now.Mono.
const (
	// sweepEvery is how often the shard looks after what nothing wakes it for.
	sweepEvery = 250 * time.Millisecond
	// startWait is how long the first fence waits for what other partitions have to send again.
	startWait = time.Second
	// hungryMin and hungryMax bound how often an empty table is complained about.
	hungryMin, hungryMax = time.Second, 30 * time.Second
	// drainTimeout bounds the wait for verdicts when a shard is given up.
	drainTimeout = 2 * time.Second
	// idleAfter is when a tasklist or domain no one asks for is forgotten, and for how long an
	// idle shard sleeps.
	idleAfter = limit.SleepMax
)

// Limits that are no settings.
const (
	// idleListsMax is how many tasklists a domain may have for its idle ones to be remembered.
	idleListsMax = 1000
)

// Shard is the state of one matching shard. It is not safe for concurrent use.
type Shard struct {
	cfg     Config
	catalog Catalog
	dice    *rand.Rand
	now     Now
	fx      *Effects

	// domains by name, and in the order in which they were met, so that equal inputs have equal
	// effects.
	domains   map[string]*domain
	inOrder   []*domain
	lists     map[table.Tasklist]*list
	grabs     grab.Lanes[*list]
	waiting   waiting.Waiting[*list]
	questions question.Questions
	start     start
	drain     drain
	limits    limit.Limits
	calls     tablecall.Calls[*list]
	dealing   dealing.Dealing[*list]
	// policies is the turn as policies of limits see it.
	policies overflow.Turn
	sweepAt  time.Duration
	tree     tree.Tree[*list]

	turn
}

// turn is what one turn gathers. The rest of it makes the next turn due at once.
type turn struct {
	// arrivals are from hints: they are to meet polls.
	arrivals arrival.Arrivals[*list]
	// overtaken: a newer owner was seen.
	overtaken bool
}

// start is how an owner takes its shard over: it fences every partition, sends again what
// may not have reached its polls, and then is open.
//
//	fence ──► true in the first partition ──► all have listed what is to be sent again ──► open
//	                        └────────────────── or startWait later ────────────────────►─┘
type start struct{ begun, open bool }

// drain is how a shard is given up: polls are answered, verdicts awaited for a short
// while, triggers stored, and what no one takes is handed back.
type drain struct {
	on bool
	// end is when it waits no longer.
	end  time.Duration
	done bool
}
