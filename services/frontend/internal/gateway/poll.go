package gateway

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/polls"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

// Poll asks for work (tasks.poll). Matching answers the asker's inbox itself; where the
// owner that has the poll is replaced, it is answered empty here.
func (g *Gateway) Poll(c Call, req *yardv1.PollRequest, answer Answer) {
	if g.rejects(&c, validate.Poll(req, c.Tasklist), answer) {
		return
	}
	if c.Reply == "" { // tasks would be granted that no one runs
		answer(nil, fault.New(fault.InvalidArgument, "a poll needs a reply subject"))
		return
	}
	partition := g.pick(c.Domain, req.Tasklist)
	at := &polls.Poll{
		Req: &rpcv1.Poll{
			Domain: c.Domain, Tasklist: req.Tasklist, MaxTasks: req.MaxTasks, Types: req.Types, Worker: req.Worker,
			ReplyTo: c.Reply, Json: c.JSON, AnsweredTo: g.Bus.AnsweredTo(), WaitMs: req.WaitMs,
			Unanswered: req.Unanswered, WorkerVersion: req.WorkerVersion, WorkerId: req.WorkerId,
			TasklistPartition: int32(partition),
		},
		Until: c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond), Answer: func(resp *yardv1.PollResponse, err error) { answerPoll(answer, resp, err) },
	}
	drain := g.polls.DrainOf(at)
	if req.NoTasks {
		g.tellGivenUp(at.Req, false)
		answer(&yardv1.PollResponse{Drain: drain}, nil)
		return
	}
	err := g.Quotas.Open(c.Domain)
	at.Places = 1 + (at.Req.SizeVT()+typeBytes*len(req.Types))/pollPlaceBytes
	if err == nil && !g.pools.polls.Take(c.Domain, at.Places) {
		g.Quotas.Close(c.Domain)
		err = fault.New(fault.ResourceExhausted, "too many polls wait").After(fullRetryAfter)
	}
	g.tellGivenUp(at.Req, err == nil && drain == nil) // it may free the place that this one needs
	if err == nil {
		g.polls.Forward(at)
	}
	answer(nil, err)
}

// EpochOpened tells that a new owner of a matching shard is ready, and that those before
// it can grant nothing any more: polls that wait for an owner are sent to it, and polls
// that an older one has are answered empty, so that their askers come again.
func (g *Gateway) EpochOpened(shard int, epoch uint64) { g.polls.Opened(shard, epoch) }

// answerPoll answers a poll: without a task, or with an error.
func answerPoll(answer Answer, resp *yardv1.PollResponse, err error) {
	if err != nil {
		answer(nil, err)
		return
	}
	answer(resp, nil)
}

// PollNews hears what becomes of polls.
func (g *Gateway) PollNews() *polls.Polls { return g.polls }

// How long handing back is tried, and how soon again where history did not take it.
const handBackWithin, handBackAgain = 30 * time.Second, time.Second

// handBack makes tasks ready again whose attempts no worker has. The leases end those that it does not reach.
func handBack(g *Gateway) func(domain string, attempts []direct.Attempt) {
	return func(domain string, attempts []direct.Attempt) {
		handBackUntil(g, time.Now().Add(handBackWithin), domain, attempts)
	}
}

func handBackUntil(g *Gateway, deadline time.Time, domain string, attempts []direct.Attempt) {
	now := time.Now()
	c := Call{Domain: domain, Received: now, Now: g.Clock.At(now), Deadline: deadline}
	g.outcome(c, false, direct.Releases(domain, attempts), nil, func(resp codec.Message, err error) {
		if err != nil {
			return
		}
		var left []direct.Attempt
		for i, v := range resp.(*yardv1.OutcomeResponse).Verdicts {
			if fault.Code(v.Code).Retryable() {
				left = append(left, attempts[i])
			}
		}
		if len(left) > 0 && g.base.Err() == nil { // a call past its deadline fails
			time.AfterFunc(handBackAgain, func() { handBackUntil(g, deadline, domain, left) })
		}
	})
}
