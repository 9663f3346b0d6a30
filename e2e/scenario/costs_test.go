package scenario_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestCostsAreNeverExceeded: by the log's own times, the costs of what starts are in every time no more than a burst and what the rate gives,
// but for what the last one costs beyond the burst, which is paid off after it. All complete, though nothing else wakes the engine.
func TestCostsAreNeverExceeded(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		const perSecond, burst, ofType = 100, 10, 5
		testkit.NoError(t, testkit.Err(w.client.PutLimit(w.soon(), yard.Limit{Name: "partner", Rate: yard.Rate{Tasks: perSecond, Burst: burst}})))
		w.putType(yard.TaskType{Name: "x", Limits: []string{"partner"}})
		w.rated(burst)
		w.putType(yard.TaskType{Name: "x", Limits: []string{"partner"}, Cost: ofType})
		// Each frontend hears of the type's cost up to a second later.
		var all []*yardv1.NewTask
		for _, cost := range []int32{1, 25, 0, 1, 0, 1, 1, 0, 25, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 1} {
			all = append(all, &yardv1.NewTask{Type: "x", Cost: cost})
		}
		w.eventually(func() error {
			id := w.submitOne(&yardv1.NewTask{Type: "x", DelayMs: 3_600_000})
			defer w.cancel(id)
			if cost := w.reach(id, "waiting").Cost; cost != ofType {
				return fmt.Errorf("a task that says nothing costs %d", cost)
			}
			return nil
		})
		ids := w.submit(all...)
		var told sync.Map
		defer w.work(list, func(k *yard.Worker) {
			k.HandleFunc("x", func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
				told.Store(a.TaskID, a.Cost)
				return yard.Payload{}, nil
			})
		})()
		type start struct{ at, cost int64 }
		var starts []start
		for i, id := range ids {
			task := w.ended(id)
			wanted := cmp.Or(all[i].Cost, ofType)
			shown := wanted
			if wanted == 1 {
				shown = 0
			}
			equal(t, "cost", task.Cost, shown)
			if got, _ := told.Load(id); got != int(shown) {
				t.Errorf("the worker learns of a cost of %v, want %d", got, shown)
			}
			for _, e := range task.Events {
				if e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_STARTED {
					starts = append(starts, start{e.AtMs, int64(wanted)})
				}
			}
		}
		slices.SortStableFunc(starts, func(a, b start) int { return cmp.Compare(a.at, b.at) })
		for i := range starts {
			sum := int64(0)
			for _, last := range starts[i:] {
				sum += last.cost
				beyond := float64(max(0, last.cost-burst))
				if most := beyond + burst + float64(last.at-starts[i].at+late)*perSecond/1000 + 1; float64(sum) > most {
					t.Fatalf("attempts that cost %d started in %d ms, %.1f may", sum, last.at-starts[i].at, most)
				}
			}
		}
	})
}

// TestACostlyTaskIsNotOvertaken: it waits until there are enough starts, and cheap ones that came after it wait behind it; one that came before it, and
// a more urgent one, do not. The rate gives nothing within the test; its burst is what changes.
func TestACostlyTaskIsNotOvertaken(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		rate := func(burst int) {
			t.Helper()
			w.putType(yard.TaskType{Name: "x", Rate: yard.Rate{Tasks: 1, Per: 24 * time.Hour, Burst: burst}})
		}
		rate(1)
		first := ""
		w.eventually(func() error {
			first = w.submitOne(&yardv1.NewTask{Type: "x"})
			found, err := w.poll(&yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 50})
			if err != nil || len(found) > 0 {
				return cmp.Or(err, errors.New("a task still starts"))
			}
			state := ""
			w.eventually(func() error {
				if state = stateOf(w.get(first)); state == "queued" {
					return errors.New("it is not admitted")
				}
				return nil
			})
			if state != "ready" { // its grant came too late for the poll
				return fmt.Errorf("a task still starts: it is %s", state)
			}
			return nil
		})
		dear := w.submitOne(&yardv1.NewTask{Type: "x", Cost: 8})
		w.reach(dear, "ready")
		behind := w.submitOne(&yardv1.NewTask{Type: "x"})
		w.reach(behind, "ready")
		rate(5)
		equal(t, "first", w.takeOne().TaskId, first)
		w.nothing(list)
		urgent := w.submitOne(&yardv1.NewTask{Type: "x", Priority: 1})
		equal(t, "more urgent", w.takeOne().TaskId, urgent)
		w.nothing(list)
		rate(15)
		equal(t, "then", w.takeOne().TaskId, dear)
		equal(t, "at last", w.takeOne().TaskId, behind)
	})
}

// TestACostIsKept through the timer store, a failed attempt, a restart of everything, and in the dead letter.
func TestACostIsKept(t *testing.T) {
	testkit.Slow(t, "restarts a system of its own")
	eachKind(t, func(t *testing.T, kind stack.Tables) {
		cfg := stack.Config{Tables: kind, DataDir: t.TempDir()}
		w := enter(t, own(t, cfg))
		id := w.submitOne(&yardv1.NewTask{Type: "x", Cost: 6, DelayMs: 200})
		ready := w.submitOne(&yardv1.NewTask{Type: "y", Tasklist: "other", Cost: 7})
		again := func() {
			t.Helper()
			w = w.restarted(cfg)
			equal(t, "cost of a task that is ready", w.reach(ready, "ready").Cost, 7)
		}
		for range 2 {
			p := w.takeOne()
			equal(t, "cost", p.Cost, 6)
			w.fail(p, &yardv1.Failure{Message: "no", DelayMs: 100})
			again()
		}
		// It is what a rate counts, still.
		w.putType(yard.TaskType{Name: "x", Rate: yard.Rate{Tasks: 1, Per: 24 * time.Hour, Burst: 8}})
		again()
		p := w.takeOne()
		equal(t, "task", p.TaskId, id)
		w.reach(w.submitOne(&yardv1.NewTask{Type: "x", Cost: 6}), "ready")
		w.nothing(list)
		w.fail(p, &yardv1.Failure{Message: "no", NonRetryable: true})
		equal(t, "cost", w.ended(id).Cost, 6)
		equal(t, "cost in the dead letter", w.deadLetter(list, id).Cost, 6)
	})
}
