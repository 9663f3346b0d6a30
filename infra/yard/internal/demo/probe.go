package demo

import (
	"context"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	probeEvery   = 250 * time.Millisecond
	probeTimeout = time.Second
	// probeStale is how old an answer may be before the view says so.
	probeStale = 3 * time.Second
)

// probe asks the engine, again and again, how it sees the tenants' tasklists.
type probe struct {
	tenants []*tenant
	clients map[string]*yard.Client

	mu   sync.Mutex
	seen map[string]sight // by domain
}

// sight is one answer.
type sight struct {
	askedAt  time.Time
	tasklist *yardv1.DescribeTasklistResponse
}

func newProbe(tenants []*tenant, clients map[string]*yard.Client) *probe {
	return &probe{tenants: tenants, clients: clients, seen: map[string]sight{}}
}

// Run asks until ctx ends. An answer that does not come leaves the last one.
func (p *probe) Run(ctx context.Context) error {
	for {
		var asking sync.WaitGroup
		for _, t := range p.tenants {
			asking.Go(func() { p.ask(ctx, t) })
		}
		asking.Wait()
		if !backoff.Sleep(ctx, probeEvery) {
			return nil
		}
	}
}

func (p *probe) ask(ctx context.Context, t *tenant) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	askedAt := time.Now()
	answer, err := p.clients[t.domain].Wire().DescribeTasklist(ctx, t.tasklist)
	if err != nil {
		return // the view marks what is old
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[t.domain] = sight{askedAt: askedAt, tasklist: answer}
}

// last is the latest answer about a tenant; its tasklist is empty before the first.
func (p *probe) last(domain string) sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.seen[domain]
	if s.tasklist == nil {
		s.tasklist = &yardv1.DescribeTasklistResponse{}
	}
	return s
}

// idleSince tells whether all tenants were asked after the given instant and
// none had anything left.
func (p *probe) idleSince(after time.Time) bool {
	for _, t := range p.tenants {
		s := p.last(t.domain)
		l := s.tasklist
		if !s.askedAt.After(after) || l.Ready+l.Running+l.Backoff+l.Waiting+l.UnreadBatches != 0 {
			return false
		}
	}
	return true
}
