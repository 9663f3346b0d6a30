// Package poll is the verb that asks for work. The polls that wait are in package polls.
//
// Owns: the check of a poll, its places, the partition that it goes to, and what is handed back that no worker has.
//
// Never does: answer a poll with tasks that wait in matching; matching answers the asker itself.
//
// On failure: a poll whose owner is replaced is answered empty, so that its worker comes again.
package poll

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/admission"
	"github.com/yardmaster-io/yardmaster/shared/clock"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/balance"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/polls"
)

const (
	// placeBytes is how much of a poll one place stands for, and typeBytes what each of its types takes
	// in memory beyond its encoding.
	placeBytes = 1 << 10
	typeBytes  = 32
)

// Bus sends what is not waited for.
type Bus interface {
	polls.Bus
	// PublishGivenUp notifies all owners of matching shards, and all frontends, of inboxes whose answers are lost.
	PublishGivenUp(data []byte) error
	// AnsweredTo is the subject where news of answered polls arrive.
	AnsweredTo() string
}

// Quotas are those of domains.
type Quotas interface {
	// Open counts a poll of a domain in, or refuses it, and Close counts it out.
	Open(domain string) error
	Close(domain string)
}

// Deps is what Requests need.
type Deps struct {
	Run          *call.Runner
	Partitioning topology.Partitioning
	Tokens       *ids.Tokens
	Catalog      *catalog.Catalog
	Quotas       Quotas
	Bus          Bus
	// PollsMax is how many polls may wait at once, in parts of placeBytes.
	PollsMax int
	// Balancer is how polls of a tasklist of several partitions are spread over them.
	Balancer balance.Strategy
	// DirectStarts has tasks start with their submit where a poll waits here, and an answer with them takes so many bytes at most.
	DirectStarts bool
	AnswerBytes  int
	// Release makes tasks ready again whose attempts no worker has.
	Release func(c call.Call, entries []validate.Outcome, answer call.Answer)
	Clock   *clock.Clock
	Log     *slog.Logger
	Tracing *telemetry.Tracing
	Metrics *telemetry.Metrics
}

// Requests takes polls in. It is safe for concurrent use.
type Requests struct {
	Deps
	// places are shared out by domain.
	places *admission.Room
	polls  *polls.Polls

	mu       sync.Mutex
	balancer *balance.Balancer
}

// New makes Requests. The caller calls Tick now and then.
func New(d Deps) *Requests {
	q := &Requests{
		Deps: d, places: admission.New(d.PollsMax),
		balancer: balance.New(d.Balancer, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))),
	}
	q.polls = polls.New(polls.Config{
		Epochs: make([]uint64, d.Partitioning.Matching), Catalog: d.Catalog, Tokens: d.Tokens, DirectStarts: d.DirectStarts, Bus: d.Bus, Log: d.Log,
		AnswerBytes: d.AnswerBytes,
		Metrics: polls.Metrics{
			Forwarded: d.Metrics.Counter(signals.PollsForwarded), WithoutOwner: d.Metrics.Counter(signals.PollsWithoutOwner),
			Replaced: d.Metrics.Counter(signals.PollsOwnerReplaced), Moved: d.Metrics.Counter(signals.PollsMoved),
		},
		Left: func(domain string, places int) {
			q.places.Give(domain, places)
			q.Quotas.Close(domain)
		},
		HandBack: q.handBack, ShowStart: q.showStart,
	})
	return q
}

// Tick does what is due.
func (q *Requests) Tick(now time.Time) {
	q.polls.Tick(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.balancer.Forget(now)
}

// Waiting are the polls that wait.
func (q *Requests) Waiting() *polls.Polls { return q.polls }

// Report takes in what waits in one partition of a tasklist.
func (q *Requests) Report(p *rpcv1.PartitionLoad, now time.Time) {
	q.polls.Heard(p, now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.balancer.Report(balance.Tasklist{Domain: p.Domain, Name: p.Tasklist}, q.Catalog.Partitions(p.Domain, p.Tasklist), int(p.TasklistPartition),
		balance.Load{Triggers: p.Triggers, PerSecond: p.PerSecond}, now)
}

// Poll asks for work (tasks.poll). Matching answers the asker's inbox itself; where the
// owner that has the poll is replaced, it is answered empty here.
func (q *Requests) Poll(c call.Call, req *yardv1.PollRequest, answer call.Answer) {
	if q.Run.Rejects(&c, validate.Poll(req, c.Tasklist, pace.Of(validate.WaitMax)), answer) {
		return
	}
	if c.Reply == "" { // tasks would be granted that no one runs
		answer(nil, fault.New(fault.InvalidArgument, "a poll needs a reply subject"))
		return
	}
	partition := q.pick(c.Domain, req.Tasklist)
	at := &polls.Poll{
		Req: &rpcv1.Poll{
			Domain: c.Domain, Tasklist: req.Tasklist, MaxTasks: req.MaxTasks, Types: req.Types, Worker: req.Worker,
			ReplyTo: c.Reply, Json: c.JSON, AnsweredTo: q.Bus.AnsweredTo(), WaitMs: req.WaitMs,
			WorkerVersion: req.WorkerVersion, WorkerId: req.WorkerId, TasklistPartition: int32(partition),
		},
		Until: c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond), Answer: func(resp *yardv1.PollResponse, err error) { answer(resp, err) },
	}
	q.reportGivenUp(c.Domain, req.Unanswered) // it may free the place that this one needs
	drain := q.polls.DrainOf(at)
	if req.NoTasks {
		answer(&yardv1.PollResponse{Drain: drain}, nil)
		return
	}
	err := q.Quotas.Open(c.Domain)
	at.Places = 1 + (at.Req.SizeVT()+typeBytes*len(req.Types))/placeBytes
	if err == nil && !q.places.Take(c.Domain, at.Places) {
		q.Quotas.Close(c.Domain)
		err = fault.New(fault.ResourceExhausted, "too many polls wait").After(call.FullRetryAfter)
	}
	if err == nil {
		q.polls.Forward(at)
	}
	answer(nil, err)
}

// EpochOpened tells that a new owner of a matching shard is ready, and that those before
// it can grant nothing any more: polls that wait for an owner are sent to it, and polls
// that an older one has are answered empty, so that their askers come again.
func (q *Requests) EpochOpened(shard int, epoch uint64) { q.polls.Opened(shard, epoch) }

// pick chooses the partition that a poll goes to. Where there is one it costs a look at the settings.
func (q *Requests) pick(domain, tasklist string) int {
	n := q.Catalog.Partitions(domain, tasklist)
	if n == 1 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.balancer.Pick(balance.Tasklist{Domain: domain, Name: tasklist}, n, time.Now())
}

// reportGivenUp reports to the owners of all shards, and to all frontends, which answers a poll has lost: the one that sent them is perhaps not the one
// that the poll goes to.
func (q *Requests) reportGivenUp(domain string, inboxes []string) {
	if len(inboxes) == 0 {
		return
	}
	data, err := (&rpcv1.GivenUp{Domain: domain, Inboxes: inboxes}).MarshalVT()
	if err == nil {
		err = q.Bus.PublishGivenUp(data)
	}
	if err != nil {
		q.Log.Debug("tell matching of answers that were lost", "error", err) // their attempts run until their deadline
	}
}

// How long handing back is tried, and how soon again where history did not take it.
const handBackWithin, handBackAgain = 30 * time.Second, time.Second

// handBack makes tasks ready again whose attempts no worker has. The leases end those that it does not reach.
func (q *Requests) handBack(domain string, attempts []direct.Attempt) {
	q.handBackUntil(time.Now().Add(handBackWithin), domain, attempts)
}

func (q *Requests) handBackUntil(deadline time.Time, domain string, attempts []direct.Attempt) {
	now := time.Now()
	c := call.Call{Domain: domain, Received: now, Now: q.Clock.At(now), Deadline: deadline}
	q.Release(c, direct.Releases(domain, attempts), func(resp codec.Message, err error) {
		if err != nil {
			return
		}
		var left []direct.Attempt
		for i, v := range resp.(*yardv1.OutcomeResponse).Verdicts {
			if fault.Code(v.Code).Retryable() {
				left = append(left, attempts[i])
			}
		}
		if len(left) > 0 && q.Run.Base().Err() == nil { // a call past its deadline fails
			time.AfterFunc(handBackAgain, func() { q.handBackUntil(deadline, domain, left) })
		}
	})
}

// showStart makes the span of a task that a poll is given with its submit.
func (q *Requests) showStart(s *polls.Submit, task int) {
	r := s.Records[task]
	if !q.Tracing.On() || !telemetry.Sampled(r.Trace) {
		return
	}
	id := ids.TaskID(r.Id)
	about := signals.Task{Domain: s.Domain, Tasklist: s.Tasklist, Type: r.Type, ID: id.String(), Partition: id.Partition()}
	now, chosen := q.Clock.Now(), time.UnixMilli(s.NowMS).Add(time.Millisecond-1) // the end of the millisecond is not before the submit
	if chosen.After(now) {
		chosen = now
	}
	q.Tracing.Span(r.Trace, signals.SpanStart, signals.SpanKind(signals.SpanStart), chosen, now, about.Attributes(signals.SpanStart)...)
}

// TakeSilent reads which workers fell silent, or are drained (topology.HintSilent).
func (q *Requests) TakeSilent(data []byte) {
	var m rpcv1.Silent
	if err := m.UnmarshalVT(data); err != nil {
		q.Log.Error("an unreadable hint of silent workers was dropped", "bytes", len(data), "error", err)
		return
	}
	q.polls.FellSilent(m.Workers)
}
