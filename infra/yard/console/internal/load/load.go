// Package load counts what the domains of a cluster have and do, from the answers of its partitions.
//
// Owns: the question, the sums by domain, the rates since the answers before, and the shares. Never does: decide who may see a domain. On failure: the error of the
// question; the numbers of before still count.
package load

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
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

// Cluster is what all partitions have, and what was done since the sample before.
type Cluster struct {
	Partitions []*yardv1.PartitionQueues
	// Domains are those with work, the busiest first.
	Domains []*Domain
	// Rates: there was a sample before, so rates are known.
	Rates bool

	weights   map[string]int
	weightsAt time.Time
}

// Domain is what a domain has and does. Share is its part of the weights of all domains with work, Received its part of what was completed.
type Domain struct {
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

// Read asks all partitions, and compares the answers with those of before; nil = there are none.
func Read(ctx context.Context, admin *yard.Admin, was *Cluster, since time.Duration) (*Cluster, error) {
	return read(ctx, admin, &yardv1.ListQueuesRequest{Domains: loadDomains, Limit: loadSplit}, was, since)
}

// ReadDomain asks all partitions for one domain, whose weight it takes from the cluster's answers.
func (l *Cluster) ReadDomain(ctx context.Context, admin *yard.Admin, name string, was *Cluster, since time.Duration) (*Cluster, error) {
	known := was != nil
	if !known {
		was = &Cluster{weights: l.weights}
	}
	now, err := read(ctx, admin, &yardv1.ListQueuesRequest{Domain: name, Domains: 1, Limit: 1}, was, since)
	if err == nil {
		now.Rates = known
	}
	return now, err
}

func read(ctx context.Context, admin *yard.Admin, req *yardv1.ListQueuesRequest, was *Cluster, since time.Duration) (*Cluster, error) {
	now := &Cluster{Rates: was != nil}
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

func (l *Cluster) readWeights(ctx context.Context, admin *yard.Admin) error {
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
func (l *Cluster) count(was *Cluster, seconds float64) {
	before := map[place]*yardv1.DomainWork{}
	if was != nil {
		for _, p := range was.Partitions {
			for _, d := range p.Domains {
				before[place{p.Partition, d.Domain}] = d
			}
		}
	}
	byName := map[string]*Domain{}
	of := func(name string) *Domain {
		if byName[name] == nil {
			byName[name] = &Domain{Name: name, Weight: max(1, l.weights[name])}
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
				w.Done += PerSecond(d.Completed, old.Completed, seconds)
				w.Failed += PerSecond(d.Failed, old.Failed, seconds)
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

// PerSecond is the rate of a counter. One that went back belongs to a new owner, which counts from 0.
func PerSecond(now, before int64, seconds float64) float64 {
	if now < before {
		before = 0
	}
	if seconds <= 0 {
		return 0
	}
	return float64(now-before) / seconds
}

func (l *Cluster) share() {
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
	slices.SortFunc(l.Domains, func(a, b *Domain) int {
		return cmp.Or(cmp.Compare(b.Done, a.Done), cmp.Compare(b.Ready, a.Ready), strings.Compare(a.Name, b.Name))
	})
}

// Some is the part of some domains, with the shares that they have of all.
func (l *Cluster) Some(sees func(domain string) bool) *Cluster {
	some := *l
	some.Domains = slices.DeleteFunc(slices.Clone(l.Domains), func(d *Domain) bool { return !sees(d.Name) })
	return &some
}

// Sum is what all domains have.
func (l *Cluster) Sum() (all Domain) {
	for _, d := range l.Domains {
		all.Done, all.Failed = all.Done+d.Done, all.Failed+d.Failed
		all.Ready, all.Running, all.Backoff, all.Unread = all.Ready+d.Ready, all.Running+d.Running, all.Backoff+d.Backoff, all.Unread+d.Unread
		all.OldestReady = max(all.OldestReady, d.OldestReady)
	}
	return all
}

// Counted reports whether what a domain has is known: partitions with many domains name the busiest ones only.
func (l *Cluster) Counted(name string) bool {
	return !slices.ContainsFunc(l.Partitions, func(p *yardv1.PartitionQueues) bool {
		return len(p.Domains) >= loadDomains && !slices.ContainsFunc(p.Domains, func(d *yardv1.DomainWork) bool { return d.Domain == name })
	})
}

// Of is what one domain has; nothing if it has no work.
func (l *Cluster) Of(name string) *Domain {
	for _, d := range l.Domains {
		if d.Name == name {
			return d
		}
	}
	return &Domain{Name: name, Weight: max(1, l.weights[name])}
}
