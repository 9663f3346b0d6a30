package scenario_test

import (
	"context"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// TestAWorkerOfSeveralTasklists: one worker runs the tasks of all its tasklists, even with fewer slots than those.
func TestAWorkerOfSeveralTasklists(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "where", func(ctx context.Context, _ struct{}) (string, error) {
				return yard.Info(ctx).Tasklist, nil
			})
		}, yard.WithTasklists("second", "third"), yard.WithConcurrency(2))
		for range 3 {
			for _, tasklist := range []string{"third", list, "second"} {
				got, err := yard.Run[string](w.soon(), w.client, yard.Task{Type: "where", Tasklist: tasklist, Payload: struct{}{}})
				if err != nil || got != tasklist {
					t.Errorf("the task of %s ran with %q, %v", tasklist, got, err)
				}
			}
		}
	})
}
