package pages

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/audit"
	"github.com/yardmaster-io/yardmaster/contracts/yard/explain"
	"github.com/yardmaster-io/yardmaster/contracts/yard/timers"
)

type tasksBody struct {
	listed[*yardv1.Task]
	// Filter is what the form shows.
	Type, Tasklist, Group, OrderKey, Batch, State string
	States                                        []string
}

// taskStates are the states that tasks can be listed by.
var taskStates = []yardv1.TaskState{
	yardv1.TaskState_TASK_STATE_WAITING, yardv1.TaskState_TASK_STATE_QUEUED, yardv1.TaskState_TASK_STATE_READY, yardv1.TaskState_TASK_STATE_RUNNING,
	yardv1.TaskState_TASK_STATE_BACKOFF, yardv1.TaskState_TASK_STATE_COMPLETED, yardv1.TaskState_TASK_STATE_DEAD, yardv1.TaskState_TASK_STATE_CANCELLED, yardv1.TaskState_TASK_STATE_EXPIRED,
}

func showTasks(r *Request) (any, error) {
	if id := r.FormValue("id"); id != "" {
		return nil, redirect("/domains/" + r.Domain + "/tasks/" + url.PathEscape(id))
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	body := tasksBody{Type: r.FormValue("type"), Tasklist: r.FormValue("tasklist"), Group: r.FormValue("group"), OrderKey: r.FormValue("order_key"), Batch: r.FormValue("batch"), State: r.FormValue("state")}
	req := &yardv1.ListRequest{Type: body.Type, Tasklist: body.Tasklist, Group: body.Group, OrderKey: body.OrderKey, BatchId: body.Batch, Limit: listMax, Cursor: r.FormValue("cursor")}
	for _, state := range taskStates {
		body.States = append(body.States, state.Name())
		if state.Name() == body.State {
			req.States = append(req.States, state)
		}
	}
	if body.State != "" && len(req.States) == 0 {
		return nil, fault.At(fault.InvalidArgument, "/state", "there is no state %q", body.State)
	}
	page, err := c.Wire().List(r.Context(), req)
	if err != nil {
		return nil, err
	}
	body.Items, body.Next = page.Tasks, r.next(page.NextCursor)
	return body, nil
}

// taskBody is a task, and why it does not start now.
type taskBody struct {
	*yardv1.Task
	// Why has no reasons if nothing keeps the task waiting; it is nil if the task has ended, or if WhyNot says why it is not known.
	Why    *yardv1.ExplainResponse
	WhyNot string
}

func showTask(r *Request) (any, error) {
	id := r.PathValue("task")
	if _, err := ids.ParseTaskID(id); err != nil {
		return nil, fault.New(fault.NotFound, "%q is no task id", id)
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	body := taskBody{}
	if body.Task, err = c.Wire().Get(r.Context(), id); err != nil || body.State.Finished() {
		return body, err
	}
	body.Why, body.WhyNot = why(r.Context(), c, id)
	return body, nil
}

// why is why a task does not start. The task is shown without it, too.
func why(ctx context.Context, c *yard.Client, id string) (*yardv1.ExplainResponse, string) {
	ctx, cancel := context.WithTimeout(ctx, whyWait)
	defer cancel()
	reasons, err := explain.Task(ctx, c, id)
	if err != nil {
		return nil, err.Error()
	}
	return reasons.Wire(), ""
}

// whyWait is how long a page waits for the reasons.
const whyWait = 3 * time.Second

// aheads are how far the page of timers looks ahead, with the length of a span.
var aheads = []ahead{{"hour", "1 hour", time.Hour, time.Minute}, {"day", "1 day", 24 * time.Hour, time.Hour}, {"week", "7 days", 7 * 24 * time.Hour, time.Hour}, {"month", "30 days", 30 * 24 * time.Hour, 24 * time.Hour}}

type ahead struct {
	Name, Title  string
	within, span time.Duration
}

type timersBody struct {
	*timers.Counts
	Aheads []ahead
	Chosen string
	// Most is the number of tasks in the fullest span; Bars is the chart, as JSON for the script.
	Most int64
	Bars string
}

func showTimers(r *Request) (any, error) {
	chosen := aheads[1]
	for _, one := range aheads {
		if r.FormValue("within") == one.Name {
			chosen = one
		}
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	counts, err := timers.Count(r.Context(), c, timers.Query{Within: chosen.within, Span: chosen.span, Tasklist: r.FormValue("tasklist")})
	if err != nil {
		return nil, err
	}
	body := timersBody{Counts: counts, Aheads: aheads, Chosen: chosen.Name}
	columns := [2][]int64{}
	for _, s := range counts.Spans {
		body.Most = max(body.Most, s.Tasks)
		for next := s.Start; len(columns[0]) > 0; { // spans without tasks are bars of no height
			last := time.Unix(columns[0][len(columns[0])-1], 0).Add(chosen.span)
			if !last.Before(next) {
				break
			}
			columns[0], columns[1] = append(columns[0], last.Unix()), append(columns[1], 0)
		}
		columns[0], columns[1] = append(columns[0], s.Start.Unix()), append(columns[1], s.Tasks)
	}
	text, err := json.Marshal(columns)
	body.Bars = string(text)
	return body, err
}

func showSchedules(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	page, err := yard.Call[yardv1.ListSchedulesResponse](r.Context(), c, "schedules.list", &yardv1.ListSchedulesRequest{Limit: listMax, Cursor: r.FormValue("cursor")})
	if err != nil {
		return nil, err
	}
	return listed[*yardv1.ScheduleInfo]{page.Schedules, r.next(page.NextCursor)}, nil
}

func showSchedule(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	got, err := yard.Call[yardv1.GetScheduleResponse](r.Context(), c, "schedules.get", &yardv1.GetScheduleRequest{Name: r.PathValue("schedule")})
	return got.GetSchedule(), err
}

func showBatches(r *Request) (any, error) {
	if id := r.FormValue("id"); id != "" {
		return nil, redirect("/domains/" + r.Domain + "/batches/" + url.PathEscape(id))
	}
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	page, err := yard.Call[yardv1.ListBatchesResponse](r.Context(), c, "batches.list", &yardv1.ListBatchesRequest{Limit: listMax, Cursor: r.FormValue("cursor")})
	if err != nil {
		return nil, err
	}
	return listed[*yardv1.Batch]{page.Batches, r.next(page.NextCursor)}, nil
}

func showBatch(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	got, err := yard.Call[yardv1.GetBatchResponse](r.Context(), c, "batches.get", &yardv1.GetBatchRequest{BatchId: r.PathValue("batch")})
	return got.GetBatch(), err
}

type keysBody struct {
	listed[*yardv1.OrderKey]
	Blocked bool
}

func showKeys(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	blocked := r.FormValue("only") == "blocked"
	page, err := c.Wire().ListKeys(r.Context(), &yardv1.ListKeysRequest{Blocked: blocked, Limit: listMax, Cursor: r.FormValue("cursor")})
	if err != nil {
		return nil, err
	}
	return keysBody{listed[*yardv1.OrderKey]{page.Keys, r.next(page.NextCursor)}, blocked}, nil
}

type workersBody struct {
	listed[*yardv1.LiveWorker]
	// KnownFor is how long the engine has listened; below a minute, workers may be missing.
	KnownFor time.Duration
}

func showWorkers(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	page, err := c.Wire().ListWorkers(r.Context(), &yardv1.ListWorkersRequest{Limit: listMax, Cursor: r.FormValue("cursor")})
	if err != nil {
		return nil, err
	}
	return workersBody{listed[*yardv1.LiveWorker]{page.Workers, r.next(page.NextCursor)}, time.Duration(page.KnownForMs) * time.Millisecond}, nil
}

// showAudit is what was done in the domain, the last first.
func showAudit(r *Request) (any, error) {
	c, err := r.Client()
	if err != nil {
		return nil, err
	}
	return audit.List(r.Context(), c, listMax)
}
