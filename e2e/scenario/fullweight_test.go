package scenario_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestTasksOverTheRateOfADomainComeIn: in shadow they are only counted. In force the domain is split off, and alone it has all turns: its tasks wait for no
// rate. Without a rate it goes back.
func TestTasksOverTheRateOfADomainComeIn(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		put := func(perSecond int64, shadow bool) {
			t.Helper()
			testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, FullWeightTasksPerSecond: perSecond, FullWeightShadow: shadow})))
			d, err := w.admin.GetDomain(w.soon(), w.domain)
			if err != nil || d.FullWeightTasksPerSecond != perSecond || d.FullWeightShadow != shadow {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		queues := func() (n int) {
			resp, err := w.admin.ListQueues(w.soon(), &yardv1.ListQueuesRequest{Domain: w.domain})
			testkit.NoError(t, err)
			for _, p := range resp.Partitions {
				for _, q := range p.Queues {
					if q.Domain == w.domain {
						n++
					}
				}
			}
			return n
		}
		tasks := make([]*yardv1.NewTask, 100)
		for i := range tasks {
			tasks[i] = &yardv1.NewTask{Type: "x"}
		}
		accepted := 0
		submit := func() { accepted += len(w.submit(tasks...)) }

		put(1, true)
		w.eventually(func() error { // history may hear of the rate a moment later
			submit()
			if meters(t, w.stack)[signals.TasksOverRate.Prometheus()] == 0 {
				return errors.New("no task is over the rate")
			}
			return nil
		})
		testkit.Equal(t, "queues in shadow", queues(), 0)
		put(1, false)
		w.eventually(func() error {
			submit()
			if queues() == 0 {
				return errors.New("the domain is not split off")
			}
			return nil
		})
		submit()
		drain(w, map[string]bool{}, accepted)
		put(0, false)
		w.eventually(func() error {
			if n := queues(); n > 0 {
				return fmt.Errorf("%d queues are split off", n)
			}
			return nil
		})
	})
}
