// Package poll is the verb that asks for work, and the polls that this frontend has taken, until they are answered.
//
// Owns: the check of a poll, its places, and the partition that it goes to. Where each poll is, and when it ends, is decided in core/poll; this package does
// what follows.
//
// Never does: decide who gets a task that waits: matching does, and answers the asker itself. History has the last word on each attempt.
//
// On failure: a poll that no owner takes is sent again; polls of an owner that was replaced are answered empty, and their workers come again.
package poll

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/shared/admission"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/balance"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/validate"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/owners"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
)

const (
	// placeBytes is how much of a poll one place stands for, and typeBytes what each of its types takes
	// in memory beyond its encoding.
	placeBytes = 1 << 10
	typeBytes  = 32
)

// Bus sends what is not waited for.
type Bus interface {
	// PublishPoll sends a poll to the owner of a matching shard in this epoch. If no one
	// is there, PollBounced is called with this id, which no other sending has.
	PublishPoll(shard int, epoch, id uint64, data []byte) error
	// AnswerPoll answers a poll. If no one receives it, TasksBounced is called with this id.
	AnswerPoll(to string, json bool, id uint64, resp *yardv1.PollResponse) error
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

// Deps is what Polls need.
type Deps struct {
	owners.Env
	Quotas Quotas
	Bus    Bus
	// PollsMax is how many polls may wait at once, in parts of placeBytes.
	PollsMax int
	// Balancer is how polls of a tasklist of several partitions are spread over them.
	Balancer balance.Strategy
	// DirectStarts has tasks start with their submit if a poll waits here, and an answer with them takes so many bytes at most.
	DirectStarts bool
	AnswerBytes  int
	// Release makes tasks ready again whose attempts no worker has.
	Release func(c call.Call, entries []validate.Outcome, answer call.Answer)
}

// Polls takes polls in. It is safe for concurrent use.
type Polls struct {
	Deps
	metrics metrics
	// places are shared out by domain.
	places *admission.Room

	mu sync.Mutex
	// Epochs are the newest open ones by matching shard, 0 = none is known.
	Epochs  []uint64
	waiting *core.Polls[*request]
	// drains is the revision of the catalog's drains that waiting agrees with.
	drains   uint64
	balancer *balance.Balancer
}

// New makes Polls. The caller calls Tick now and then.
func New(d Deps) *Polls {
	epochs := make([]uint64, d.Partitioning.Matching)
	return &Polls{
		Deps: d, metrics: newMetrics(d.Metrics), places: admission.New(d.PollsMax), Epochs: epochs, waiting: core.New[*request](epochs, d.rules()),
		balancer: balance.New(d.Balancer, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))),
	}
}

// Report takes in what waits in one partition of a tasklist.
func (p *Polls) Report(l *rpcv1.PartitionLoad, now time.Time) {
	p.wanted(l)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.balancer.Report(balance.Tasklist{Domain: l.Domain, Name: l.Tasklist}, p.Catalog.Partitions(l.Domain, l.Tasklist), int(l.TasklistPartition),
		balance.Load{Triggers: l.Triggers, PerSecond: l.PerSecond}, now)
}

// Poll asks for work (tasks.poll). Matching answers the asker's inbox itself; where the
// owner that has the poll is replaced, it is answered empty here.
func (p *Polls) Poll(c call.Call, req *yardv1.PollRequest, answer call.Answer) {
	if p.Run.Rejects(&c, validate.Poll(req, c.Tasklist, pace.Of(validate.WaitMax)), answer) {
		return
	}
	if c.Reply == "" { // tasks would be granted that no one runs
		answer(nil, fault.New(fault.InvalidArgument, "a poll needs a reply subject"))
		return
	}
	m := &rpcv1.Poll{
		Domain: c.Domain, Tasklist: req.Tasklist, MaxTasks: req.MaxTasks, Types: req.Types, Worker: req.Worker,
		ReplyTo: c.Reply, Json: c.JSON, AnsweredTo: p.Bus.AnsweredTo(), WaitMs: req.WaitMs,
		WorkerVersion: req.WorkerVersion, WorkerId: req.WorkerId,
	}
	at := &one{
		Domain: c.Domain, Tasklist: req.Tasklist, Inbox: c.Reply, Worker: req.Worker, WorkerID: req.WorkerId, Types: req.Types, Max: int(req.MaxTasks),
		Until: c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond),
		Shell: &request{message: m, answer: answer, places: 1 + (m.SizeVT()+typeBytes*len(req.Types))/placeBytes},
	}
	p.reportGivenUp(c.Domain, req.Unanswered) // it may free the place that this one needs
	if req.NoTasks {
		answer(&yardv1.PollResponse{Drain: p.drainOf(at)}, nil)
		return
	}
	at.Partition = p.pick(c.Domain, req.Tasklist)
	err := p.Quotas.Open(c.Domain)
	if err == nil && !p.places.Take(c.Domain, at.Shell.places) {
		p.Quotas.Close(c.Domain)
		err = fault.New(fault.ResourceExhausted, "too many polls wait").After(call.FullRetryAfter)
	}
	if err == nil {
		p.change(func(c *core.Polls[*request], now time.Time) { c.Take(at, now) })
	}
	answer(nil, err)
}

// pick chooses the partition that a poll goes to. Where there is one it costs a look at the settings.
func (p *Polls) pick(domain, tasklist string) int {
	n := p.Catalog.Partitions(domain, tasklist)
	if n == 1 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.balancer.Pick(balance.Tasklist{Domain: domain, Name: tasklist}, n, time.Now())
}

// reportGivenUp reports to the owners of all shards, and to all frontends, which answers a poll has lost: the one that sent them is perhaps not the one
// that the poll goes to.
func (p *Polls) reportGivenUp(domain string, inboxes []string) {
	if len(inboxes) == 0 {
		return
	}
	data, err := (&rpcv1.GivenUp{Domain: domain, Inboxes: inboxes}).MarshalVT()
	if err == nil {
		err = p.Bus.PublishGivenUp(data)
	}
	if err != nil {
		p.Log.Debug("tell matching of answers that were lost", "error", err) // their attempts run until their deadline
	}
}
