package yardtest

import (
	"context"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// Submission is a task of the domain, with its input as In.
type Submission[In any] struct {
	Input In
	// Task is all that is known of it: state, delay, failures, result, history.
	Task *yardv1.Task
}

// pageMax is how many tasks the engine lists at once. Of finished ones it lists those filed last, which smaller pages
// would take for the newest.
const pageMax = 1000

// Submitted returns all tasks of the domain that were stored before the call, the oldest first, with payloads and
// histories, whatever became of them since. Of finished tasks the engine lists what its last few hundred messages filed, so
// a test that finishes more than 500 counts in its handlers.
func (e *Engine) Submitted(t testing.TB) []*yardv1.Task {
	t.Helper()
	return e.submitted(t, &yardv1.ListRequest{})
}

// SubmittedOf returns the tasks of a definition's type and tasklist as Submitted does, with their inputs. An input that
// does not decode ends the test.
func SubmittedOf[In, Out any](t testing.TB, e *Engine, d *yard.Definition[In, Out]) []Submission[In] {
	t.Helper()
	var all []Submission[In]
	for _, task := range e.submitted(t, &yardv1.ListRequest{Type: d.Type(), Tasklist: d.Tasklist()}) {
		s := Submission[In]{Task: task}
		p := yard.Payload{Data: task.GetPayload().GetData(), Binary: task.GetPayload().GetEncoding() == yardv1.Encoding_ENCODING_BINARY}
		if err := p.Decode(&s.Input); err != nil {
			t.Fatalf("yardtest: the input of %s %s: %v", task.Type, task.TaskId, err)
		}
		all = append(all, s)
	}
	return all
}

func (e *Engine) submitted(t testing.TB, filter *yardv1.ListRequest) (all []*yardv1.Task) {
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
		whole, err := e.Client.Get(ctx, task.TaskId)
		if err != nil {
			t.Fatalf("yardtest: get task %s: %v", task.TaskId, err)
		}
		all = append(all, whole)
	}
	slices.Reverse(all)
	return all
}
