package redistable

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// How Redis is looked at: a hiccup is none of readiness's business.
const (
	pingEvery  = time.Second
	pingsWrong = 3
)

// Health asks Redis now and then whether it is there. It is a part for lifecycle.Group.
type Health struct {
	client redis.UniversalClient
	wrong  atomic.Pointer[error]
}

// NewHealth looks at the server of a client, or at each node of its cluster that has slots.
func NewHealth(client redis.UniversalClient) *Health { return &Health{client: client} }

// Check is an error where Redis did not answer recently. It is quick; a nil Health is fine.
func (h *Health) Check() error {
	if h == nil {
		return nil
	}
	if err := h.wrong.Load(); err != nil {
		return *err
	}
	return nil
}

// Run asks until ctx ends. It returns nil.
func (h *Health) Run(ctx context.Context) error {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for failed := 0; ; {
		if err := h.ping(ctx); err == nil {
			failed = 0
			h.wrong.Store(nil)
		} else if failed++; failed >= pingsWrong && ctx.Err() == nil {
			err = fmt.Errorf("redis does not answer, so limited types and backlogs wait: %w", err)
			h.wrong.Store(&err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (h *Health) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	if cluster, ok := h.client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.Ping(ctx).Err() })
	}
	return h.client.Ping(ctx).Err()
}
