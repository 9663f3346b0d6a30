package scenario_test

import (
	"context"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// TestALimitInShadowOnlyCounts: all run at once, and it is known how many would have waited, for a slot and for the rate; in force, it holds up, and
// in shadow again what waited starts.
func TestALimitInShadowOnlyCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		limit := yard.Limit{Name: "acme", MaxConcurrency: 2, Rate: yard.Rate{Tasks: 1, Per: time.Hour, Burst: 8}, Shadow: true}
		put := func() {
			t.Helper()
			stored, err := w.client.PutLimit(w.soon(), limit)
			if err != nil || stored.Shadow != limit.Shadow {
				t.Fatalf("stored %+v: %v", stored, err)
			}
		}
		put()
		w.putType(yard.TaskType{Name: "pay", Limits: []string{"acme"}})
		var running meter
		gate := make(chan struct{})
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "pay", func(ctx context.Context, _ struct{}) (struct{}, error) { return struct{}{}, hold(ctx, gate, &running) })
		}, yard.WithConcurrency(20))
		var all []string
		submit := func(n int) {
			for range n {
				all = append(all, w.submitOne(&yardv1.NewTask{Type: "pay"}))
			}
		}
		submit(10)
		w.runs("acme", &running, exactly(10))

		// A start that history refuses, such as of a task that was offered twice, is counted too: on a slow machine more often.
		const offers = 100
		w.use("shared/acme", func(l yard.LimitUse) bool {
			return l.Shadow && l.WouldWait >= 8 && l.WouldWait < offers && l.Running == 10 && l.WaitingTasks == 0
		})
		w.use("rate/shared/acme", func(l yard.LimitUse) bool { return l.Shadow && l.WouldWait >= 2 && l.WouldWait < offers })

		limit.Shadow, limit.Rate = false, yard.Rate{}
		put()
		w.use("shared/acme", func(l yard.LimitUse) bool { return !l.Shadow })
		submit(3)
		w.use("shared/acme", func(l yard.LimitUse) bool { return l.WaitingTasks == 3 && l.FullFor > 0 })
		w.runs("acme", &running, exactly(10))
		limit.Shadow = true
		put()
		w.runs("acme", &running, exactly(13))
		close(gate)
		for _, id := range all {
			if got := w.ended(id); got.State.Name() != string(yard.StateCompleted) {
				t.Errorf("%s is %s", id, got.State.Name())
			}
		}
	})
}
