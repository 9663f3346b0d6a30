package pages

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/login"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/sampler"
)

// Limits of a sample of the cluster.
const (
	// loadDomains is how many domains each partition is asked for, the busiest first; loadSplit how many split-off queues.
	loadDomains, loadSplit = 100, 20
	// loadCalls is how many pages of partitions are read.
	loadCalls = 32
	// weightsMax is how many domains have a weight here; others count with 1. weightsKept is how long the weights are used.
	weightsMax  = 1000
	weightsKept = 30 * time.Second
)

// load is what all partitions have, and what was done since the sample before.
type load struct {
	Partitions []*yardv1.PartitionQueues
	// Domains are those with work, the busiest first.
	Domains []*domainLoad
	// Rates: there was a sample before, so rates are known.
	Rates bool

	weights   map[string]int
	weightsAt time.Time
}

// domainLoad is what a domain has and does. Share is its part of the weights of all domains with work, Received its part of what was completed.
type domainLoad struct {
	Name                                         string
	Weight                                       int
	Done, Failed                                 float64
	Ready, Running, Backoff, Unread, OldestReady int64
	Share, Received                              float64
}

// place is a domain in a partition, where its counters are.
type place struct {
	partition int32
	domain    string
}

// followCluster is the topic of the whole cluster.
func followCluster(r *Request) sampler.Topic {
	return sampler.Topic{Kind: "cluster", Fetch: func(ctx context.Context, before sampler.Sample) (any, []float64, error) {
		admin, err := r.pages.Access.Admin(login.Viewer)
		if err != nil {
			return nil, nil, err
		}
		was, _ := before.Value.(*load)
		req := &yardv1.ListQueuesRequest{Domains: loadDomains, Limit: loadSplit}
		now, err := readLoad(ctx, admin, req, was, time.Since(before.At))
		if err != nil {
			return nil, nil, err
		}
		if !now.Rates {
			return now, nil, nil
		}
		sum := now.sum()
		return now, []float64{sum.Done, sum.Failed, float64(sum.Ready)}, nil
	}}
}

// readLoad asks all partitions, and compares the answers with those of before.
func readLoad(ctx context.Context, admin *yard.Admin, req *yardv1.ListQueuesRequest, was *load, since time.Duration) (*load, error) {
	now := &load{Rates: was != nil}
	for range loadCalls {
		page, err := admin.ListQueues(ctx, req)
		if err != nil {
			return nil, err
		}
		now.Partitions = append(now.Partitions, page.Partitions...)
		if req.Partition = page.NextPartition; req.Partition == 0 {
			break
		}
	}
	if was != nil && (req.Domain != "" || time.Since(was.weightsAt) < weightsKept) {
		now.weights, now.weightsAt = was.weights, was.weightsAt
	} else if err := now.readWeights(ctx, admin); err != nil {
		return nil, err
	}
	now.count(was, since.Seconds())
	return now, nil
}

func (l *load) readWeights(ctx context.Context, admin *yard.Admin) error {
	l.weights, l.weightsAt = map[string]int{}, time.Now()
	for d, err := range admin.Domains(ctx) {
		if err != nil {
			return err
		}
		if l.weights[d.Name] = max(1, d.Weight); len(l.weights) >= weightsMax {
			break
		}
	}
	return nil
}

// count adds the partitions up by domain. A domain that a partition did not list before has no rate there yet.
func (l *load) count(was *load, seconds float64) {
	before := map[place]*yardv1.DomainWork{}
	if was != nil {
		for _, p := range was.Partitions {
			for _, d := range p.Domains {
				before[place{p.Partition, d.Domain}] = d
			}
		}
	}
	byName := map[string]*domainLoad{}
	of := func(name string) *domainLoad {
		if byName[name] == nil {
			byName[name] = &domainLoad{Name: name, Weight: max(1, l.weights[name])}
			l.Domains = append(l.Domains, byName[name])
		}
		return byName[name]
	}
	for _, p := range l.Partitions {
		for _, d := range p.Domains {
			w := of(d.Domain)
			w.Ready, w.Running, w.Backoff = w.Ready+d.Ready, w.Running+d.Running, w.Backoff+d.Backoff
			w.OldestReady = max(w.OldestReady, d.OldestReadyMs)
			if old := before[place{p.Partition, d.Domain}]; old != nil {
				w.Done += perSecond(d.Completed, old.Completed, seconds)
				w.Failed += perSecond(d.Failed, old.Failed, seconds)
			}
		}
		for _, q := range p.Queues {
			if q.Domain != "" {
				of(q.Domain).Unread += q.Unread
			}
		}
	}
	l.share()
}

// perSecond is the rate of a counter. One that went back belongs to a new owner, which counts from 0.
func perSecond(now, before int64, seconds float64) float64 {
	if now < before {
		before = 0
	}
	if seconds <= 0 {
		return 0
	}
	return float64(now-before) / seconds
}

func (l *load) share() {
	weights, done := 0, 0.0
	for _, d := range l.Domains {
		weights += d.Weight
		done += d.Done
	}
	for _, d := range l.Domains {
		d.Share = float64(d.Weight) / float64(weights)
		if done > 0 {
			d.Received = d.Done / done
		}
	}
	slices.SortFunc(l.Domains, func(a, b *domainLoad) int {
		return cmp.Or(cmp.Compare(b.Done, a.Done), cmp.Compare(b.Ready, a.Ready), strings.Compare(a.Name, b.Name))
	})
}

// seen are the domains that a user may see, and their sum.
func (l *load) seen(who login.Identity) *load {
	some := *l
	some.Domains = slices.DeleteFunc(slices.Clone(l.Domains), func(d *domainLoad) bool { return !who.Sees(d.Name) })
	return &some
}

// sum is what all domains have.
func (l *load) sum() (all domainLoad) {
	for _, d := range l.Domains {
		all.Done, all.Failed = all.Done+d.Done, all.Failed+d.Failed
		all.Ready, all.Running, all.Backoff, all.Unread = all.Ready+d.Ready, all.Running+d.Running, all.Backoff+d.Backoff, all.Unread+d.Unread
		all.OldestReady = max(all.OldestReady, d.OldestReady)
	}
	return all
}

// counted reports whether what a domain has is known: partitions with many domains name the busiest ones only.
func (l *load) counted(name string) bool {
	return !slices.ContainsFunc(l.Partitions, func(p *yardv1.PartitionQueues) bool {
		return len(p.Domains) >= loadDomains && !slices.ContainsFunc(p.Domains, func(d *yardv1.DomainWork) bool { return d.Domain == name })
	})
}

// of is what one domain has; nothing if it has no work.
func (l *load) of(name string) *domainLoad {
	for _, d := range l.Domains {
		if d.Name == name {
			return d
		}
	}
	return &domainLoad{Name: name, Weight: max(1, l.weights[name])}
}
