package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
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
	return parallel.Each(ctx, len(names), putsAtOnce, func(ctx context.Context, i int) error {
		if _, err := c.Admin().PutDomain(ctx, yard.Domain{Name: names[i], Description: "yard bench", Retention: retention}); err != nil {
			return fmt.Errorf("domain %s: %w", names[i], err)
		}
		return nil
	})
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
