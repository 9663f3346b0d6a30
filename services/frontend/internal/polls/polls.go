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
	// calls are what changes of state have left to do once the lock is given up.
	calls []func()
}

// later has a call made once the lock is given up, by unlock. The caller holds the lock.
func (p *Polls) later(call func()) { p.calls = append(p.calls, call) }

// unlock gives the lock up, and makes the calls that wait for that.
func (p *Polls) unlock() {
	calls := p.calls
	p.calls = nil
	p.mu.Unlock()
	for _, call := range calls {
		call()
	}
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
	now := time.Now()
	p.mu.Lock()
	defer p.unlock()
	p.last++
	at.number, at.ends, at.shard = p.last, at.Until.Add(OverAfter), p.shardOf(at, int(at.Req.TasklistPartition))
	p.byEnd.Push(at)
	p.byInbox[at.inbox()] = at
	if !p.keep(at, now, p.idle.Keep) {
		p.route(at, now)
	}
}

// route has a poll that no one has sent to the newest owner of its shard. Where none is known
// it waits. A poll of a drained worker is held. The caller holds the lock.
func (p *Polls) route(at *Poll, now time.Time) {
	if at.drain = p.DrainOf(at); at.drain != nil {
		p.hold(at, now)
		return
	}
	epoch := p.Epochs[at.shard]
	if epoch == 0 {
		p.rest(at, now)
		return
	}
	delete(p.waiting, at.number)
	p.last++
	at.Req.Id, at.Req.WaitMs = p.last, max(0, at.Until.Sub(now).Milliseconds())
	data, err := at.Req.MarshalVT()
	if err != nil {
		p.end(at, func() { at.Answer(nil, fault.New(fault.Internal, "encode a poll: %v", err)) })
		return
	}
	id, shard := at.Req.Id, at.shard
	p.sent[id] = at
	p.later(func() {
		p.Metrics.Forwarded.Add(1)
		if p.Bus.PublishPoll(shard, epoch, id, data) != nil {
			p.PollBounced(id)
		}
	})
}

// unserved answers a poll that no owner took in time.
func (at *Poll) unserved() {
	at.Answer(nil, fault.New(fault.Unavailable, "no node serves the tasklist now").After(awayRetryAfter))
}

// awayRetryAfter is how long a worker must wait whose poll no owner took.
const awayRetryAfter = 500 * time.Millisecond

// empty answers a poll without a task: its owner is replaced, its worker is drained, or its time is over.
func (at *Poll) empty() { at.Answer(&yardv1.PollResponse{Drain: at.drain}, nil) }

// rest has a poll wait that was not delivered, or ends it where its time would be over. One that was given up goes back to the
// partition that did, if there is an owner: the tasklist's other partitions are not to wait for one that no one serves. The caller
// holds the lock.
func (p *Polls) rest(at *Poll, now time.Time) {
	p.Metrics.WithoutOwner.Add(1)
	delete(p.sent, at.Req.Id)
	if from := p.shardOf(at, at.from); at.Req.Moved && !at.Req.Back && from != at.shard && p.Epochs[from] != 0 {
		at.shard, at.Req.TasklistPartition, at.Req.Back = from, int32(at.from), true
		p.route(at, now)
		return
	}
	due := now.Add(RetryEvery)
	if p.stopped || due.After(at.Until) {
		p.end(at, at.unserved)
		return
	}
	at.due = due
	p.waiting[at.number] = at
}

// end forgets a poll, and has it answered. The caller holds the lock.
func (p *Polls) end(at *Poll, answer func()) {
	p.forget(at)
	p.later(answer)
}

// PollBounced has a poll wait whose sending no one took, or answers it where its time is over.
func (p *Polls) PollBounced(id uint64) {
	p.mu.Lock()
	defer p.unlock()
	if at := p.sent[id]; at != nil {
		p.rest(at, time.Now())
	}
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
	p.mu.Lock()
	defer p.unlock()
	for _, m := range all {
		if at := p.sent[m.Id]; at != nil {
			delete(p.sent, m.Id)
			p.move(at, int(m.TasklistPartition), time.Now())
		}
	}
}

// move gives a poll that no one has to another partition. Where there is no such partition, or no time left, it is answered empty. The
// caller holds the lock.
func (p *Polls) move(at *Poll, partition int, now time.Time) {
	if partition < 0 || partition >= ids.PartitionsMax || !now.Before(at.Until) {
		p.end(at, at.empty)
		return
	}
	p.Metrics.Moved.Add(1)
	at.from, at.shard = int(at.Req.TasklistPartition), p.shardOf(at, partition)
	at.Req.TasklistPartition, at.Req.Moved, at.Req.Back = int32(partition), true, false
	p.route(at, now)
}

// shardOf is the shard of a partition of a poll's tasklist.
func (p *Polls) shardOf(at *Poll, partition int) int {
	return ids.MatchingShard(at.Req.Domain, at.Req.Tasklist, partition, len(p.Epochs))
}

// Opened takes note of a shard's new owner.
func (p *Polls) Opened(shard int, epoch uint64) {
	now := time.Now()
	p.mu.Lock()
	defer p.unlock()
	if epoch <= p.Epochs[shard] {
		return
	}
	p.Epochs[shard] = epoch
	last := p.last
	p.leave(p.idle.Unknown(func(l idle.Tasklist) bool { return ids.MatchingShard(l.Domain, l.Name, 0, len(p.Epochs)) == shard }, now), now)
	for id, at := range p.sent { // to an older one, since epochs only rise
		if at.shard == shard && id <= last {
			p.Metrics.Replaced.Add(1)
			p.end(at, at.empty)
		}
	}
	p.sendAgain(func(at *Poll) bool { return at.shard == shard })
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
	p.mu.Lock()
	defer p.unlock()
	p.sendAgain(func(at *Poll) bool { return !now.Before(at.due) })
	p.leave(p.idle.Due(now), now)
	for p.byEnd.Len() > 0 && now.After(p.byEnd.First().ends) { // it does not wait, or it was due
		at := p.byEnd.First()
		if len(at.gets) > 0 {
			p.end(at, func() { p.answerGiven(at) })
		} else {
			p.end(at, at.empty)
		}
	}
}

// endsAt sets when a poll is answered here. The caller holds the lock.
func (p *Polls) endsAt(at *Poll, ends time.Time) {
	at.ends = ends
	p.byEnd.Fix(at)
}

// sendAgain sends the waiting polls that are due, in the order in which they came. Those whose time is over are answered. The caller holds the lock.
func (p *Polls) sendAgain(due func(*Poll) bool) {
	var all []*Poll
	for _, at := range p.waiting {
		if due(at) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b *Poll) int { return cmp.Compare(a.number, b.number) })
	now := time.Now()
	for _, at := range all {
		if now.Before(at.Until) {
			p.route(at, now)
		} else {
			p.end(at, at.unserved)
		}
	}
}

// Stop answers those that no one has; the others are matching's.
func (p *Polls) Stop() {
	p.mu.Lock()
	defer p.unlock()
	p.stopped = true
	for _, at := range p.waiting {
		p.end(at, at.unserved)
	}
	for _, some := range []map[uint64]*Poll{p.resting, p.here} {
		for _, at := range some {
			p.end(at, at.empty)
		}
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
