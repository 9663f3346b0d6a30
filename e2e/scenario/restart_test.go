package scenario_test

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1EverythingSurvivesARestart stops the whole system, with a task in each
// state, and starts it again on the same data, twice: each task is where it was,
// with its whole history, and goes on.
func TestI1EverythingSurvivesARestart(t *testing.T) {
	testkit.Slow(t, "restarts a system of its own")
	eachKind(t, func(t *testing.T, kind stack.Tables) {
		cfg := stack.Config{Tables: kind, DataDir: t.TempDir()}
		r := &restarts{w: enter(t, own(t, cfg)), tasks: map[string]expectation{}}
		r.fill()
		for range 2 {
			r.w = r.w.restarted(cfg)
			r.check()
		}
		r.goOn()
	})
}

// restarts is a test with a task in each state.
type restarts struct {
	w       *world
	tasks   map[string]expectation // by id
	running *yardv1.PolledTask
	ready   []string
	done    *yardv1.PolledTask
}

type expectation struct{ state, events string }

// fill makes a task of each state.
func (r *restarts) fill() {
	w := r.w
	w.putType(yard.TaskType{Name: "narrow", MaxConcurrency: 1})
	expect := func(id, state, events string) { r.tasks[id] = expectation{state, events} }

	w.submitOne(&yardv1.NewTask{Type: "done", Payload: jsonPayload(`{"n":1}`)})
	r.done = w.takeOne()
	equal(w.t, "complete", w.complete(r.done), "OK")
	expect(r.done.TaskId, "completed", "submitted started completed")

	dead := w.submitOne(&yardv1.NewTask{Type: "dead"})
	equal(w.t, "fail", w.fail(w.takeOne(), &yardv1.Failure{Message: "no", NonRetryable: true}), "OK")
	expect(dead, "dead", "submitted started failed dead")

	gone := w.submitOne(&yardv1.NewTask{Type: "gone", DelayMs: 3_600_000})
	equal(w.t, "cancel", w.cancel(gone).Code, "OK")
	w.ended(gone)
	r.tasks[gone] = expectation{"cancelled", eventsOf(w.get(gone))}

	waiting := w.submitOne(&yardv1.NewTask{Type: "later", DelayMs: 3_600_000})
	w.reach(waiting, "waiting")
	expect(waiting, "waiting", "submitted parked")

	backoff := w.submitOne(&yardv1.NewTask{Type: "retry"})
	equal(w.t, "fail", w.fail(w.takeOne(), &yardv1.Failure{Message: "no", DelayMs: 3_600_000}), "OK")
	w.parked(backoff)
	expect(backoff, "backoff", "submitted started failed parked")

	w.submitOne(&yardv1.NewTask{Type: "narrow"})
	r.running = w.takeOne()
	expect(r.running.TaskId, "running", "submitted started")

	for i := range 3 {
		id := w.submitOne(&yardv1.NewTask{Type: "narrow", Payload: jsonPayload(fmt.Sprint(i))})
		w.reach(id, "ready")
		expect(id, "ready", "submitted")
		r.ready = append(r.ready, id)
	}
}

// check looks at each task after a restart.
func (r *restarts) check() {
	w := r.w
	for id, e := range r.tasks {
		want(w.t, w.reach(id, e.state), e.state, e.events)
	}
	done := w.get(r.done.TaskId)
	equal(w.t, "payload", string(done.Payload.GetData()), `{"n":1}`)
	equal(w.t, "result", string(done.Result.GetData()), `"done"`)
	// Owners that began later have forgotten the fences of what is archived.
	if code := w.complete(r.done); code != "OK" && code != "NOT_FOUND" {
		w.t.Errorf("repeated complete: %s", code)
	}
	equal(w.t, "cancel of a finished task", w.cancel(r.done.TaskId).Code, "FAILED_PRECONDITION")
	if beat := w.beat(r.running); beat.Code != "OK" {
		w.t.Errorf("heartbeat after a restart: %v", beat)
	}
	w.nothing(list) // the only slot is still taken
}

// goOn completes what was running, and then what was ready.
func (r *restarts) goOn() {
	w := r.w
	equal(w.t, "complete", w.complete(r.running), "OK")
	want(w.t, w.ended(r.running.TaskId), "completed", "submitted started completed")
	for range r.ready {
		equal(w.t, "complete", w.complete(w.takeOne()), "OK")
	}
	for _, id := range r.ready {
		want(w.t, w.ended(id), "completed", "submitted started completed")
	}
}
