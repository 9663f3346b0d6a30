// Package operate is what an operator does about tasks in trouble: find attempts that run for too long, and end tasks by hand.
//
// Owns: the Go form of these calls, and the repeats of an end until it is decided. Never does: decide that an attempt is stuck, or how a task ends; the
// engine does.
//
// On failure: a call returns a *fault.Error, matched by code as those of package yard are. It is safe to repeat, and is repeated as the Client's are.
//
//	stuck, err := operate.Stuck(ctx, client, operate.StuckQuery{Tasklist: "mail"})
package operate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// StuckQuery says which attempts are listed.
type StuckQuery struct {
	// Tasklist and Type: only those of them. Default: all.
	Tasklist, Type string
	// RunningFor is after how long an attempt is listed. Default: StuckAfter of its type, then that of the domain, then a minute.
	RunningFor time.Duration
	// Limit is the most to list, 1 to 1000. Default 100.
	Limit int
}

// StuckTasks are tasks whose attempts run for too long.
type StuckTasks struct {
	// Tasks are those that run for longest, in that order.
	Tasks []StuckTask
	// Found is how many there are, those that are not listed included.
	Found int64

	wire *yardv1.StuckTasksResponse
}

// StuckTask is a task whose attempt runs for too long.
type StuckTask struct {
	TaskID, Type, Tasklist, Group string
	// Worker is the name of the worker that runs it, WorkerID the id of that worker.
	Worker, WorkerID string
	// Started is when the attempt started. It has run for RunningFor, and is stuck after StuckAfter.
	Started                time.Time
	RunningFor, StuckAfter time.Duration
	// Deadline is when the engine ends the attempt at the latest.
	Deadline time.Time
	// Grants is how many times the task was given to a worker.
	Grants int
	// CancelRequested: it was cancelled, and its worker has not stopped yet.
	CancelRequested bool
}

// Wire is s as it travels.
func (s *StuckTasks) Wire() *yardv1.StuckTasksResponse { return s.wire }

// Stuck lists the tasks whose attempts run for too long. The engine knows each attempt that runs, however many tasks wait.
func Stuck(ctx context.Context, c *yard.Client, q StuckQuery) (*StuckTasks, error) {
	resp, err := yard.Call[yardv1.StuckTasksResponse](ctx, c, "tasks.stuck", &yardv1.StuckTasksRequest{
		Tasklist: q.Tasklist, Type: q.Type, RunningForMs: q.RunningFor.Milliseconds(), Limit: int32(min(q.Limit, 1<<20)),
	})
	if err != nil {
		return nil, err
	}
	all := &StuckTasks{Found: resp.Found, wire: resp}
	for _, t := range resp.Tasks {
		all.Tasks = append(all.Tasks, StuckTask{
			TaskID: t.TaskId, Type: t.Type, Tasklist: t.Tasklist, Group: t.Group, Worker: t.Worker, WorkerID: t.WorkerId,
			Started: time.UnixMilli(t.StartedAtMs), RunningFor: time.Duration(t.RunningForMs) * time.Millisecond, StuckAfter: time.Duration(t.StuckAfterMs) * time.Millisecond,
			Deadline: time.UnixMilli(t.DeadlineMs), Grants: int(t.Grants), CancelRequested: t.CancelRequested,
		})
	}
	return all, nil
}

// Ending says how tasks are ended by hand.
type Ending struct {
	// State is how they end: yard.StateCompleted, as if a worker had completed them; yard.StateDead, as dead letters with the error type "ended"; or
	// yard.StateCancelled, without dead letters. Required.
	State yard.State
	// Result is the output, a JSON value, of a single task that is completed. Default: none.
	Result json.RawMessage
	// Reason and By are for people, at most 800 and 128 bytes; each task's history has them.
	Reason, By string
}

// End ends 1 to 100 tasks by hand, at once, wherever they are in their lives. The attempt of one that runs is over: its worker is notified, and what it reports
// is refused as STALE; it may work on until it hears of it, also beside the next task of the order key. Retries are safe: an end is made once. The error joins
// one *fault.Error per task that was not ended, with its id in the detail under "task_id"; NOT_FOUND and FAILED_PRECONDITION (it has ended) are the usual ones.
func End(ctx context.Context, c *yard.Client, e Ending, taskIDs ...string) error {
	verdicts, err := EndVerdicts(ctx, c, e, taskIDs...)
	all := []error{err}
	for _, v := range verdicts {
		if v.Code != codeOK {
			refused := fault.New(fault.Code(v.Code), "%s", v.Message)
			refused.Detail = map[string]string{"task_id": v.TaskId}
			all = append(all, refused)
		}
	}
	return errors.Join(all...)
}

// codeOK is the code of a task that was ended.
const codeOK = "OK"

// EndVerdicts is End with a verdict for each task, in order. UNKNOWN: it could not be decided in time.
func EndVerdicts(ctx context.Context, c *yard.Client, e Ending, taskIDs ...string) ([]*yardv1.Verdict, error) {
	req := &yardv1.EndTasksRequest{TaskIds: taskIDs, Reason: e.Reason, By: e.By}
	if err := req.State.UnmarshalText([]byte(e.State)); err != nil {
		return nil, fault.At(fault.InvalidArgument, "/state", "must be completed, dead or cancelled")
	}
	if e.Result != nil {
		req.Result = &yardv1.Payload{Data: e.Result}
	}
	next := func(id string, tries int32) codec.Message {
		req.RequestId, req.Tries = id, tries
		return req
	}
	resp, err := yard.CallCounted(ctx, c, "tasks.end", next, decided)
	if resp != nil {
		return resp.Verdicts, nil
	}
	return nil, err
}

// decided reports whether no repeat of the request changes a verdict.
func decided(resp *yardv1.OutcomeResponse) bool {
	return !slices.ContainsFunc(resp.Verdicts, func(v *yardv1.Verdict) bool {
		code := fault.Code(v.Code)
		return code == fault.Unknown && !v.Final || code.Retryable()
	})
}
