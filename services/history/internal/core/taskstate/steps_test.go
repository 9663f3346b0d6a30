package taskstate

import (
	"strings"
	"testing"
	"unsafe"
)

// stepped is a task with steps that have these messages, and grants from 0 on.
func stepped(messages ...string) *Task {
	t := new(Task)
	for i, m := range messages {
		t.step(Step{Kind: StepFailed, Grant: uint32(i), Message: m})
	}
	return t
}

func repeat(n int, message string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = message
	}
	return all
}

// TestI7_StepsAreBounded in number and in bytes; what goes is the oldest after the first four.
func TestI7_StepsAreBounded(t *testing.T) {
	const fixed = 32 // of a step without strings
	eighth := strings.Repeat("x", stepsBytesMax/8-fixed)
	for _, c := range []struct {
		what          string
		messages      []string
		kept, dropped int
	}{
		{"as many as may be", repeat(stepsMax, ""), stepsMax, 0},
		{"one more", repeat(stepsMax+1, ""), stepsMax, 1},
		{"many more", repeat(stepsMax+9, ""), stepsMax, 9},
		{"as many bytes as may be", repeat(8, eighth), 8, 0},
		{"one step more", repeat(9, eighth), 8, 1},
		{"a large one at the end", append(repeat(8, eighth), eighth+eighth), 7, 2},
		{"each is too large", repeat(7, strings.Repeat("x", stepsBytesMax)), stepsKept + 1, 2},
		{"few are too large", repeat(stepsKept+1, strings.Repeat("x", stepsBytesMax)), stepsKept + 1, 0},
	} {
		task := stepped(c.messages...)
		if len(task.Steps) != c.kept || int(task.StepsDropped) != c.dropped {
			t.Errorf("%s: %d are kept, %d dropped", c.what, len(task.Steps), task.StepsDropped)
		}
		for i, s := range task.Steps {
			want := i
			if i >= stepsKept {
				want += c.dropped
			}
			if int(s.Grant) != want {
				t.Errorf("%s: step %d is at %d", c.what, s.Grant, i)
			}
		}
		read := new(Task)
		read.SetSteps(task.Steps, task.StepsDropped)
		if read.stepsBytes != task.stepsBytes || read.StepsDropped != task.StepsDropped {
			t.Errorf("%s: %d bytes, read back %d", c.what, task.stepsBytes, read.stepsBytes)
		}
	}
}

// TestEqualMessagesShareMemory with one of the two steps before.
func TestEqualMessagesShareMemory(t *testing.T) {
	fresh := func(s string) string { return string([]byte(s)) }
	task := stepped(fresh("flaky"), fresh("flaky"), fresh("other"), fresh("flaky"), fresh("third"), fresh("fourth"), fresh("flaky"))
	for i, shared := range []bool{true, true, false, true, false, false, false} {
		if got := unsafe.StringData(task.Steps[i].Message) == unsafe.StringData(task.Steps[0].Message); got != shared {
			t.Errorf("step %d shares its message: %v", i, got)
		}
	}
	if task.Steps[2].Message != "other" || task.Steps[6].Message != "flaky" {
		t.Errorf("messages %+v", task.Steps)
	}
}

// TestFootprintAddsUp all that a task holds.
func TestFootprintAddsUp(t *testing.T) {
	empty := new(Task).Footprint()
	for what, c := range map[string]struct {
		change func(*Task)
		more   int
	}{
		"payload":  {func(t *Task) { t.Payload.Data = make([]byte, 7) }, 7},
		"result":   {func(t *Task) { t.Result.Data = make([]byte, 7) }, 7},
		"progress": {func(t *Task) { t.Attempt.Progress.Data = make([]byte, 7) }, 7},
		"error":    {func(t *Task) { t.ErrMessage = "because" }, 7},
		"steps":    {func(t *Task) { t.SetSteps(make([]Step, 1, 3), 0) }, 3*88 + 32},
		"worker":   {func(t *Task) { t.SetSteps([]Step{{Worker: "because"}}, 0) }, 88 + 32 + 7},
		"message":  {func(t *Task) { t.SetSteps([]Step{{Message: "because"}}, 0) }, 88 + 32 + 7},
		"cause":    {func(t *Task) { t.SetSteps([]Step{{ErrType: "because"}}, 0) }, 88 + 32 + 7},
	} {
		task := new(Task)
		c.change(task)
		if got := task.Footprint() - empty; got != c.more {
			t.Errorf("%s: %d bytes more, want %d", what, got, c.more)
		}
	}
}
