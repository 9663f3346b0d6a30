package bench

import (
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
)

// domain that the tasks belong to, and floodDomain that of the neighbour of W6, W7, W10, W11 and W13.
const domain, floodDomain = "bench", "bench-flood"

// unknown is what a cluster does not tell.
const unknown = usage.Unknown

// Shape of the load. They are part of what the numbers mean, so most are no options.
const (
	payloadBytes  = 256
	typeCount     = 10
	pollLoops     = 16
	pollTasks     = 100
	pollWait      = 20 * time.Second
	pollWaitBrief = 200 * time.Millisecond
	w3Rate        = 500 // per second
	w3Concurrency = 100
	// The tasks of W4 are due some time after the run begins, so that all are stored by then; so are those of W6.
	w4Lead         = 2 * time.Second
	w4LeadPerTask  = 50 * time.Microsecond
	w6LeadPerTask  = 40 * time.Microsecond // 2 minutes for 3,000,000
	w6Rate         = 5000                  // tasks that are due per second
	w6Seconds      = 600
	w6QuietSeconds = 20
	w6OthersRate   = 100 // tasks per second of the other domain
	// W7 is 20 s alone and two floods of 60 s.
	w7Domains      = 10
	w7Rate         = 20 * w7Domains // tasks per second of all small domains
	w7FloodSeconds = 60
	w7Seconds      = 20 + 2*w7FloodSeconds
	w7AlonePerTask = 5    // tasks of the flooding domain alone, for each of the others
	w7Times        = 5    // the flood is so many times what the machine can do, of so many times the producers
	w7QuotaPart    = 2    // the quota is half of what the machine can do
	w9GetRate      = 5000 // per second
	w9TaskRate     = 1000 // per second
	// w9SettlePerTask, 15 s for a million, lets the server drop what it keeps in memory of the
	// writing, which it does within 10 s.
	w9SettlePerTask = 15 * time.Microsecond
	w9Seconds       = 10  // of each phase
	w10Rate         = 500 // tasks, and gets, per second
	w10Filled       = 10_000
	w10Waits        = 1000
	w10Wait         = time.Minute
	w10PollsPerTask = 10
	w10PollsEvery   = 5 * time.Millisecond
	w10PollWait     = 5 * time.Second
	w10Tasklists    = 100
	// The workers of W11 run 1,600 tasks/s, so its flood waits for 12.5 s.
	w11Concurrency = 16
	w11Takes       = 10 * time.Millisecond
	w11Rate        = 10 // tasks of the small group per second
	// w11PerSmall is how many tasks of the flood there are for one of the small group.
	w11PerSmall    = w11Concurrency * int(time.Second/w11Takes) / w11Rate
	w11SmallMin    = 5
	w12Rate        = 1000 // tasks per second
	w12RedriveRate = 2000 // dead letters per second
	w13Rate        = 500  // tasks per second
	w13Rounds      = 5    // of each kind of question
	w13Filled      = 10_000
	w13Askers      = 32
	w13FloodMin    = time.Second / 2
	w13AnswerMax   = 15 * time.Second // for an answer after the flood
	w13RepeatAge   = 2 * time.Minute
	// The tasks of W14 that are not ready are due from an hour on, for 30 days. Each read of the API is asked for so often, and each page.
	w14Ahead    = time.Hour
	w14Window   = 30 * 24 * time.Hour
	w14Calls    = 200
	w14Pages    = 50
	warmUpTasks = 1000
	tasklist    = "bench"
	// domainsMax bounds W8: each domain has a goroutine and a poll of its own.
	domainsMax = 10_000
)

// W8Domains is how many domains W8 has by default, and PolledAtOnce how many tasks all polls take at once.
const W8Domains, PolledAtOnce = 1000, pollLoops * pollTasks

// priorities of the tasks, in turn.
var priorities = [...]int{1, 3, 5}

// stallAfter ends a run in which nothing has moved for so long.
const stallAfter = 2 * time.Minute

// Bounds of a run: its groups, its order keys, its types, and its polls, each of which has a goroutine.
const (
	groupsMax    = 1_000_000
	orderKeysMax = 1_000_000
	typesMax     = 1000
	pollsMax     = 10_000
)

// shape is how the tasks of a drain are submitted.
type shape struct {
	// producers submit at once, so many tasks per request.
	producers, request int
	// domains that the requests are for, in turn.
	domains []string
	// many: they are those of Options.Domains.
	many bool
	// together: a request has one task, and the SDK may gather those of one program.
	together bool
	// ahead: workers begin when all tasks are accepted, and only the submits are measured.
	ahead bool
}

// bulk is W1's.
var bulk = shape{producers: 8, request: 100, domains: []string{domain}}

// floodShape is bulk of the domain that floods in W7, alone.
var floodShape = shape{producers: bulk.producers, request: bulk.request, domains: []string{floodDomain}}

// backlog is bulk whose workers begin when all tasks are accepted.
var backlog = shape{producers: bulk.producers, request: bulk.request, ahead: true}

// warmUp is how many tasks show that the system is at work: each domain has some.
func (s shape) warmUp() int { return max(warmUpTasks, len(s.domains)*s.request) }

// many are the names of the domains of W8, and of the small ones of W7.
func many(n int) []string { return named(domain+"-", n) }

// named are names with a prefix and a number.
func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i)
	}
	return names
}
