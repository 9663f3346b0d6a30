package gateway

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/heap"
)

const (
	// pollRetryEvery is how soon a poll that found no owner is sent again.
	pollRetryEvery = 100 * time.Millisecond
	// pollOverAfter is how long after its time a poll is answered empty that matching did not say to have
	// answered. Matching waits for up to 2 s for what is under way; an owner that lost its shard without a
	// successor answers nothing.
	pollOverAfter = 4 * time.Second
)

// polls are those that are not answered, as far as matching has reported.
//
//	waiting (no one has it) ──► sent to the owner of an epoch ──► answered, or over
//	   ▲  │                         │ there was no subscriber      └──► answered empty: a newer epoch is open
//	   │  └► over: answered         │
//	   │                            ├──► sent to the owner of another shard: its partition gave it up
//	   └────────────────────────────┘
//
// In place of being sent, the poll of a drained worker is held, and answered empty after a while.
// Each is in one of the three states, and changes it under the lock. So a poll is never with two
// owners, which would give it tasks twice.
type polls struct {
	g *Gateway

	mu sync.Mutex
	// last numbers polls as they come, and each sending of one: its id. News name that, so what
	// is heard late of an earlier sending changes nothing.
	last uint64
	// sent are by the id of their sending, waiting by their number.
	sent    map[uint64]*poll
	waiting map[uint64]*poll
	// held are those of drained workers, by their number.
	held map[uint64]*poll
	// byEnd are all, by when they are answered here.
	byEnd heap.Heap[*poll]
	// epochs are the newest open ones by shard, 0 where none is known.
	epochs  []uint64
	stopped bool
}

type poll struct {
	number uint64
	// req is what is sent. The id and what is left of the poll's time are written into it each time.
	req *rpcv1.Poll
	// places is how many it holds while it is kept here.
	places int
	shard  int
	// from is the partition that gave it up, if req.Moved.
	from  int
	until time.Time
	// ends is when it is answered here, if it is not before.
	ends time.Time
	// due is when a waiting one is sent again. It is not after until.
	due    time.Time
	answer Answer
	// drain is that of its worker, if that is known.
	drain *yardv1.WorkerDrain
	// place in polls.byEnd.
	place int
}

// effect is what is left to do for a poll once the lock is given up. Zero: nothing.
type effect struct {
	at *poll
	// epoch is that of the owner that it is sent to, with this id; 0 = it is not sent.
	epoch, id uint64
	data      []byte
	// err is what it is answered with; empty: without a task.
	err   error
	empty bool
}

func newPolls(g *Gateway) *polls {
	return &polls{
		g: g, sent: map[uint64]*poll{}, waiting: map[uint64]*poll{}, held: map[uint64]*poll{}, epochs: make([]uint64, g.Partitioning.Matching),
		byEnd: heap.Heap[*poll]{Less: func(a, b *poll) bool { return a.ends.Before(b.ends) }, Place: func(at *poll) *int { return &at.place }},
	}
}

// forward takes a new poll and sends it to the newest owner of its shard, also if it may not wait.
func (p *polls) forward(at *poll) {
	p.mu.Lock()
	p.last++
	at.number, at.ends = p.last, at.until.Add(pollOverAfter)
	p.byEnd.Push(at)
	e := p.give(at, time.Now())
	p.mu.Unlock()
	p.carryOut(e)
}

// give has a poll that no one has sent to the newest owner of its shard. Where none is known
// it waits. A poll of a drained worker is held. The caller holds the lock.
func (p *polls) give(at *poll, now time.Time) effect {
	if at.drain = p.drainOf(at); at.drain != nil {
		return p.hold(at, now)
	}
	epoch := p.epochs[at.shard]
	if epoch == 0 {
		return p.rest(at, now)
	}
	delete(p.waiting, at.number)
	p.last++
	at.req.Id, at.req.WaitMs = p.last, max(0, at.until.Sub(now).Milliseconds())
	data, err := at.req.MarshalVT()
	if err != nil {
		return p.end(at, fault.New(fault.Internal, "encode a poll: %v", err))
	}
	p.sent[at.req.Id] = at
	return effect{at: at, epoch: epoch, id: at.req.Id, data: data}
}

// rest has a poll wait that was not delivered, or ends it where its time would be over. One that was given up goes back to the
// partition that did, if there is an owner: the tasklist's other partitions are not to wait for one that no one serves. The caller
// holds the lock.
func (p *polls) rest(at *poll, now time.Time) effect {
	p.g.metrics.pollsWithoutOwner.Add(1)
	delete(p.sent, at.req.Id)
	if from := p.shardOf(at, at.from); at.req.Moved && !at.req.Back && from != at.shard && p.epochs[from] != 0 {
		at.shard, at.req.TasklistPartition, at.req.Back = from, int32(at.from), true
		return p.give(at, now)
	}
	due := now.Add(pollRetryEvery)
	if p.stopped || due.After(at.until) {
		return p.end(at, unserved())
	}
	at.due = due
	p.waiting[at.number] = at
	return effect{}
}

// end forgets a poll that is answered with an error. The caller holds the lock.
func (p *polls) end(at *poll, err error) effect {
	p.forget(at)
	return effect{at: at, err: err}
}

// carryOut does what a change of state has left to do. The caller does not hold the lock.
func (p *polls) carryOut(e effect) {
	switch {
	case e.err != nil:
		e.at.answer(nil, e.err)
	case e.empty:
		e.at.empty()
	case e.epoch != 0:
		p.g.metrics.polls.Add(1)
		if p.g.Bus.PublishPoll(e.at.shard, e.epoch, e.id, e.data) != nil {
			p.bounced(e.id)
		}
	}
}

// bounced has a poll wait whose sending no one took, or answers it where its time is over.
func (p *polls) bounced(id uint64) {
	var e effect
	p.mu.Lock()
	if at := p.sent[id]; at != nil {
		e = p.rest(at, time.Now())
	}
	p.mu.Unlock()
	p.carryOut(e)
}

// answered forgets polls that matching has answered.
func (p *polls) answered(ids []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if at := p.sent[id]; at != nil {
			p.forget(at)
		}
	}
}

// moved sends polls on that a partition of their tasklist gave up. A poll that is not known was answered, or sent on, meanwhile.
func (p *polls) moved(all []*rpcv1.MovedPoll) {
	for _, m := range all {
		var e effect
		p.mu.Lock()
		if at := p.sent[m.Id]; at != nil {
			delete(p.sent, m.Id)
			e = p.move(at, int(m.TasklistPartition), time.Now())
		}
		p.mu.Unlock()
		p.carryOut(e)
	}
}

// move gives a poll that no one has to another partition. Where there is no such partition, or no time left, it is answered empty. The
// caller holds the lock.
func (p *polls) move(at *poll, partition int, now time.Time) effect {
	if partition < 0 || partition >= ids.PartitionsMax || !now.Before(at.until) {
		p.forget(at)
		return effect{at: at, empty: true}
	}
	p.g.metrics.pollsMoved.Add(1)
	at.from, at.shard = int(at.req.TasklistPartition), p.shardOf(at, partition)
	at.req.TasklistPartition, at.req.Moved, at.req.Back = int32(partition), true, false
	return p.give(at, now)
}

// shardOf is the shard of a partition of a poll's tasklist.
func (p *polls) shardOf(at *poll, partition int) int {
	return ids.MatchingShard(at.req.Domain, at.req.Tasklist, partition, p.g.Partitioning.Matching)
}

// opened takes note of a shard's new owner.
func (p *polls) opened(shard int, epoch uint64) {
	var ended, due []*poll
	p.mu.Lock()
	if epoch > p.epochs[shard] {
		p.epochs[shard] = epoch
		for _, at := range p.sent { // to an older one, since epochs only rise
			if at.shard == shard {
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
	p.g.metrics.pollsReplaced.Add(int64(len(ended)))
	for _, at := range ended {
		at.empty()
	}
	p.sendAll(due)
}

// tick sends waiting polls again, and ends those whose time is long over.
func (p *polls) tick(now time.Time) {
	var due []*poll
	p.mu.Lock()
	for _, at := range p.waiting {
		if !now.Before(at.due) {
			due = append(due, at)
		}
	}
	p.mu.Unlock()
	p.sendAll(due)
	var over []*poll
	p.mu.Lock()
	for p.byEnd.Len() > 0 && now.After(p.byEnd.First().ends) { // it does not wait, or it was due
		over = append(over, p.byEnd.First())
		p.forget(p.byEnd.First())
	}
	p.mu.Unlock()
	for _, at := range over {
		at.empty()
	}
}

// endsAt sets when a poll is answered here. The caller holds the lock.
func (p *polls) endsAt(at *poll, ends time.Time) {
	at.ends = ends
	p.byEnd.Fix(at)
}

// sendAll sends those that wait still, in the order in which they came. Those whose time is
// over are answered.
func (p *polls) sendAll(due []*poll) {
	slices.SortFunc(due, func(a, b *poll) int { return cmp.Compare(a.number, b.number) })
	for _, at := range due {
		var e effect
		p.mu.Lock()
		now := time.Now()
		switch {
		case p.waiting[at.number] == nil: // sent or answered meanwhile
		case now.Before(at.until):
			e = p.give(at, now)
		default:
			e = p.end(at, unserved())
		}
		p.mu.Unlock()
		p.carryOut(e)
	}
}

// endEach answers those of some polls that have ended, without a task.
func (p *polls) endEach(some map[uint64]*poll, ended func(*poll) bool) {
	var all []*poll
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

// stop answers those that no one has; the others are matching's.
func (p *polls) stop() {
	var all []effect
	p.mu.Lock()
	p.stopped = true
	for _, at := range p.waiting {
		all = append(all, p.end(at, unserved()))
	}
	for _, at := range p.held {
		p.forget(at)
		all = append(all, effect{at: at, empty: true})
	}
	p.mu.Unlock()
	for _, e := range all {
		p.carryOut(e)
	}
}

// forget removes a poll and leaves its places. The caller holds the lock.
func (p *polls) forget(at *poll) {
	p.g.pools.polls.Give(at.req.Domain, at.places)
	p.g.Quotas.Close(at.req.Domain)
	delete(p.sent, at.req.Id)
	delete(p.waiting, at.number)
	delete(p.held, at.number)
	p.byEnd.Remove(at)
}
