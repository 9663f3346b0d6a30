package partition_test

import (
	"context"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// lostTimer does not answer until a time.
type lostTimer struct {
	partition.Timer
	until time.Time
}

func (l lostTimer) Locate(ctx context.Context, id ids.TaskID) (*logv1.Record, uint64, error) {
	if time.Now().Before(l.until) {
		return nil, 0, fault.New(fault.Unavailable, "no node serves the timer partition")
	}
	return l.Timer.Locate(ctx, id)
}

// TestARepeatedOutcomeIsNotFoundOnlyIfTheTimerSaysSo: R20. The outcome that parked a task is
// repeated while the timer does not answer. It was applied, so the verdict waits.
func TestARepeatedOutcomeIsNotFoundOnlyIfTheTimerSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		var last ids.Trigger
		s.worker = func(tr ids.Trigger) {
			last = tr
			s.event(outcome(tr, logv1.EventKind_EVENT_KIND_STARTED))
			s.event(outcome(tr, logv1.EventKind_EVENT_KIND_FAILED))
		}
		_, stop := ready(s.deps("a"))
		r := task(newID(1), "shop")
		r.Policy.MaxAttempts, r.Policy.InitialIntervalMs, r.Policy.MaxIntervalMs, r.Policy.Backoff = 5, 3_600_000, 3_600_000, 1
		s.submit(3, r)
		time.Sleep(time.Minute)
		testkit.NoError(t, stop())
		d := s.deps("b")
		d.Timer = lostTimer{s.world, time.Now().Add(10 * time.Second)}
		_, stop = ready(d)
		s.mu.Lock()
		s.verdicts = nil
		s.mu.Unlock()
		s.event(outcome(last, logv1.EventKind_EVENT_KIND_FAILED))
		time.Sleep(time.Minute)
		s.mu.Lock()
		if len(s.verdicts) != 1 || s.verdicts[0].Code != "" {
			t.Errorf("verdicts on the repeated outcome: %v", s.verdicts)
		}
		s.mu.Unlock()
		testkit.Check(t, stop())
	})
}
