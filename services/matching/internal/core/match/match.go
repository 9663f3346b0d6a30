package match

import (
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/report"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
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
	// PollsMax, GrabEventsMax, GrabsInFlight and PopMax are settings; see shard.Config.
	PollsMax, GrabEventsMax, GrabsInFlight, PopMax int
}

// Times, on the clock of Now.Mono.
const (
	// grantedWait is how long a poll with a grant waits for the verdicts on its other grabs, whose partition is not silent.
	grantedWait = time.Second
	// pollGrace is how long past its time a poll waits for what is under way.
	pollGrace = 2 * time.Second
	// retryEvery is how often tables are tried that do not answer.
	retryEvery = 250 * time.Millisecond
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
	// candidatesMax is how many columns one want looks at: each costs Redis 6 µs.
	candidatesMax = 32
	// looksMax is how many tasklists of a domain one turn looks at for triggers to take, turnLooksMax how many
	// of all domains, and one domain more: each costs up to a microsecond, and all others wait meanwhile.
	looksMax, turnLooksMax = 256, 1024
	// callCandidatesMax is how many columns one call looks at, and one want more: 2 ms of Redis, which
	// does nothing for others meanwhile.
	callCandidatesMax = 256
	// heldChunksMax is how many chunks wait while a domain is being opened.
	heldChunksMax = 4096
	// putChunksMax is how many chunks one call stores.
	putChunksMax = 512
	// idleListsMax is how many tasklists a domain may have for its idle ones to be remembered.
	idleListsMax = 1000
	// wastedRounds is how often a poll whose time is over tries again after all
	// that it was given was refused.
	wastedRounds = 3
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
	polls     pairing.Polls[*list, grab.Grant]
	pollers   report.Pollers
	questions question.Queue[subject]
	answers   grab.Answers
	start     start
	drain     drain
	limits    limit.Limits
	// calls counts the calls to the tables.
	calls   uint64
	sweepAt time.Duration
	tree    tree.Tree[*list]

	turn
}

// turn is what one turn gathers. The rest of it makes the next turn due at once.
type turn struct {
	// taken came out of the tables and arrivals from hints: both are to meet polls.
	taken    []taken
	arrivals arrival.Arrivals[*list]
	// busy are domains that may have something to call the tables for.
	busy []*domain
	// overtaken: a newer owner was seen.
	overtaken bool
}

// New returns the shard of a new owner. Its first step fences.
func New(cfg Config, catalog Catalog, now Now) *Shard {
	s := &Shard{
		cfg: cfg, catalog: catalog, now: now, dice: rand.New(rand.NewPCG(cfg.Seed, cfg.Epoch)),
		domains: map[string]*domain{}, lists: map[table.Tasklist]*list{},
		polls: pairing.NewPolls[*list, grab.Grant](), pollers: report.NewPollers(now.Mono), questions: question.New[subject](AskRunning),
	}
	s.limits = limit.New(catalog, cfg.Partitions)
	s.answers = grab.NewAnswers(s.dice.Uint64(), now.Mono)
	s.grabs = grab.New[*list](grab.Config{
		Partitions: cfg.Partitions, InFlightMax: cfg.GrabsInFlight, EventsMax: cfg.GrabEventsMax, AnswerBytesMax: cfg.AnswerBytesMax, Nonce: s.dice.Uint64,
	})
	return s
}

// Step is one turn. fx is emptied first; it is good until the next step.
func (s *Shard) Step(in *Inputs, now Now, fx *Effects) {
	fx.reset()
	s.now, s.fx = now, fx
	s.answers.Begin(now.Mono)
	s.tree.Begin(now.Mono, &fx.Reports)
	s.grabs.Begin(now.Mono, &fx.Effects, &fx.Counts.Counts)
	s.limits.Begin(now.Mono, now.MS)
	s.arrivals.Begin(&fx.Acks)
	if s.overtaken || s.drain.done {
		s.ended(in)
		return
	}
	s.begin()
	s.learn(in)
	if s.overtaken {
		s.stop(in)
		return
	}
	s.hear(in)
	s.listen()
	s.finishPolls()
	for i := range in.Branches {
		s.heard(&in.Branches[i])
	}
	for _, id := range in.Unmoved {
		s.unmoved(id)
	}
	for i := range in.Polls {
		s.arrivePoll(&in.Polls[i])
	}
	if in.Drain {
		s.leave()
	}
	s.act()
	s.conclude(in)
}

// hear takes in what was said to the shard.
func (s *Shard) hear(in *Inputs) {
	s.answers.Prove(in.Proven)
	for _, id := range in.Bounced {
		s.bounced(s.answers.Bounce(id))
	}
	if in.Broke {
		s.fx.Answers = append(s.fx.Answers, s.answers.Repeat()...)
	}
	for _, g := range in.GivenUp {
		for _, inbox := range g.Inboxes {
			s.givenUp(inbox, g.Domain)
		}
	}
	s.fellSilent(in.Silent)
	for _, h := range in.Freed {
		for _, ref := range h.Limits {
			if d := s.domains[h.Domain]; d != nil {
				d.Domain.Freed(ref)
			}
		}
	}
	for i := range in.Restore {
		s.restore(&in.Restore[i])
	}
	for i := range in.Hints {
		s.arrive(&in.Hints[i])
	}
	if in.HintsLost || in.ReleasesLost {
		s.auditAll()
	}
	if in.HintsLost {
		s.retriggerAll("")
	}
}

// act is matching, and what comes of it.
func (s *Shard) act() {
	s.match()
	if s.now.Mono >= s.sweepAt {
		s.sweep()
	}
	s.limits.Report()
	s.limits.Ripen()
	s.passAll()
	s.callAll()
	s.endAll(s.grabs.Send())
	s.expirePolls()
	s.finishPolls()
	s.tree.ReportAll()
	s.redeliver()
	s.handOver()
	s.ask()
	s.drained()
}

// learn takes in what is known again, and what history decided.
func (s *Shard) learn(in *Inputs) {
	for _, name := range in.Limits {
		s.limitsChanged(name)
	}
	for i := range in.Outcomes {
		s.called(&in.Outcomes[i])
	}
	for i := range in.Opened {
		s.opened(&in.Opened[i])
	}
	for i := range in.Answers {
		s.answered(&in.Answers[i])
	}
	for i := range in.Verdicts {
		s.decide(&in.Verdicts[i])
	}
}

// reset empties fx and keeps its memory.
func (fx *Effects) reset() {
	clear(fx.Answers)
	clear(fx.Calls)
	fx.Effects.Reset()
	fx.Reports.Reset()
	*fx = Effects{
		Answers: fx.Answers[:0], Refusals: fx.Refusals[:0], Effects: fx.Effects, Reports: fx.Reports, Calls: fx.Calls[:0],
		Opens: fx.Opens[:0], Drops: fx.Drops[:0], Asks: fx.Asks[:0], Freed: fx.Freed[:0], Restore: fx.Restore[:0],
		Hungry: fx.Hungry[:0], Acks: fx.Acks[:0],
	}
}

// Tasklist tells how many triggers of a tasklist are in the table as far as is known,
// and how many of its polls are not answered.
func (s *Shard) Tasklist(domain, name string) (ready, polls int) {
	if d := s.domains[domain]; d != nil {
		for _, l := range d.lists {
			if l.Name == name {
				ready += l.index.Triggers() + l.ReadAhead()
				polls += l.queue.Alive()
			}
		}
	}
	return ready, polls
}

// Pollers are up to limit workers that polled a tasklist, behind the one called after; from the first, if that is empty.
func (s *Shard) Pollers(domain, tasklist, after string, limit int, now Now) report.Page {
	return s.pollers.Page(domain, tasklist, after, limit, now.Mono)
}
