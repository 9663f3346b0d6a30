package poll

import (
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/call"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"

	core "github.com/yardmaster-io/yardmaster/services/frontend/internal/core/poll"
)

// one is a poll.
type one = core.Poll[*request]

// request is what is kept of a poll until it ends.
type request struct {
	// message is what is sent, but for what a sending has of its own.
	message *rpcv1.Poll
	// places is how many it takes up.
	places int
	answer call.Answer
	// tasks are those of the attempts that it was given.
	tasks []*yardv1.PolledTask
}

// metrics count polls: those sent to matching, those that found no owner, those whose owner was replaced, and those that went to another partition.
type metrics struct{ forwarded, withoutOwner, replaced, moved *telemetry.Counter }

func newMetrics(m *telemetry.Metrics) metrics {
	return metrics{m.Counter(signals.PollsForwarded), m.Counter(signals.PollsWithoutOwner), m.Counter(signals.PollsOwnerReplaced), m.Counter(signals.PollsMoved)}
}

// awayRetryAfter is how long a worker must wait whose poll no owner took.
const awayRetryAfter = 500 * time.Millisecond

// change changes the state of polls, and does what follows.
func (p *Polls) change(f func(c *core.Polls[*request], now time.Time)) {
	now := time.Now()
	p.mu.Lock()
	f(p.waiting, now)
	p.unlock()
}

// unlock ends a change: it does what follows without the lock.
func (p *Polls) unlock() {
	actions, n := p.waiting.Actions, p.waiting.Counts
	p.waiting.Actions, p.waiting.Counts = nil, core.Counts{}
	calls := make([]func(), len(actions))
	for i := range actions {
		calls[i] = p.callOf(&actions[i])
	}
	p.mu.Unlock()
	if n != (core.Counts{}) {
		p.metrics.withoutOwner.Add(n.WithoutOwner)
		p.metrics.replaced.Add(n.Replaced)
		p.metrics.moved.Add(n.Moved)
	}
	for _, do := range calls {
		do()
	}
}

// callOf is what an action does without the lock. It frees the places of a poll that ends.
func (p *Polls) callOf(a *core.Action[*request]) func() {
	switch a.Do {
	case core.HandBack:
		return func() { p.handBack(a.Domain, a.Attempts) }
	case core.Send:
		return p.sending(a)
	default:
	}
	at, r := a.Poll, a.Poll.Shell
	p.places.Give(at.Domain, r.places)
	p.Quotas.Close(at.Domain)
	switch a.Do {
	case core.Empty:
		return func() { r.answer(&yardv1.PollResponse{Drain: p.drainOf(at)}, nil) }
	case core.Unserved:
		return func() {
			r.answer(nil, fault.New(fault.Unavailable, "no node serves the tasklist now").After(awayRetryAfter))
		}
	case core.Assign:
		tasks := r.tasks
		return func() {
			if err := p.Bus.AnswerPoll(at.Inbox, r.message.Json, a.ID, &yardv1.PollResponse{Tasks: tasks}); err != nil {
				p.Log.Debug("a poll was not answered, and its tasks are handed back", "error", err)
				p.TasksBounced(a.ID)
			}
		}
	default: // matching has answered it
		return func() {}
	}
}

// sending sends a poll.
func (p *Polls) sending(a *core.Action[*request]) func() {
	at, m := a.Poll, a.Poll.Shell.message
	m.Id, m.WaitMs, m.TasklistPartition, m.Moved, m.Back = a.ID, a.Left.Milliseconds(), int32(at.Partition), at.Moved, at.Back
	data, err := m.MarshalVT()
	return func() {
		p.metrics.forwarded.Add(1)
		if err != nil || p.Bus.PublishPoll(a.Shard, a.Epoch, a.ID, data) != nil {
			p.PollBounced(a.ID)
		}
	}
}

// drainOf is the drain of the worker of a poll, or nil.
func (p *Polls) drainOf(at *one) *yardv1.WorkerDrain {
	if at.WorkerID == "" {
		return nil
	}
	return p.Catalog.DrainedWorker(at.Domain, at.WorkerID)
}

// rules are what the catalog says of polls.
func (d Deps) rules() core.Rules {
	return core.Rules{
		Drain: func(domain, workerID string) core.Drain {
			w := d.Catalog.DrainedWorker(domain, workerID)
			return core.Drain{Stop: w.GetStop(), SinceMS: w.GetSinceMs()}
		},
		MayWait: func(domain, tasklist string) bool {
			return d.DirectStarts && direct.Single(d.Catalog, domain, tasklist)
		},
		AnswerBytes: d.AnswerBytes,
	}
}

// Tick does what is due.
func (p *Polls) Tick(now time.Time) {
	p.mu.Lock()
	p.waiting.Tick(now)
	p.balancer.Forget(now)
	p.unlock()
}

// Next is when Tick is due, unless polls come; false: no poll is open.
func (p *Polls) Next() (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Next()
}

// Len is how many polls are not answered, as far as is known.
func (p *Polls) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len()
}

// Stop answers those that no one has; the others are matching's.
func (p *Polls) Stop() { p.change(func(c *core.Polls[*request], _ time.Time) { c.Stop() }) }

// Opened takes note that a new owner of a matching shard is ready, and that those before it can grant nothing any more: polls that wait for an owner are sent
// to it, and polls that an older one has are answered empty, so that their askers come again.
func (p *Polls) Opened(shard int, epoch uint64) {
	p.change(func(c *core.Polls[*request], now time.Time) { c.Opened(shard, epoch, now) })
}

// PollBounced has a poll wait whose sending no one took, or answers it if its time is over.
func (p *Polls) PollBounced(id uint64) {
	p.change(func(c *core.Polls[*request], now time.Time) { c.Bounced(id, now) })
}

// TasksBounced hands back what was given to a poll in an answer that no one received.
func (p *Polls) TasksBounced(id uint64) {
	p.change(func(c *core.Polls[*request], _ time.Time) { c.TasksBounced(id) })
}

// TakeAnswered reads which polls matching has answered, and which it gives up to other partitions of their tasklists.
func (p *Polls) TakeAnswered(data []byte) {
	var m rpcv1.PollsAnswered
	if err := m.UnmarshalVT(data); err != nil {
		p.Log.Error("an unreadable report of answered polls was dropped", "bytes", len(data), "error", err)
		return
	}
	p.change(func(c *core.Polls[*request], now time.Time) {
		c.Answered(m.Ids)
		for _, moved := range m.Moved {
			c.GaveUp(moved.Id, int(moved.TasklistPartition), now)
		}
	})
}

// TakeGivenUp hands back what was given to inboxes that have not received it, and ends their polls that matching does not have (topology.HintGivenUp).
func (p *Polls) TakeGivenUp(data []byte) {
	var m rpcv1.GivenUp
	if m.UnmarshalVT(data) != nil {
		return // it is a hint: the leases of the attempts are left
	}
	p.change(func(c *core.Polls[*request], _ time.Time) {
		for _, name := range m.Inboxes {
			c.Lost(m.Domain, name)
		}
	})
}

// TakeSilent reads which workers fell silent, or are drained (topology.HintSilent).
func (p *Polls) TakeSilent(data []byte) {
	var m rpcv1.Silent
	if err := m.UnmarshalVT(data); err != nil {
		p.Log.Error("an unreadable hint of silent workers was dropped", "bytes", len(data), "error", err)
		return
	}
	type worker struct{ domain, id string }
	silent := make(map[worker]bool, len(m.Workers))
	for _, w := range m.Workers {
		silent[worker{w.Domain, w.WorkerId}] = true
	}
	p.change(func(c *core.Polls[*request], _ time.Time) {
		c.Silent(func(domain, id string) bool { return silent[worker{domain, id}] })
	})
}

// ReleaseDrained answers the polls that rest, or wait here, of workers whose drain has changed, if the catalog has other drains than at the last call.
func (p *Polls) ReleaseDrained() {
	p.change(func(c *core.Polls[*request], _ time.Time) {
		if revision := catalog.Workers.Revision(p.Catalog); revision != p.drains {
			p.drains = revision
			c.DrainsChanged()
		}
	})
}

// wanted takes in how many triggers of a tasklist wait at matching.
func (p *Polls) wanted(l *rpcv1.PartitionLoad) {
	p.change(func(c *core.Polls[*request], now time.Time) {
		c.Wanted(idle.Tasklist{Domain: l.Domain, Name: l.Tasklist}, int(min(l.Triggers, math.MaxInt32)), l.Types, now)
	})
}
