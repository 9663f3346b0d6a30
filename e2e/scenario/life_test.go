package scenario_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestSubmitRunComplete(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		id := w.submitOne(&yardv1.NewTask{Type: "mail", Payload: jsonPayload(`{"to":"ann"}`), Priority: 2})
		want(t, w.reach(id, "ready"), "ready", "submitted")

		p := w.takeOne()
		equal(t, "id", p.TaskId, id)
		equal(t, "type", p.Type, "mail")
		equal(t, "tasklist", p.Tasklist, list)
		equal(t, "payload", string(p.Payload.Data), `{"to":"ann"}`)
		equal(t, "priority", p.Priority, 2)
		equal(t, "attempt", p.Attempt, 1)
		equal(t, "attempts in all", p.MaxAttempts, 5)
		running := w.get(id)
		want(t, running, "running", "submitted started")
		equal(t, "worker", running.Worker, "scenario")

		equal(t, "verdict", w.complete(p), "OK")
		done := w.ended(id)
		want(t, done, "completed", "submitted started completed")
		equal(t, "result", string(done.Result.GetData()), `"done"`)
		equal(t, "payload", string(done.Payload.GetData()), `{"to":"ann"}`)
		equal(t, "grants", int(done.Grants), strings.Count(eventsOf(done), "started"))
		equal(t, "failures", done.Failures, 0)
		last := int64(0)
		for _, e := range done.Events {
			if e.AtMs < last || e.AtMs < done.CreatedAtMs {
				t.Errorf("%s happened at %d, before %d", e.Kind, e.AtMs, max(last, done.CreatedAtMs))
			}
			last = e.AtMs
		}
		w.nothing(list)
	})
}

func TestOneRequestSpansTasklists(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var tasks []*yardv1.NewTask
		for i := range 30 {
			tasks = append(tasks, &yardv1.NewTask{Type: "x", Tasklist: fmt.Sprintf("list-%d", i%3), Payload: jsonPayload(fmt.Sprint(i)), Priority: int32(1 + i%5)})
		}
		ids := w.submit(tasks...)
		for l := range 3 {
			name := fmt.Sprintf("list-%d", l)
			seen := map[string]bool{}
			for len(seen) < 10 {
				polled := w.someOf(name, 100)
				for _, p := range polled {
					var i int
					testkit.NoError(t, testkit.Err(fmt.Sscan(string(p.Payload.Data), &i)))
					equal(t, "tasklist", p.Tasklist, tasks[i].Tasklist)
					equal(t, "id", p.TaskId, ids[i])
					seen[p.TaskId] = true
				}
				equal(t, "verdicts", w.complete(polled...), strings.TrimSpace(strings.Repeat("OK ", len(polled))))
			}
		}
	})
}

func TestThousandTasksInOneRequest(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var tasks []*yardv1.NewTask
		for i := range 1000 {
			tasks = append(tasks, &yardv1.NewTask{Type: "x", Payload: jsonPayload(fmt.Sprint(i))})
		}
		ids := w.submit(tasks...)
		seen := map[string]bool{}
		drain(w, seen, len(ids))
		for _, id := range ids {
			if !seen[id] {
				t.Fatalf("%s never came", id)
			}
		}
		w.nothing(list)
	})
}

// TestI2ARequestIsWhole: one bad task, and none of the others is stored.
func TestI2ARequestIsWhole(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var tasks []*yardv1.NewTask
		for i := range 100 {
			tasks = append(tasks, &yardv1.NewTask{Type: "x", Tasklist: fmt.Sprintf("list-%d", i%2)})
		}
		tasks[77].DelayMs = -1
		_, err := call[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{Tasks: tasks})
		refusedAt(t, err, fault.InvalidArgument, "/tasks/77/delay_ms")

		// What was accepted before this one would be seen before it.
		id := w.submitOne(&yardv1.NewTask{Type: "x", Tasklist: "list-0"})
		resp := must[yardv1.ListResponse](w, "tasks.list", &yardv1.ListRequest{})
		w.eventually(func() error {
			resp = must[yardv1.ListResponse](w, "tasks.list", &yardv1.ListRequest{})
			if len(resp.Tasks) == 0 {
				return fmt.Errorf("%s is not listed", id)
			}
			return nil
		})
		equal(t, "tasks", len(resp.Tasks), 1)
		equal(t, "id", resp.Tasks[0].TaskId, id)
	})
}

// TestRefusalsOverTheWire only smokes: the frontend's own tests have the matrix.
func TestRefusalsOverTheWire(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for body, path := range map[string]string{
			`{"tasklist":"a","tasks":[]}`:                        "/tasks",
			`{"tasklist":"a","tasks":[{}]}`:                      "/tasks/0/type",
			`{"tasklist":"a b","tasks":[{"type":"x"}]}`:          "/tasklist",
			`{"tasklist":"a","tasks":[{"type":"x","colour":1}]}`: "/tasks/0/colour",
			`{"tasklist":"a","tasks":`:                           "/tasks",
		} {
			_, err := w.raw("tasks.submit", body)
			refused(t, err, fault.InvalidArgument)
			equal(t, body, fault.From(err).Path, path)
		}
		nobody := join(t, w.stack, unknownDomain)
		_, err := nobody.raw("tasks.submit", `{"tasklist":"a","tasks":[{"type":"x"}]}`)
		refused(t, err, fault.NotFound)
		_, err = w.raw("tasks.get", `{"task_id":"00000000000000000000000000"}`)
		refused(t, err, fault.NotFound)
	})
}

func TestSubmitAndWaitForTheResult(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.work(list, func(worker *yard.Worker) {
			yard.Handle(worker, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
		})
		got, err := yard.Run[int](w.soon(), w.client, yard.Task{Type: "double", Tasklist: list, Payload: 21})
		if err != nil || got != 42 {
			t.Errorf("got %d, %v", got, err)
		}
		resp := must[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{
			Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "double", Payload: jsonPayload("4")}}, Wait: true, WaitMs: 60_000,
		})
		want(t, resp.Task, "completed", "submitted started completed")
		equal(t, "result", string(resp.Task.Result.GetData()), "8")
	})
}

func TestWaitsThatEndTellTheStateSoFar(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		resp := must[yardv1.SubmitResponse](w, "tasks.submit", &yardv1.SubmitRequest{
			Tasklist: list, Tasks: []*yardv1.NewTask{{Type: "slow"}}, Wait: true, WaitMs: 200,
		})
		if state := stateOf(resp.Task); state != "ready" && state != "queued" {
			t.Errorf("the task is %s, and no one works", state)
		}
		p := w.takeOne()
		task := must[yardv1.GetResponse](w, "tasks.get", &yardv1.GetRequest{TaskId: p.TaskId, WaitMs: 100}).Task
		want(t, task, "running", "submitted started")

		// A wait that is on ends with the task.
		got := make(chan *yardv1.GetResponse, 1)
		go func() {
			resp, err := call[yardv1.GetResponse](w, "tasks.get", &yardv1.GetRequest{TaskId: p.TaskId, WaitMs: 60_000})
			testkit.Check(t, err)
			got <- resp
		}()
		equal(t, "verdict", w.complete(p), "OK")
		want(t, (<-got).GetTask(), "completed", "submitted started completed")
	})
}
