package bench

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// shape is how the tasks of a drain are submitted.
type shape struct {
	// producers submit at once, so many tasks per request.
	producers, request int
	// domains that the requests are for, in turn.
	domains []string
	// together: a request has one task, and the SDK may gather those of one program.
	together bool
	// ahead: workers begin when all tasks are accepted, and only the submits are measured.
	ahead bool
}

// bulk is W1's.
var bulk = shape{producers: w1Producers, request: w1Request, domains: []string{domain}}

// shape of a workload; of those that are no drains, W1's, for the warm-up.
func (o *Options) shape(workload string) shape {
	s := bulk
	switch workload {
	case "W1s":
		s.ahead = true
	case "W2":
		s.producers, s.request = w2Producers, 1
	case "W2s":
		s.producers, s.request, s.together = w2Producers, 1, true
	case "W8":
		s = shape{producers: w8Producers, request: 1, domains: many(o.Domains)}
	case "W8s":
		s = shape{producers: w8sProducers, request: 1, domains: many(o.Domains), ahead: true}
	}
	if o.Producers > 0 {
		s.producers = o.Producers
	}
	return s
}

// many are the names of W8's domains.
func many(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(domain, "-", i)
	}
	return names
}

// warmUp is how many tasks show that the system is at work: each domain has some.
func (s shape) warmUp() int { return max(warmUpTasks, len(s.domains)*s.request) }

// putsAtOnce is how many domains are made at a time. A frontend takes 48 administrative
// requests.
const putsAtOnce = 16

// domains makes them, some at a time.
func (t *target) domains(ctx context.Context, names []string, retention time.Duration) error {
	nc, err := t.connect()
	if err != nil {
		return err
	}
	c, err := yard.NewClient(nc, domain, yard.WithTimeout(stallAfter))
	if err != nil {
		return err
	}
	var putting sync.WaitGroup
	failed := make([]error, putsAtOnce)
	for i := range putsAtOnce {
		putting.Go(func() {
			for k := i; k < len(names) && failed[i] == nil; k += putsAtOnce {
				if _, err := c.Admin().PutDomain(ctx, yard.Domain{Name: names[k], Description: "yard bench", Retention: retention}); err != nil {
					failed[i] = fmt.Errorf("domain %s: %w", names[k], err)
				}
			}
		})
	}
	putting.Wait()
	return cmp.Or(failed...)
}

// clients of the domains, in turn on a few connections; one domain has a client on each.
func (t *target) clients(domains []string) ([]*yard.Client, error) {
	clients := make([]*yard.Client, max(len(domains), connections))
	var conns [connections]*nats.Conn
	for i := range clients {
		at := i % connections
		var err error
		if conns[at] == nil {
			if conns[at], err = t.connect(); err != nil {
				return nil, err
			}
		}
		if clients[i], err = yard.NewClient(conns[at], domains[i%len(domains)], yard.WithTimeout(stallAfter)); err != nil {
			return nil, err
		}
	}
	return clients, nil
}
