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
