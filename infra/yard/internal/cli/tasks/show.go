package tasks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard/timers"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	show "github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/timers"
)

// payloadShown is how much of a payload a table shows, characters.
const payloadShown = 200

// payload prints what of a payload fits a line; in a wide table, all of it. It is empty if there is no payload.
func payload(a *command.App, p *yardv1.Payload) string {
	data := p.GetData()
	switch {
	case p == nil:
		return ""
	case p.Encoding == yardv1.Encoding_ENCODING_BINARY:
		return fmt.Sprintf("%d bytes", len(data))
	case len(data) > payloadShown && !a.Wide:
		return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(string(data[:payloadShown]), ""), len(data))
	}
	return cmp.Or(string(data), "-")
}

// orderText is the order key of a task, and whether it waits for its turn.
func orderText(t *yardv1.Task) string {
	switch {
	case t.Blocked:
		return t.OrderKey + ", which it blocks: `yard keys unblock` or `yard keys skip` lets the key go on"
	case t.AwaitsTurn:
		return t.OrderKey + ", waits for the task before it"
	}
	return t.OrderKey
}

// uniqueText is the unique key of a task, and for how long it keeps it.
func uniqueText(t *yardv1.Task) string {
	if t.UniqueForMs == 0 {
		return t.UniqueKey
	}
	return fmt.Sprintf("%s, until %v after its end", t.UniqueKey, time.Duration(t.UniqueForMs)*time.Millisecond)
}

// printTask writes all that is known of a task, and why it waits, its history last.
func printTask(a *command.App, t *yardv1.Task, why string) error {
	return a.Show(t, func(about *command.Table) {
		about.Row("task", t.TaskId)
		about.Row("state", t.State.Name())
		about.Some("why", why)
		about.Row("type", t.Type)
		about.Row("tasklist", t.Tasklist+" (domain "+t.Domain+")")
		about.Row("priority", t.Priority)
		about.Row("created", command.At(t.CreatedAtMs))
		about.Row("due", command.At(t.DueAtMs))
		if t.StartByMs > 0 {
			about.Row("start by", command.At(t.StartByMs))
		}
		if t.FinishByMs > 0 {
			about.Row("finish by", command.At(t.FinishByMs))
		}
		about.Row("finished", command.At(t.FinishedAtMs))
		about.Row("attempts", fmt.Sprintf("%d (%d failed)", t.Grants, t.Failures))
		about.Row("payload", command.OrDash(payload(a, t.Payload)))
		about.Some("result", payload(a, t.Result))
		about.Some("progress", payload(a, t.Progress))
		about.Some("last error", strings.TrimSpace(t.ErrorType+" "+t.ErrorMessage))
		about.Some("worker", t.Worker)
		if t.CancelRequested {
			about.Row("cancel", "requested")
		}
		if t.Revision > 1 {
			about.Row("revision", t.Revision)
		}
		about.Some("group", t.Group)
		if t.Cost > 1 {
			about.Row("cost", fmt.Sprint(t.Cost, " starts of a rate"))
		}
		about.Some("unique key", uniqueText(t))
		about.Some("order key", orderText(t))
		about.Some("headers", headerText(t.Headers))
		about.Some("trace", t.Traceparent)
		if len(t.Events) == 0 {
			return
		}
		about.Row()
		about.Row("TIME", "EVENT", "GRANT", "WORKER", "MESSAGE")
		for _, e := range t.Events {
			about.Row(eventCells(e)...)
		}
	})
}

func eventCells(e *yardv1.TaskEvent) []any {
	message := strings.TrimSpace(e.ErrorType + " " + e.Message)
	if e.DueAtMs > 0 {
		message = strings.TrimSpace(message + " (due " + command.At(e.DueAtMs) + ")")
	}
	return []any{command.At(e.AtMs), e.Kind.Name(), fmt.Sprint(command.OrDash(e.Grant)), cmp.Or(e.Worker, "-"), message}
}

func printTasks(a *command.App, tasks []*yardv1.Task, due *timers.Counts) error {
	return a.Show(&yardv1.ListResponse{Tasks: tasks}, func(t *command.Table) {
		t.Row("TASK", "STATE", "TYPE", "TASKLIST", "PRIO", "FAILURES", "CREATED", "DUE", command.Wide{"FINISHED", "GRANTS", "WORKER", "ERROR"})
		for _, task := range tasks {
			t.Row(task.TaskId, task.State.Name(), task.Type, task.Tasklist, task.Priority, task.Failures, command.At(task.CreatedAtMs), command.At(task.DueAtMs),
				command.Wide{command.At(task.FinishedAtMs), task.Grants, command.OrDash(task.Worker), command.OrDash(command.OneLine(task.ErrorType + " " + task.ErrorMessage))})
		}
		if due != nil {
			t.Row()
			show.Kinds(t, due)
		}
	})
}
