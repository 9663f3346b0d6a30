package partition_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// slowReader finds nothing unread, after an hour.
type slowReader struct {
	partition.Reader
	running, most *atomic.Int64
}

func (r slowReader) Unread(ctx context.Context, _ ids.TaskID, _ uint64, _ replica.Levels) (*logv1.Record, ids.Position, error) {
	n := r.running.Add(1)
	defer r.running.Add(-1)
	if n > r.most.Load() {
		r.most.Store(n)
	}
	select {
	case <-time.After(time.Hour):
		return nil, 0, nil
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
}

// TestQuestionsForAbsentTasksAreBounded: R22. A caller that asks for tasks that are nowhere gets
// RESOURCE_EXHAUSTED once too many are looked for, and no search goes on forever.
func TestQuestionsForAbsentTasksAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		var running, most atomic.Int64
		d.Reader = slowReader{d.Reader, &running, &most}
		o := s.serves(d)
		var refused, answered atomic.Int64
		const asked = 5000
		for n := range uint64(asked) {
			id := newID(n)
			o.Get(t.Context(), &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop"}, func(_ *rpcv1.GetTaskResponse, err error) {
				answered.Add(1)
				if fault.CodeOf(err) == fault.ResourceExhausted {
					refused.Add(1)
				}
			})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if most.Load() > 1000 || refused.Load() == 0 {
			t.Errorf("%d searches ran at once, %d were refused", most.Load(), refused.Load())
		}
		if running.Load() != 0 || answered.Load() != asked {
			t.Errorf("after a minute %d searches run, %d of %d are answered", running.Load(), answered.Load(), asked)
		}
	})
}
