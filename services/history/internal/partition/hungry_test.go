package partition_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// brokenCheckpoints does not save while broken is set.
type brokenCheckpoints struct {
	partition.Checkpoints
	broken atomic.Bool
}

func (c *brokenCheckpoints) Save(ctx context.Context, cp *logv1.Checkpoint, revision uint64) (uint64, error) {
	if c.broken.Load() {
		return 0, errors.New("no quorum")
	}
	return c.Checkpoints.Save(ctx, cp, revision)
}

// TestHungryPollsPileUpNothingWithoutALease: while no checkpoint can be saved nothing goes
// out, and what is asked for again and again must not gather.
func TestHungryPollsPileUpNothingWithoutALease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		checkpoints := &brokenCheckpoints{Checkpoints: s.world}
		d.Checkpoints = checkpoints
		o := s.serves(d)
		id := newID(1)
		s.submit(3, task(id, "shop"))
		time.Sleep(time.Second)
		checkpoints.broken.Store(true)
		time.Sleep(3 * time.Second)
		for range 100 {
			o.Hungry(t.Context(), &rpcv1.Hungry{Domain: "shop", Tasklist: "mail"})
			time.Sleep(3 * time.Second)
		}
		checkpoints.broken.Store(false)
		time.Sleep(time.Second)
		s.mu.Lock()
		if n := s.triggered[id]; n > 5 {
			t.Errorf("one task was triggered %d times", n)
		}
		s.mu.Unlock()
	})
}
