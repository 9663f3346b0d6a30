package partition_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestADrainKeepsItsLease: a store that is away for longer than a lease, and not for as
// long as a drain may take, loses the drain nothing.
func TestADrainKeepsItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		s.works(logv1.EventKind_EVENT_KIND_COMPLETED)
		d := s.deps("a")
		d.Config.DrainTimeout = 6 * time.Second
		_, stop := ready(d)
		time.Sleep(time.Second)
		s.submit(3, task(newID(1), "shop"))
		time.Sleep(100 * time.Millisecond)
		s.world.FailWrites(true)
		go func() {
			time.Sleep(2400 * time.Millisecond)
			s.world.FailWrites(false)
		}()
		testkit.Check(t, stop())
		if got := s.archived(); len(got) != 1 {
			t.Errorf("archived in the drain: %v", got)
		}
	})
}

// TestWhoWaitsIsAnsweredWhenTheOwnerIsOvertaken: the owner ends at once, and a caller that waits for a
// task asks the next one.
func TestWhoWaitsIsAnsweredWhenTheOwnerIsOvertaken(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		o, stop := ready(s.deps("a"))
		known, absent := newID(1), newID(2)
		s.submit(3, task(known, "shop"))
		time.Sleep(time.Second)
		var answers atomic.Int64
		for _, id := range []ids.TaskID{known, absent} {
			req := &rpcv1.GetTaskRequest{TaskId: id[:], Domain: "shop", WaitMs: time.Hour.Milliseconds()}
			o.Get(t.Context(), req, func(*rpcv1.GetTaskResponse, error) { answers.Add(1) })
		}
		time.Sleep(time.Second)
		_, stopNext := ready(s.deps("b"))
		time.Sleep(5 * time.Second)
		testkit.Equal(t, "of 2 were answered", answers.Load(), 2)
		if err := stop(); !errors.Is(err, partition.ErrTakenOver) {
			t.Errorf("the owner ended with %v", err)
		}
		testkit.Check(t, stopNext())
	})
}
