package gateway

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
)

const (
	// pollRetryEvery is how soon a poll that found no owner is sent again.
	pollRetryEvery = 100 * time.Millisecond
	// pollOverAfter is how long after its time a poll is forgotten that matching did not
	// say to have answered.
	pollOverAfter = time.Second
)

// polls are those that are not answered, as far as matching has told.
//
//	waiting (nobody has it) ──► sent to the owner of an epoch ──► answered, or over
//	   ▲                            │ nobody was there      └──► answered empty: a newer epoch is open
//	   └────────────────────────────┘
type polls struct {
	g *Gateway

	mu   sync.Mutex
	last uint64
	open map[uint64]*poll
	// waiting are the open ones that nobody has.
	waiting map[uint64]*poll
	byEnd   byEnd
	// epochs are the newest open ones by shard, 0 where none is known.
	epochs  []uint64
	stopped bool
}

type poll struct {
	// req is what is sent; how long it may wait is written into it each time.
	req *rpcv1.Poll
	// places is how many it holds while it is kept here.
	places int
	shard  int
	// epoch is that of the owner it was sent to, 0 while nobody has it.
	epoch  uint64
	until  time.Time
	due    time.Time // when a waiting one is sent again
	answer Answer
	// place in polls.byEnd.
	place int
}

func newPolls(g *Gateway) *polls {
	return &polls{g: g, open: map[uint64]*poll{}, waiting: map[uint64]*poll{}, epochs: make([]uint64, g.Partitioning.Matching)}
}

// newID names a poll.
func (p *polls) newID() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return p.last
}

// forward takes a new poll and sends it to the newest owner of its shard.
func (p *polls) forward(at *poll) {
	p.mu.Lock()
	p.open[at.req.Id] = at
	heap.Push(&p.byEnd, at)
	epoch := p.give(at)
	p.mu.Unlock()
	p.send(at, epoch)
}

// give notes that a poll goes to the newest owner of its shard. The caller holds the
// lock, and sends it then: a poll that is sent twice gets tasks twice.
func (p *polls) give(at *poll) (epoch uint64) {
	at.epoch = p.epochs[at.shard]
	delete(p.waiting, at.req.Id)
	return at.epoch
}

// send sends a given poll, with what is left of its time.
func (p *polls) send(at *poll, epoch uint64) {
	p.g.metrics.polls.Add(1)
	at.req.WaitMs = max(0, time.Until(at.until).Milliseconds())
	data, err := at.req.MarshalVT()
	if err != nil || epoch == 0 || p.g.Bus.PublishPoll(at.shard, epoch, at.req.Id, data) != nil {
		p.unheard(at.req.Id, time.Now())
	}
}

// unheard has a poll wait that nobody took, or answers it where its time is over.
func (p *polls) unheard(id uint64, now time.Time) {
	p.mu.Lock()
	at := p.open[id]
	over := at != nil && (p.stopped || now.Add(pollRetryEvery).After(at.until))
	switch {
	case over:
		p.forget(at)
	case at != nil:
		at.epoch, at.due = 0, now.Add(pollRetryEvery)
		p.waiting[id] = at
	}
	p.mu.Unlock()
	if at != nil {
		p.g.metrics.pollsUnheard.Add(1)
	}
	if over {
		at.unavailable()
	}
}

// answered forgets polls that matching has answered.
func (p *polls) answered(ids []uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		if at := p.open[id]; at != nil {
			p.forget(at)
		}
	}
}

// opened takes note of a shard's new owner.
func (p *polls) opened(shard int, epoch uint64) {
	var ended, due []*poll
	p.mu.Lock()
	if epoch > p.epochs[shard] {
		p.epochs[shard] = epoch
		for _, at := range p.open {
			switch {
			case at.shard != shard:
			case p.waiting[at.req.Id] != nil:
				due = append(due, at)
			case at.epoch != 0: // an older one, since epochs only rise
				ended = append(ended, at)
			}
		}
	}
	for _, at := range ended {
		p.forget(at)
	}
	p.mu.Unlock()
	p.g.metrics.pollsEnded.Add(int64(len(ended)))
	for _, at := range ended {
		at.empty()
	}
	p.sendAll(due)
}

// tick sends waiting polls again and forgets those whose time is over.
func (p *polls) tick(now time.Time) {
	p.mu.Lock()
	var due []*poll
	for _, at := range p.waiting {
		if !now.Before(at.due) {
			due = append(due, at)
		}
	}
	for len(p.byEnd) > 0 && now.Sub(p.byEnd[0].until) > pollOverAfter {
		p.forget(p.byEnd[0])
	}
	p.mu.Unlock()
	p.sendAll(due)
}

// sendAll sends those that wait still, in the order in which they came.
func (p *polls) sendAll(due []*poll) {
	slices.SortFunc(due, func(a, b *poll) int { return cmp.Compare(a.req.Id, b.req.Id) })
	for _, at := range due {
		p.mu.Lock()
		waits := p.waiting[at.req.Id] != nil
		var epoch uint64
		if waits {
			epoch = p.give(at)
		}
		p.mu.Unlock()
		if waits {
			p.send(at, epoch)
		}
	}
}

// stop answers those that nobody has; the others are matching's.
func (p *polls) stop() {
	p.mu.Lock()
	p.stopped = true
	var waiting []*poll
	for _, at := range p.waiting {
		waiting = append(waiting, at)
	}
	for _, at := range waiting {
		p.forget(at)
	}
	p.mu.Unlock()
	for _, at := range waiting {
		at.unavailable()
	}
}

// forget removes an open poll and leaves its places. The caller holds the lock.
func (p *polls) forget(at *poll) {
	p.g.pools.polls.Give(at.req.Domain, at.places)
	delete(p.open, at.req.Id)
	delete(p.waiting, at.req.Id)
	heap.Remove(&p.byEnd, at.place)
}

// byEnd is a heap of polls by when their time is over.
type byEnd []*poll

func (h byEnd) Len() int           { return len(h) }
func (h byEnd) Less(i, j int) bool { return h[i].until.Before(h[j].until) }
func (h byEnd) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *byEnd) Push(x any) {
	at := x.(*poll)
	at.place = len(*h)
	*h = append(*h, at)
}

// Pop implements heap.Interface.
func (h *byEnd) Pop() any {
	last := len(*h) - 1
	at := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return at
}
