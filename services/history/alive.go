package history

import (
	"context"
	"sync"

	"github.com/yardmaster-io/yardmaster/contracts/catalog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/natshistory"
)

// listen hears the signs of life of workers until ctx ends, for all partitions that are owned here. It has a connection of its own, so too many
// of them hold up nothing else.
func (s *Service) listen(ctx context.Context, domains *catalog.Catalog) (closeEar func(), err error) {
	nc, err := s.Connect(ctx, "signs of life")
	if err != nil {
		return nil, err
	}
	ear, err := natshistory.NewEar(s.NATS, nc, s.workers, func(domain string) bool { return domains.Domain(domain) != nil })
	if err != nil {
		nc.Close()
		return nil, err
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	running.Go(func() { ear.Run(ctx) })
	return func() {
		stop()
		running.Wait()
		nc.Close()
	}, nil
}
