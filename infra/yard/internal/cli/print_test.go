package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// I14: what a worker or a submitter wrote neither steers the terminal of who looks at it, nor looks like another row.
func TestI14_WhatOthersWroteIsTextOnly(t *testing.T) {
	const evil = "a\x1b[2Jb\u009b0mc\u202ed\x7f\r\ne\rf\tg"
	var out, errs bytes.Buffer
	a := &app{Streams: Streams{Out: &out, Err: &errs}, wide: true}
	stored, err := (&logv1.Batch{Tasks: []*logv1.Record{{Type: evil, Tasklist: evil, Domain: evil}}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	task := &yardv1.Task{
		State: yardv1.TaskState_TASK_STATE_COMPLETED, Worker: evil, ErrorType: evil, ErrorMessage: evil, Progress: &yardv1.Payload{Data: []byte(`"` + evil + `"`)},
		Result: &yardv1.Payload{Data: []byte(`"` + evil + `"`)}, Events: []*yardv1.TaskEvent{{Worker: evil, Message: evil, ErrorType: evil}},
	}
	for what, c := range map[string]struct {
		lines int
		print func() error
	}{
		"workers": {2, func() error {
			return a.printWorkers(&yardv1.ListWorkersResponse{Workers: []*yardv1.LiveWorker{{Worker: evil, Version: evil, Host: evil, Tasklists: []string{evil}, Drain: &yardv1.WorkerDrain{Reason: evil, By: evil}}}, KnownForMs: 1 << 30})
		}},
		"pollers": {2, func() error {
			return a.printPollers(&yardv1.TasklistPollersResponse{Pollers: []*yardv1.Poller{{Worker: evil, Version: evil}}, KnownForMs: 1 << 30})
		}},
		"tasks":      {2, func() error { return a.printTasks([]*yardv1.Task{task}) }},
		"news":       {1, func() error { return a.printEvents(task, 0) }},
		"pause":      {1, func() error { out.WriteString(pauseOf(&yardv1.Pause{By: evil, Reason: evil}) + "\n"); return nil }},
		"quarantine": {2, func() error { out.WriteString(contents(stored)); return nil }},
		"error":      {2, func() error { a.printError(errors.New(evil), ""); return nil }},
		"end":        {2, func() error { return a.printEnd(task) }},
		"task":       {0, func() error { return a.printTask(task) }},
	} {
		out.Reset()
		errs.Reset()
		if err := c.print(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		text := out.String() + errs.String()
		if !strings.Contains(text, "b") || strings.ContainsAny(text, "\x1b\u009b\u202e\x7f\r\t") {
			t.Errorf("%s: %q", what, text)
		}
		if n := strings.Count(text, "\n"); c.lines > 0 && n != c.lines {
			t.Errorf("%s: %d lines, want %d: %q", what, n, c.lines, text)
		}
	}
}
