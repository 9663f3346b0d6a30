package gateway

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"

	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/balance"
	"github.com/yardmaster-io/yardmaster/services/frontend/internal/core/scale"
)

// spread is what matching reports of tasklists that have several partitions, or may have.
type spread struct {
	mu sync.Mutex
	// balancer chooses partitions for polls, scaler says how many there should be.
	balancer *balance.Balancer
	scaler   *scale.Scaler
}

func newSpread(c Config) *spread {
	return &spread{
		balancer: balance.New(c.PollBalancer, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))),
		scaler:   scale.New(scale.Config{PerPartition: float64(c.Scale.TasksPerSecond), UpAfter: c.Scale.UpAfter, DownAfter: c.Scale.DownAfter}),
	}
}

// pick chooses the partition that a poll goes to. Where there is one it costs a look at the settings.
func (g *Gateway) pick(domain, tasklist string) int {
	n := g.Catalog.Partitions(domain, tasklist)
	if n == 1 {
		return 0
	}
	g.spread.mu.Lock()
	defer g.spread.mu.Unlock()
	return g.spread.balancer.Pick(balance.Tasklist{Domain: domain, Name: tasklist}, n, time.Now())
}

// tellGivenUp tells the owners of all shards, and all frontends, what a poll says was lost: the one that sent it is perhaps not the one that the poll goes to.
// So does a poll that goes nowhere.
func (g *Gateway) tellGivenUp(req *rpcv1.Poll, goes bool) {
	if len(req.Unanswered) == 0 || goes && !g.Config.DirectStarts && g.Catalog.Partitions(req.Domain, req.Tasklist) == 1 {
		return // the owner that it goes to reads that itself
	}
	data, err := (&rpcv1.GivenUp{Domain: req.Domain, Inboxes: req.Unanswered}).MarshalVT()
	if err == nil {
		err = g.Bus.PublishGivenUp(data)
	}
	if err != nil {
		g.Log.Debug("tell matching of answers that were lost", "error", err) // their attempts run until their deadline
	}
}

// TakeTasklistLoad takes in what the owner of a matching shard reports (topology.HintTasklistLoad).
func (g *Gateway) TakeTasklistLoad(data []byte) {
	var load rpcv1.TasklistLoad
	if load.UnmarshalVT(data) != nil {
		return // a hint: the next one comes soon
	}
	now := time.Now()
	for _, p := range load.Partitions {
		g.polls.Heard(p, now)
	}
	g.spread.mu.Lock()
	defer g.spread.mu.Unlock()
	for _, p := range load.Partitions {
		if catalog.Tasklists.Of(g.Catalog, p.Domain, p.Tasklist).GetPartitionsMax() > 0 {
			g.spread.scaler.Report(scale.Tasklist{Domain: p.Domain, Name: p.Tasklist}, int(p.TasklistPartition), p.PerSecond, now)
		}
		g.spread.balancer.Report(balance.Tasklist{Domain: p.Domain, Name: p.Tasklist}, g.Catalog.Partitions(p.Domain, p.Tasklist), int(p.TasklistPartition),
			balance.Load{Triggers: p.Triggers, PerSecond: p.PerSecond}, now)
	}
}

// tick forgets what is not used any more.
func (s *spread) tick(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.balancer.Forget(now)
}
