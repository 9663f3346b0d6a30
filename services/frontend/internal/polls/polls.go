// Package polls is the polls that this frontend has taken, until they are answered.
//
// Owns: where each poll is: here, with the owner of a matching shard, or given tasks that start with their submit; and when one is ended.
// Never does: check a poll, or decide who gets a task: matching does, and history has the last word.
// On failure: a poll that no owner takes is sent again; polls of an owner that was replaced are answered empty, and their workers come again.
package polls

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/idle"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/direct"
	"github.com/yardmaster-io/yardmaster/shared/heap"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

const (
	// RetryEvery is how soon a poll that found no owner is sent again.
	RetryEvery = 100 * time.Millisecond
	// OverAfter is how long after its time a poll is answered empty that matching did not say to have
	// answered. Matching waits for up to 2 s for what is under way; an owner that lost its shard without a
	// successor answers nothing.
	OverAfter = 4 * time.Second
)

// Polls are those that are not answered, as far as matching has reported. They are safe for concurrent use.
//
//	waiting (no one has it) ──► sent to the owner of an epoch ──► answered, or over
//	   ▲  │                         │ there was no subscriber      └──► answered empty: a newer epoch is open
//	   │  └► over: answered         │
//	   │                            ├──► sent to the owner of another shard: its partition gave it up
//	   └────────────────────────────┘
//
// In place of being sent, the poll of a drained worker is held, and answered empty after a while; and one of a tasklist where nothing waits stays here
// (package idle), until it is given tasks that start with their submit (here.go), or is sent after all.
// Each is in one of these states, and changes it under the lock. So a poll is never with two
// owners, which would give it tasks twice.
type Polls struct {
	Config

	mu sync.Mutex
	// last numbers polls as they come, and each sending of one: its id. News name that, so what
	// is heard late of an earlier sending changes nothing.
	last uint64
	// sent are by the id of their sending, waiting by their number.
	sent    map[uint64]*Poll
	waiting map[uint64]*Poll
	// resting are those of drained workers, by their number.
	resting map[uint64]*Poll
	// drains is the revision of the catalog's drains that resting and here agree with.
	drains uint64
	// here are those that stay here, by their number; those for which submits are being stored are not.
	idle idle.Polls
	here map[uint64]*Poll
	// byInbox are all by where they are answered.
	byInbox map[inbox]*Poll
	// given is what was given to polls here.
	given direct.Given
	// byEnd are all, by when they are answered here.
	byEnd   heap.Heap[*Poll]
	stopped bool
}

// inbox is where the polls of a domain are answered.
type inbox struct{ domain, name string }

func (at *Poll) inbox() inbox { return inbox{at.Req.Domain, at.Req.ReplyTo} }

// Poll is one poll.
type Poll struct {
	// Req is what is sent. The id and what is left of the poll's time are written into it each time.
	Req *rpcv1.Poll
	// Places is how many it holds while it is kept here.
	Places int
	// Until is when its time is over.
	Until time.Time
	// Answer ends it, where it gets no tasks.
	Answer func(resp *yardv1.PollResponse, err error)

	number uint64
	shard  int
	// from is the partition that gave it up, if req.Moved.
	from int
	// ends is when it is answered here, if it is not before.
	ends time.Time
	// due is when a waiting one is sent again. It is not after until.
	due time.Time
	// drain is that of its worker, if that is known.
	drain *yardv1.WorkerDrain
	// place in polls.byEnd.
	place int
	// open counts the tasks that it is to be given once their submits are stored, gets are those that are, attempts theirs.
	open     int
	gets     []*yardv1.PolledTask
	attempts []direct.Attempt
	// over: it is forgotten.
	over bool
}

// effect is what is left to do for a poll once the lock is given up. Zero: nothing.
type effect struct {
	at *Poll
	// epoch is that of the owner that it is sent to, with this id; 0 = it is not sent.
	epoch, id uint64
	data      []byte
	// err is what it is answered with; empty: without a task.
	err   error
	empty bool
	// given: it is answered with what it gets.
	given bool
}

// Config is what Polls need.
type Config struct {
	// Epochs are the newest open ones by matching shard, 0 where none is known. The lock guards them.
	Epochs  []uint64
	Catalog *catalog.Catalog
	Tokens  *ids.Tokens
	// DirectStarts: polls may stay here, and be given tasks that start with their submit, AnswerBytes of them at most, and one at least.
	DirectStarts bool
	AnswerBytes  int
	Bus          Bus
	Metrics      Metrics
	Log          *slog.Logger
	// Left is called for each poll that is forgotten, with the lock.
	Left func(domain string, places int)
	// HandBack makes tasks ready again whose attempts no worker has.
	HandBack func(domain string, attempts []direct.Attempt)
	// ShowStart is called for each task of a submit that a poll is given with it.
	ShowStart func(s *Submit, task int)
}

// Bus sends what is not waited for.
type Bus interface {
	// PublishPoll sends a poll to the owner of a matching shard in this epoch. If no one
	// is there, PollBounced is called with this id, which no other sending has.
	PublishPoll(shard int, epoch, id uint64, data []byte) error
	// AnswerPoll answers a poll. If no one receives it, TasksBounced is called with this id.
	AnswerPoll(to string, json bool, id uint64, resp *yardv1.PollResponse) error
}

// Metrics count polls: those sent to matching, those that found no owner, those whose owner was replaced, and those that went to another partition.
type Metrics struct {
	Forwarded, WithoutOwner, Replaced, Moved *telemetry.Counter
}

// New makes Polls. The caller calls Tick now and then.
func New(c Config) *Polls {
	return &Polls{
		Config: c, sent: map[uint64]*Poll{}, waiting: map[uint64]*Poll{}, resting: map[uint64]*Poll{}, here: map[uint64]*Poll{},
		byInbox: map[inbox]*Poll{},
		byEnd:   heap.Heap[*Poll]{Less: func(a, b *Poll) bool { return a.ends.Before(b.ends) }, Place: func(at *Poll) *int { return &at.place }},
	}
}

// Len is how many polls are not answered, as far as is known.
func (p *Polls) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byEnd.Len()
}

// Forward takes a new poll. If it is not to stay here, it is sent to the newest owner of its shard, also if it may not wait.
func (p *Polls) Forward(at *Poll) {
	var e effect
	now := time.Now()
	p.mu.Lock()
	p.last++
	at.number, at.ends, at.shard = p.last, at.Until.Add(OverAfter), p.shardOf(at, int(at.Req.TasklistPartition))
	p.byEnd.Push(at)
	p.byInbox[at.inbox()] = at
	if !p.keep(at, now, p.idle.Keep) {
		e = p.route(at, now)
	}
	p.mu.Unlock()
	p.apply(e)
}

// route has a poll that no one has sent to the newest owner of its shard. Where none is known
// it waits. A poll of a drained worker is held. The caller holds the lock.
func (p *Polls) route(at *Poll, now time.Time) effect {
	if at.drain = p.DrainOf(at); at.drain != nil {
		return p.hold(at, now)
	}
	epoch := p.Epochs[at.shard]
	if epoch == 0 {
		return p.rest(at, now)
	}
	delete(p.waiting, at.number)
	p.last++
	at.Req.Id, at.Req.WaitMs = p.last, max(0, at.Until.Sub(now).Milliseconds())
	data, err := at.Req.MarshalVT()
	if err != nil {
		return p.end(at, fault.New(fault.Internal, "encode a poll: %v", err))
	}
	p.sent[at.Req.Id] = at
	return effect{at: at, epoch: epoch, id: at.Req.Id, data: data}
}

// unserved is the answer of a poll that no owner took in time.
func unserved() error {
	return fault.New(fault.Unavailable, "no node serves the tasklist now").After(awayRetryAfter)
}

// awayRetryAfter is how long a worker must wait whose poll no owner took.
const awayRetryAfter = 500 * time.Millisecond

// empty answers a poll without a task: its owner is replaced, its worker is drained, or its time is over.
func (at *Poll) empty() { at.Answer(&yardv1.PollResponse{Drain: at.drain}, nil) }

// rest has a poll wait that was not delivered, or ends it where its time would be over. One that was given up goes back to the
// partition that did, if there is an owner: the tasklist's other partitions are not to wait for one that no one serves. The caller
// holds the lock.
func (p *Polls) rest(at *Poll, now time.Time) effect {
	p.Metrics.WithoutOwner.Add(1)
	delete(p.sent, at.Req.Id)
	if from := p.shardOf(at, at.from); at.Req.Moved && !at.Req.Back && from != at.shard && p.Epochs[from] != 0 {
		at.shard, at.Req.TasklistPartition, at.Req.Back = from, int32(at.from), true
		return p.route(at, now)
	}
	due := now.Add(RetryEvery)
	if p.stopped || due.After(at.Until) {
		return p.end(at, unserved())
	}
	at.due = due
	p.waiting[at.number] = at
	return effect{}
}

// end forgets a poll that is answered with an error. The caller holds the lock.
func (p *Polls) end(at *Poll, err error) effect {
	p.forget(at)
	return effect{at: at, err: err}
}

// apply does what a change of state has left to do. The caller does not hold the lock.
func (p *Polls) apply(e effect) {
	switch {
	case e.err != nil:
		e.at.Answer(nil, e.err)
	case e.empty:
		e.at.empty()
	case e.given:
		p.answerGiven(e.at)
	case e.epoch != 0:
		p.Metrics.Forwarded.Add(1)
		if p.Bus.PublishPoll(e.at.shard, e.epoch, e.id, e.data) != nil {
			p.PollBounced(e.id)
		}
	}
}

// PollBounced has a poll wait whose sending no one took, or answers it where its time is over.
func (p *Polls) PollBounced(id uint64) {
	var e effect
	p.mu.Lock()
	if at := p.sent[id]; at != nil {
		e = p.rest(at, time.Now())
	}
	p.mu.Unlock()
	p.apply(e)
}

// TakeAnswered reads which polls matching has answered, and which it gives up to other partitions of their tasklists.
func (p *Polls) TakeAnswered(data []byte) {
	var m rpcv1.PollsAnswered
	if err := m.UnmarshalVT(data); err != nil {
		p.Log.Error("unreadable news of answered polls were dropped", "bytes", len(data), "error", err)
		return
	}
	p.answered(m.Ids)
	p.moved(m.Moved)
}

// answered forgets polls that matching has answered.
func (p *Polls) answered(ids []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if at := p.sent[id]; at != nil {
			p.forget(at)
		}
	}
}

// moved sends polls on that a partition of their tasklist gave up. A poll that is not known was answered, or sent on, meanwhile.
func (p *Polls) moved(all []*rpcv1.MovedPoll) {
	for _, m := range all {
		var e effect
		p.mu.Lock()
		if at := p.sent[m.Id]; at != nil {
			delete(p.sent, m.Id)
			e = p.move(at, int(m.TasklistPartition), time.Now())
		}
		p.mu.Unlock()
		p.apply(e)
	}
}

// move gives a poll that no one has to another partition. Where there is no such partition, or no time left, it is answered empty. The
// caller holds the lock.
func (p *Polls) move(at *Poll, partition int, now time.Time) effect {
	if partition < 0 || partition >= ids.PartitionsMax || !now.Before(at.Until) {
		p.forget(at)
		return effect{at: at, empty: true}
	}
	p.Metrics.Moved.Add(1)
	at.from, at.shard = int(at.Req.TasklistPartition), p.shardOf(at, partition)
	at.Req.TasklistPartition, at.Req.Moved, at.Req.Back = int32(partition), true, false
	return p.route(at, now)
}

// shardOf is the shard of a partition of a poll's tasklist.
func (p *Polls) shardOf(at *Poll, partition int) int {
	return ids.MatchingShard(at.Req.Domain, at.Req.Tasklist, partition, len(p.Epochs))
}

// Opened takes note of a shard's new owner.
func (p *Polls) Opened(shard int, epoch uint64) {
	var ended, due []*Poll
	var called []effect
	now := time.Now()
	p.mu.Lock()
	if epoch > p.Epochs[shard] {
		p.Epochs[shard] = epoch
		last := p.last
		for _, number := range p.idle.Unknown(func(l idle.Tasklist) bool { return ids.MatchingShard(l.Domain, l.Name, 0, len(p.Epochs)) == shard }, now) {
			called = append(called, p.leave(p.here[number], now))
		}
		for id, at := range p.sent { // to an older one, since epochs only rise
			if at.shard == shard && id <= last {
				ended = append(ended, at)
			}
		}
		for _, at := range p.waiting {
			if at.shard == shard {
				due = append(due, at)
			}
		}
	}
	for _, at := range ended {
		p.forget(at)
	}
	p.mu.Unlock()
	p.Metrics.Replaced.Add(int64(len(ended)))
	for _, at := range ended {
		at.empty()
	}
	for _, e := range called {
		p.apply(e)
	}
	p.sendAll(due)
}

// Next is when Tick is due, unless polls come; false: no poll is open.
func (p *Polls) Next() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byEnd.Len() == 0 {
		return at, false
	}
	at = p.byEnd.First().ends
	if leaves, ok := p.idle.Next(); ok && leaves.Before(at) {
		at = leaves
	}
	for _, one := range p.waiting {
		if one.due.Before(at) {
			at = one.due
		}
	}
	return at, true
}

// Tick sends waiting polls again, and ends those whose time is long over.
func (p *Polls) Tick(now time.Time) {
	var due []*Poll
	p.mu.Lock()
	for _, at := range p.waiting {
		if !now.Before(at.due) {
			due = append(due, at)
		}
	}
	p.mu.Unlock()
	p.sendAll(due)
	p.send(now, func() []uint64 { return p.idle.Due(now) })
	var over []effect
	p.mu.Lock()
	for p.byEnd.Len() > 0 && now.After(p.byEnd.First().ends) { // it does not wait, or it was due
		at := p.byEnd.First()
		p.forget(at)
		over = append(over, effect{at: at, empty: len(at.gets) == 0, given: len(at.gets) > 0})
	}
	p.mu.Unlock()
	for _, e := range over {
		p.apply(e)
	}
}

// endsAt sets when a poll is answered here. The caller holds the lock.
func (p *Polls) endsAt(at *Poll, ends time.Time) {
	at.ends = ends
	p.byEnd.Fix(at)
}

// sendAll sends those that wait still, in the order in which they came. Those whose time is
// over are answered.
func (p *Polls) sendAll(due []*Poll) {
	slices.SortFunc(due, func(a, b *Poll) int { return cmp.Compare(a.number, b.number) })
	for _, at := range due {
		var e effect
		p.mu.Lock()
		now := time.Now()
		switch {
		case p.waiting[at.number] == nil: // sent or answered meanwhile
		case now.Before(at.Until):
			e = p.route(at, now)
		default:
			e = p.end(at, unserved())
		}
		p.mu.Unlock()
		p.apply(e)
	}
}

// endEach answers those of some polls that have ended, without a task.
func (p *Polls) endEach(some map[uint64]*Poll, ended func(*Poll) bool) {
	var all []*Poll
	p.mu.Lock()
	for _, at := range some {
		if ended(at) {
			all = append(all, at)
		}
	}
	for _, at := range all {
		p.forget(at)
	}
	p.mu.Unlock()
	for _, at := range all {
		at.empty()
	}
}

// Stop answers those that no one has; the others are matching's.
func (p *Polls) Stop() {
	var all []effect
	p.mu.Lock()
	p.stopped = true
	for _, at := range p.waiting {
		all = append(all, p.end(at, unserved()))
	}
	for _, some := range []map[uint64]*Poll{p.resting, p.here} {
		for _, at := range some {
			p.forget(at)
			all = append(all, effect{at: at, empty: true})
		}
	}
	p.mu.Unlock()
	for _, e := range all {
		p.apply(e)
	}
}

// forget removes a poll and leaves its places. The caller holds the lock.
func (p *Polls) forget(at *Poll) {
	p.Left(at.Req.Domain, at.Places)
	delete(p.sent, at.Req.Id)
	delete(p.waiting, at.number)
	delete(p.resting, at.number)
	delete(p.here, at.number)
	p.idle.Remove(at.number)
	p.byEnd.Remove(at)
	if p.byInbox[at.inbox()] == at {
		delete(p.byInbox, at.inbox())
	}
	at.over = true
}
