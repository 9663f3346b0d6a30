package gateway

import (
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/validate"
)

const (
	// pollRetryEvery is how soon a poll that found no owner is sent again.
	pollRetryEvery = 100 * time.Millisecond
	// pollHeardAfter is when a poll counts as arrived: the server says at once
	// that nobody is there, and then only.
	pollHeardAfter = 2 * time.Second
)

// polls are those forwarded lately, in case nobody was there to take them. A
// poll that waits at matching is not held here.
type polls struct {
	g *Gateway

	mu        sync.Mutex
	last      uint64
	forwarded map[uint64]*poll
	again     []*poll // unheard, in the order they are due
	stopped   bool
}

type poll struct {
	shard  int
	data   []byte
	until  time.Time
	due    time.Time // when to send it again, or to forget it
	answer Answer
}

func newPolls(g *Gateway) *polls {
	return &polls{g: g, forwarded: map[uint64]*poll{}}
}

// Poll asks for work (tasks.poll). Matching answers the asker's inbox itself.
func (g *Gateway) Poll(c Call, req *yardv1.PollRequest, answer Answer) {
	if err := g.domain(&c); err != nil {
		answer(nil, err)
		return
	}
	if err := validate.Poll(req); err != nil {
		answer(nil, err)
		return
	}
	if c.Reply == "" { // tasks would be granted that nobody runs
		answer(nil, fault.New(fault.InvalidArgument, "a poll needs a reply subject"))
		return
	}
	until := c.Received.Add(time.Duration(req.WaitMs) * time.Millisecond)
	data, err := (&rpcv1.Poll{
		Domain: c.Domain, Tasklist: req.Tasklist, MaxTasks: req.MaxTasks, Types: req.Types, Worker: req.Worker,
		ReplyTo: c.Reply, Json: c.JSON, UntilMs: until.UnixMilli(),
	}).MarshalVT()
	if err != nil {
		answer(nil, fault.New(fault.Internal, "encode a poll: %v", err))
		return
	}
	// There is one tasklist partition per tasklist so far: the root, 0.
	shard := ids.MatchingShard(c.Domain, req.Tasklist, 0, g.Partitioning.Matching)
	g.polls.forward(&poll{shard: shard, data: data, until: until, answer: answer})
	answer(nil, nil)
}

func (p *polls) forward(at *poll) {
	p.g.metrics.polls.Add(1)
	p.mu.Lock()
	p.last++
	id := p.last
	at.due = time.Now().Add(pollHeardAfter)
	p.forwarded[id] = at
	p.mu.Unlock()
	if p.g.Bus.PublishPoll(at.shard, id, at.data) != nil {
		p.g.PollUnheard(id)
	}
}

// PollUnheard tells that nobody took a forwarded poll.
func (g *Gateway) PollUnheard(id uint64) {
	p, now := g.polls, time.Now()
	p.mu.Lock()
	at := p.forwarded[id]
	delete(p.forwarded, id)
	over := at != nil && (p.stopped || now.Add(pollRetryEvery).After(at.until))
	if at != nil && !over {
		at.due = now.Add(pollRetryEvery)
		p.again = append(p.again, at)
	}
	p.mu.Unlock()
	if at == nil {
		return
	}
	g.metrics.pollsUnheard.Add(1)
	if over {
		at.unavailable()
	}
}

func (at *poll) unavailable() {
	at.answer(nil, fault.New(fault.Unavailable, "nobody serves the tasklist right now").After(awayRetryAfter))
}

// tick sends unheard polls again and forgets those that arrived.
func (p *polls) tick(now time.Time) {
	p.mu.Lock()
	var due []*poll
	for len(p.again) > 0 && !now.Before(p.again[0].due) {
		due = append(due, p.again[0])
		p.again = p.again[1:]
	}
	for id, at := range p.forwarded {
		if now.After(at.due) {
			delete(p.forwarded, id)
		}
	}
	p.mu.Unlock()
	for _, at := range due {
		p.forward(at)
	}
}

// stop answers the unheard ones; those forwarded are matching's.
func (p *polls) stop() {
	p.mu.Lock()
	p.stopped = true
	again := p.again
	p.again = nil
	p.mu.Unlock()
	for _, at := range again {
		at.unavailable()
	}
}
