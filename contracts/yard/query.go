package yard

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// detailTaskID is the key of a task id in the detail of an error.
const detailTaskID = "task_id"

// Get returns a task with its whole history, or NOT_FOUND.
func (c *Client) Get(ctx context.Context, taskID string) (*TaskInfo, error) {
	task, err := c.Wire().Get(ctx, taskID)
	return infoOf(task), err
}

// List returns tasks of the domain that match the filter, newest first, without
// payloads and events: at most filter.Limit, and fewer if they would be more than 400 KiB. Tasks
// finds them all.
func (c *Client) List(ctx context.Context, filter Filter) ([]*TaskInfo, error) {
	resp, err := c.Wire().List(ctx, filter.wire())
	return each(resp.GetTasks(), infoOf), err
}

// Cancel cancels up to 1000 tasks. A waiting one is cancelled at once; the
// worker of a running one is notified by its next heartbeat. The error joins one
// *fault.Error per task that was not cancelled, with its id in the detail under
// "task_id"; NOT_FOUND and FAILED_PRECONDITION (finished already) are the usual ones.
func (c *Client) Cancel(ctx context.Context, taskIDs ...string) error {
	return c.CancelFor(ctx, "", taskIDs...)
}

// CancelFor is Cancel with a reason for people, at most 1024 bytes, which the tasks' histories keep.
func (c *Client) CancelFor(ctx context.Context, reason string, taskIDs ...string) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	var refused []error
	for try := 0; len(taskIDs) > 0; try++ {
		verdicts, err := c.Wire().Cancel(ctx, &yardv1.CancelRequest{TaskIds: taskIDs, Reason: reason})
		if err != nil {
			return err
		}
		var again []string
		var unsure []error
		for _, v := range verdicts {
			if v.Code == codeOK {
				continue
			}
			if code := fault.Code(v.Code); code == fault.Unknown || code.Retryable() {
				again, unsure = append(again, v.TaskId), append(unsure, verdictError(v))
				continue
			}
			refused = append(refused, verdictError(v))
		}
		taskIDs = again
		if len(again) > 0 && !pause(ctx, backoff(try, 0)) {
			refused = append(refused, unsure...)
			break
		}
	}
	return join(refused)
}

// join is the error itself, if there is only one.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// verdictError is a refusing verdict as an error.
func verdictError(v *yardv1.Verdict) error {
	e := fault.New(fault.Code(v.Code), "%s", v.Message)
	e.Detail = map[string]string{detailTaskID: v.TaskId}
	return e
}

// DescribeTasklist returns how many tasks of a tasklist are queued, running and finished.
func (c *Client) DescribeTasklist(ctx context.Context, tasklist string) (TasklistInfo, error) {
	resp, err := c.Wire().DescribeTasklist(ctx, tasklist)
	return tasklistInfoOf(resp), err
}

// TaskType is what tasks of one type have in common. Zero fields take the
// defaults given here.
type TaskType struct {
	// Name is the type's name; required. [A-Za-z0-9_.-]{1,64}.
	Name string
	// Retry is the policy of tasks without one.
	Retry *RetryPolicy
	// StartToClose bounds one attempt, 100 ms to 7 days. Default 5 min.
	StartToClose time.Duration
	// HeartbeatTimeout is as in Task. Default none.
	HeartbeatTimeout time.Duration
	// StartWithin and FinishWithin are as in Task. Default: never.
	StartWithin, FinishWithin time.Duration
	// StuckAfter is for how long an attempt runs until it counts as stuck (package operate), 1 s to 366 days. Default: that of the domain.
	StuckAfter time.Duration
	// CompletedRetention is how long completed tasks are kept at least, 15 min to 366 days. Default: as the domain's finished ones.
	CompletedRetention time.Duration
	// MaxConcurrency bounds the attempts of this type that run at once in the
	// domain, on any number of nodes, 1..1000000. Default 0 = no limit.
	MaxConcurrency int
	// MaxConcurrencyPerGroup bounds the attempts of this type of each group (Task.Group) that run at once, on any number of nodes,
	// 1..1000000; a group may have its own number (Group.MaxConcurrency). Tasks without a group are not counted. Default 0 = no limit.
	MaxConcurrencyPerGroup int
	// Rate is how many attempts of this type start in a time. Default: any number.
	Rate Rate
	// Cost is how many starts of a rate each attempt uses, 1..1000, of tasks that do not say it themselves. Default 0 = 1.
	Cost int
	// Limits are limits that this type shares with others (PutLimit), by name; at most 8, each once. Default none. An
	// attempt starts when there is a slot of each, and of those of its type, tasklist and domain.
	Limits []string
	// SlotsInUse is how many run now, if there is a limit. Only in the answer of GetType.
	SlotsInUse int
	// Pause is there while it is paused. Only in the answer of GetType; PutType does not change it.
	Pause *Pause
	// Drain is Pause for a drain.
	Drain *Pause
	// Revision changes with every put. PutType replaces only this revision, or any if it is 0.
	Revision int64
}

// PutType creates or changes a task type and returns it as stored. A changed limit takes effect within a second. So do Retry, StartToClose
// and HeartbeatTimeout: they hold for each attempt that starts or ends from then on, also of tasks that were accepted before, unless the task
// has the field itself. Tasks accepted before keep StartWithin, FinishWithin and Cost. STALE: another revision than t's is stored. FAILED_PRECONDITION: there is no such limit as
// t.Limits names.
func (c *Client) PutType(ctx context.Context, t TaskType) (TaskType, error) {
	resp, err := call[yardv1.PutTypeResponse](ctx, &c.transport, c.subject("types.put"), &yardv1.PutTypeRequest{Type: t.Wire()})
	return taskTypeOf(resp.GetType()), err
}

// GetType returns a task type, or NOT_FOUND if it has no settings and is not paused. Without settings its Revision is 0.
func (c *Client) GetType(ctx context.Context, name string) (TaskType, error) {
	resp, err := call[yardv1.GetTypeResponse](ctx, &c.transport, c.subject("types.get"), &yardv1.GetTypeRequest{Name: name})
	t := taskTypeOf(resp.GetType())
	t.SlotsInUse, t.Pause, t.Drain = int(resp.GetSlotsInUse()), maybePaused(resp.GetPause()), maybePaused(resp.GetDrain())
	return t, err
}

// DeleteType deletes the settings of a task type, and returns them as they were: only the given
// revision (STALE if another one is stored), or any if that is 0. Its limit ends within a
// second; its tasks keep the settings that they last had, and later ones have the default policy. NOT_FOUND: there are none, or
// an earlier try deleted them and its answer was lost.
func (c *Client) DeleteType(ctx context.Context, name string, revision int64) (TaskType, error) {
	resp, err := call[yardv1.DeleteTypeResponse](ctx, &c.transport, c.subject("types.delete"), &yardv1.DeleteTypeRequest{Name: name, Revision: revision})
	return taskTypeOf(resp.GetType()), err
}

// Wire is the task type as the API writes it.
func (t TaskType) Wire() *yardv1.TaskType {
	return &yardv1.TaskType{
		Name: t.Name, Retry: t.Retry.wire(), StartToCloseMs: milliseconds(t.StartToClose), HeartbeatTimeoutMs: milliseconds(t.HeartbeatTimeout),
		StartWithinMs: milliseconds(t.StartWithin), FinishWithinMs: milliseconds(t.FinishWithin), StuckAfterMs: milliseconds(t.StuckAfter),
		CompletedRetentionMs: milliseconds(t.CompletedRetention), MaxConcurrency: int32Of(t.MaxConcurrency), MaxConcurrencyPerGroup: int32Of(t.MaxConcurrencyPerGroup),
		Rate: t.Rate.wire(), Cost: int32Of(t.Cost), Limits: t.Limits, Revision: t.Revision,
	}
}

func taskTypeOf(w *yardv1.TaskType) TaskType {
	return TaskType{
		Name: w.GetName(), Retry: RetryPolicyOf(w.GetRetry()), StartToClose: milliTime(w.GetStartToCloseMs()), HeartbeatTimeout: milliTime(w.GetHeartbeatTimeoutMs()),
		StartWithin: milliTime(w.GetStartWithinMs()), FinishWithin: milliTime(w.GetFinishWithinMs()), StuckAfter: milliTime(w.GetStuckAfterMs()),
		CompletedRetention: milliTime(w.GetCompletedRetentionMs()), MaxConcurrency: int(w.GetMaxConcurrency()), MaxConcurrencyPerGroup: int(w.GetMaxConcurrencyPerGroup()),
		Rate: rateOf(w.GetRate()), Cost: int(w.GetCost()), Limits: w.GetLimits(), Revision: w.GetRevision(),
	}
}
