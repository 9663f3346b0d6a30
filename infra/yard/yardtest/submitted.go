package yardtest

import (
	"context"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Submission is a task of the domain, with its input as In.
type Submission[In any] struct {
	Input In
	// Task is all that is known of it: state, delay, failures, result, history.
	Task *yard.TaskInfo
}

// pageMax is how many tasks the engine lists at once. Of finished tasks it lists those archived last, which smaller
// pages would treat as the newest.
const pageMax = 1000

// Submitted returns all tasks of the domain that were stored before the call, the oldest first, with payloads and
// histories, whatever became of them since. Of finished tasks the engine lists what its last few hundred messages filed, so
// a test that finishes more than 500 counts in its handlers.
func (e *Engine) Submitted(t testing.TB) []*yard.TaskInfo {
	t.Helper()
	return e.submitted(t, yard.Filter{})
}

// SubmittedOf returns the tasks of a definition's type and tasklist as Submitted does, with their inputs. An input that
// does not decode ends the test.
func SubmittedOf[In, Out any](t testing.TB, e *Engine, d *yard.Definition[In, Out]) []Submission[In] {
	t.Helper()
	var all []Submission[In]
	for _, task := range e.submitted(t, yard.Filter{Type: d.Type(), Tasklist: d.Tasklist()}) {
		s := Submission[In]{Task: task}
		if err := task.Payload.Decode(&s.Input); err != nil {
			t.Fatalf("yardtest: the input of %s %s: %v", task.Type, task.ID, err)
		}
		all = append(all, s)
	}
	return all
}

func (e *Engine) submitted(t testing.TB, filter yard.Filter) (all []*yard.TaskInfo) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := e.host.caughtUp(ctx); err != nil {
		t.Fatalf("yardtest: %v", err)
	}
	filter.Limit = pageMax
	for task, err := range e.Client.Tasks(ctx, filter) {
		if err != nil {
			t.Fatalf("yardtest: list the tasks: %v", err)
		}
		// A list has neither payloads nor histories.
		whole, err := e.Client.Get(ctx, task.ID)
		if err != nil {
			t.Fatalf("yardtest: get task %s: %v", task.ID, err)
		}
		all = append(all, whole)
	}
	slices.Reverse(all)
	return all
}
