package scenario_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// want compares a state and a history, such as "submitted started completed". Held are the grants
// that workers have handed back.
func want(t *testing.T, task *yardv1.Task, state, events string, held ...int32) {
	t.Helper()
	got := kindsOf(past(task, held...))
	if stateOf(task) != state || got != events {
		t.Errorf("task %s is %s after %q\nwant %s after %q", task.TaskId, stateOf(task), eventsOf(task), state, events)
	}
}

// equal compares what should be alike.
func equal[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	testkit.Equal(t, what, got, want)
}

// refused checks an error's code.
func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

// refusedAt checks an error's code, and what it says is at fault.
func refusedAt(t *testing.T, err error, code fault.Code, path string) {
	t.Helper()
	refused(t, err, code)
	equal(t, "path", fault.From(err).Path, path)
}

func stateOf(task *yardv1.Task) string { return task.State.Name() }

// past is a task's events, oldest first, without attempts that were handed back and that no worker held:
// a slow machine's grants may come when their poll is answered.
func past(task *yardv1.Task, held ...int32) (all []*yardv1.TaskEvent) {
	for _, e := range task.Events {
		if kindOf(e) == "handed_back" && !slices.Contains(held, e.Grant) {
			all = all[:len(all)-1]
		} else {
			all = append(all, e)
		}
	}
	return all
}

// eventsOf is the kinds of a task's events, oldest first.
func eventsOf(task *yardv1.Task) string { return kindsOf(task.Events) }

func kindsOf(events []*yardv1.TaskEvent) string {
	var all []string
	for _, e := range events {
		all = append(all, kindOf(e))
	}
	return strings.Join(all, " ")
}

func kindOf(e *yardv1.TaskEvent) string { return e.Kind.Name() }
