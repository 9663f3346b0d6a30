package tasks

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
)

// I14: what a worker or a submitter wrote neither steers the terminal of who looks at it, nor looks like another row.
func TestI14_WhatOthersWroteIsTextOnly(t *testing.T) {
	const evil = "a\x1b[2Jb\u009b0mc\u202ed\x7f\r\ne\rf\tg"
	var out bytes.Buffer
	a := &command.App{Streams: command.Streams{Out: &out}, Wide: true}
	payload := &yardv1.Payload{Data: []byte(`"` + evil + `"`)}
	task := &yardv1.Task{
		State: yardv1.TaskState_TASK_STATE_COMPLETED, Worker: evil, ErrorType: evil, ErrorMessage: evil, Progress: payload, Result: payload,
		Events: []*yardv1.TaskEvent{{Worker: evil, Message: evil, ErrorType: evil}},
	}
	for what, c := range map[string]struct {
		lines int
		print func() error
	}{
		"tasks": {2, func() error { return printTasks(a, []*yardv1.Task{task}, nil) }},
		"news":  {1, func() error { return printEvents(a, task, 0) }},
		"end":   {2, func() error { return printEnd(a, task) }},
		"task":  {0, func() error { return printTask(a, task, evil) }},
	} {
		out.Reset()
		err := c.print()
		text := out.String()
		if n := strings.Count(text, "\n"); err != nil || !strings.Contains(text, "b") || strings.ContainsAny(text, "\x1b\u009b\u202e\x7f\r\t") || c.lines > 0 && n != c.lines {
			t.Errorf("%s: %v, %d lines, want %d: %q", what, err, n, c.lines, text)
		}
	}
}
