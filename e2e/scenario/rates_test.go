package scenario_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestARateIsNeverExceeded: an independent record of when attempts were granted, by the log, holds in every time no more than a burst
// and what the rate gives; all of them complete though nothing else wakes the engine, and what the rate does not cover goes on. SEEDS 2.3.
func TestARateIsNeverExceeded(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const tasks, perSecond, burst = 60, 40, 5
		rate := yard.Rate{Tasks: perSecond, Burst: burst}
		if stored, err := w.client.PutLimit(w.soon(), yard.Limit{Name: "partner", Rate: rate}); err != nil || stored.Rate.Tasks != perSecond {
			t.Fatalf("%+v %v", stored, err)
		}
		testkit.NoError(t, testkit.Err(w.client.PutType(w.soon(), yard.TaskType{Name: "x", Limits: []string{"partner"}})))
		w.rated(burst)
		all := many(tasks, &yardv1.NewTask{Type: "x"})
		ids := w.submit(all...)
		handle := func(context.Context, *yard.Attempt) (yard.Payload, error) { return yard.Payload{}, nil }
		defer w.work(list, func(k *yard.Worker) {
			k.HandleFunc("x", handle)
			k.HandleFunc("free", handle)
		})()
		free := w.submitOne(&yardv1.NewTask{Type: "free", Priority: 5})
		before := w.ended(free).FinishedAtMs
		var starts []int64
		for _, id := range ids {
			for _, e := range w.ended(id).Events {
				if e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED {
					starts = append(starts, e.AtMs)
				}
			}
		}
		slices.Sort(starts)
		if starts[len(starts)-1] < before {
			t.Errorf("a task that the rate does not cover waited for all %d others", tasks)
		}
		for i := range starts {
			for j := i; j < len(starts); j++ {
				// What was let start waits for its batch, at most some 20 ms on a quiet machine: so the times are as of the server.
				if most := burst + float64(starts[j]-starts[i]+late)*perSecond/1000 + 1; float64(j-i+1) > most {
					t.Fatalf("%d attempts started in %d ms, %.1f may", j-i+1, starts[j]-starts[i], most)
				}
			}
		}
		if len(starts) < tasks {
			t.Fatalf("%d starts", len(starts))
		}
	})
}

// rated waits until type x has a rate of a burst. A shard may hear of it up to a second later: then the burst is over.
func (w *world) rated(burst int) {
	w.t.Helper()
	w.eventually(func() error {
		for range 2 * burst {
			w.submitOne(&yardv1.NewTask{Type: "x"})
		}
		found, err := w.client.Wire().Poll(w.soon(), &yardv1.PollRequest{Tasklist: list, MaxTasks: int32(2 * burst), WaitMs: 1, Types: []string{"x"}})
		n := len(found)
		for done := n; done < 2*burst; done += len(found) {
			if len(found) > 0 {
				w.complete(found...)
			}
			found = w.some(2*burst-done, "x")
		}
		w.complete(found...)
		if err == nil && n > burst+2 {
			err = fmt.Errorf("%d of %d start at once", n, 2*burst)
		}
		return err
	})
}

// late is by how much the log may date a start later than the tables let it, ms.
const late = 500

// TestARateIsShownAndTakenBack: get tells it, and without it all start at once.
func TestARateIsShownAndTakenBack(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		rate := yard.Rate{Tasks: 1, Per: 24 * time.Hour, Burst: 1}
		testkit.NoError(t, testkit.Err(w.client.PutType(w.soon(), yard.TaskType{Name: "x", Rate: rate})))
		got, err := w.client.GetType(w.soon(), "x")
		if err != nil || got.Rate != rate {
			t.Fatalf("%+v %v", got, err)
		}
		w.startsNothing(&yardv1.NewTask{Type: "x"})
		d, err := w.client.DescribeTasklist(w.soon(), list)
		if err != nil || d.Ready < 1 {
			t.Fatalf("%+v %v", d, err)
		}
		testkit.NoError(t, testkit.Err(w.client.DeleteType(w.soon(), "x", 0)))
		for left := int(d.Ready); left > 0; {
			some := w.some(left, "x")
			left -= len(some)
			w.complete(some...)
		}
	})
}
