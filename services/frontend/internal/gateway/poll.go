package gateway

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

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
	at := &poll{
		shard: ids.MatchingShard(c.Domain, req.Tasklist, partition, g.Partitioning.Matching),
		req: &rpcv1.Poll{
			Domain: c.Domain, Tasklist: req.Tasklist, MaxTasks: req.MaxTasks, Types: req.Types, Worker: req.Worker,
			ReplyTo: c.Reply, Json: c.JSON, AnsweredTo: g.Bus.AnsweredTo(), WaitMs: req.WaitMs,
			Unanswered: req.Unanswered, WorkerVersion: req.WorkerVersion, WorkerId: req.WorkerId,
			TasklistPartition: int32(partition),
		},
		until: c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond), answer: answer,
	}
	at.drain = g.polls.drainOf(at)
	if req.NoTasks {
		g.tellGivenUp(at.req, false)
		at.empty()
		return
	}
	err := g.Quotas.Open(c.Domain)
	at.places = 1 + (at.req.SizeVT()+typeBytes*len(req.Types))/pollPlaceBytes
	if err == nil && !g.pools.polls.Take(c.Domain, at.places) {
		g.Quotas.Close(c.Domain)
		err = fault.New(fault.ResourceExhausted, "too many polls wait").After(fullRetryAfter)
	}
	g.tellGivenUp(at.req, err == nil && at.drain == nil) // it may free the place that this one needs
	if err == nil {
		g.polls.forward(at)
	}
	answer(nil, err)
}

// PollBounced tells that no one took a poll that was sent with this id.
func (g *Gateway) PollBounced(id uint64) { g.polls.bounced(id) }

// TakeAnswered reads which polls matching has answered, and which it gives up to other partitions of their tasklists.
func (g *Gateway) TakeAnswered(data []byte) {
	var m rpcv1.PollsAnswered
	if err := m.UnmarshalVT(data); err != nil {
		g.Log.Error("unreadable news of answered polls were dropped", "bytes", len(data), "error", err)
		return
	}
	g.polls.answered(m.Ids)
	g.polls.moved(m.Moved)
}

// EpochOpened tells that a new owner of a matching shard is ready, and that those before
// it can grant nothing any more: polls that wait for an owner are sent to it, and polls
// that an older one has are answered empty, so that their askers come again.
func (g *Gateway) EpochOpened(shard int, epoch uint64) { g.polls.opened(shard, epoch) }

// unserved is the answer of a poll that no owner took in time.
func unserved() error {
	return fault.New(fault.Unavailable, "no node serves the tasklist now").After(awayRetryAfter)
}

// empty answers a poll whose owner is replaced, or whose worker is drained.
func (at *poll) empty() { at.answer(&yardv1.PollResponse{Drain: at.drain}, nil) }
