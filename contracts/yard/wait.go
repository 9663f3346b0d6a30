package yard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

const (
	// getWait is how long one get of a waiting call stays open. It is less than
	// tryTimeout, so that a dead process is noticed.
	getWait = 10 * time.Second
	// seenWithin bounds how long the engine may answer NOT_FOUND for a task it has
	// just accepted. Accepted is durable, so this can only be its reader's lag.
	seenWithin = time.Minute
)

// Result is a completed task.
type Result struct {
	// TaskID is the task's id.
	TaskID string
	// Payload is what the handler returned.
	Payload Payload
	// Task is the task with its whole history.
	Task *TaskInfo
}

// Decode reads the result's payload into v, as Payload.Decode does.
func (r *Result) Decode(v any) error { return r.Payload.Decode(v) }

// TaskError says that a task ended without a result. It matches ErrDead,
// ErrCancelled or ErrExpired.
type TaskError struct {
	TaskID string
	// State is dead, cancelled or expired.
	State State
	// Reason of an expired task is the time that was over: start_within or finish_within.
	Reason string
	// Message and ErrorType are those of the last failure.
	Message   string
	ErrorType string
	// Failures is how many attempts failed.
	Failures int
}

// ErrDead matches the TaskError of a task that failed for good.
var ErrDead = errors.New("the task is dead")

// ErrExpired matches the TaskError of a task that did not start or was not completed in its time.
var ErrExpired = errors.New("the task is expired")

// ErrUnfinished matches the UnfinishedError of a wait that ended before its task did.
var ErrUnfinished = errors.New("the task is stored, and not finished yet")

// UnfinishedError says that a wait ended before its task: the task is stored, and Wait with its id waits again.
// Submitting it again would make a second task. It matches ErrUnfinished, and the error of the context.
type UnfinishedError struct {
	TaskID string
	cause  error
}

// Error implements error.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("task %s is stored, and not finished yet: %v", e.TaskID, e.cause)
}

// Unwrap returns why the wait ended.
func (e *UnfinishedError) Unwrap() []error { return []error{ErrUnfinished, e.cause} }

// Error implements error.
func (e *TaskError) Error() string {
	s := fmt.Sprintf("task %s is %s", e.TaskID, e.State)
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Is matches ErrDead, ErrCancelled and ErrExpired by the state.
func (e *TaskError) Is(target error) bool {
	return target == ErrDead && e.State == StateDead || target == ErrCancelled && e.State == StateCancelled ||
		target == ErrExpired && e.State == StateExpired
}

// Run submits a task and waits until it is finished or ctx ends, without
// another limit. A task that ends dead, cancelled or expired is a *TaskError. If ctx ends before the task does, the
// error is an *UnfinishedError: the task continues. With ErrUnknown it may or may not be stored; any other
// error says that it is not.
func (c *Client) Run(ctx context.Context, task Task) (*Result, error) {
	id, err := c.Submit(ctx, task)
	if err != nil {
		return nil, err
	}
	return c.wait(ctx, id, time.Now().Add(seenWithin))
}

// Run submits a task, waits for it as Client.Run does, and decodes its result.
func Run[Out any](ctx context.Context, c *Client, task Task) (Out, error) {
	var out Out
	result, err := c.Run(ctx, task)
	if err != nil {
		return out, err
	}
	return out, result.Decode(&out)
}

// Wait waits until a task is finished or ctx ends. Its errors are those of Run,
// and NOT_FOUND.
func (c *Client) Wait(ctx context.Context, taskID string) (*Result, error) {
	return c.wait(ctx, taskID, time.Time{})
}

// wait asks again and again. Until unseenUntil, NOT_FOUND is not believed.
func (c *Client) wait(ctx context.Context, taskID string, unseenUntil time.Time) (*Result, error) {
	req := &yardv1.GetRequest{TaskId: taskID}
	stored := !unseenUntil.IsZero()
	for try := 0; ; try++ {
		req.WaitMs = waitMS(ctx)
		asked := time.Now()
		resp, err := callOnce[yardv1.GetResponse](ctx, &c.transport, c.subject("tasks.get"), req)
		if err == nil && resp.Task.GetState().Finished() {
			return resultOf(infoOf(resp.Task))
		}
		var retryAfter time.Duration
		if err == nil {
			try, stored = 0, true
			if req.WaitMs > 0 && 2*time.Since(asked).Milliseconds() >= req.WaitMs {
				continue // the engine waited; only an answer given too soon is followed by a pause
			}
		} else {
			e := fault.From(err)
			unseen := e.Code == fault.NotFound && time.Now().Before(unseenUntil)
			if !e.Code.Retryable() && e.Code != fault.Unknown && !unseen {
				return nil, err
			}
			if c.nc.IsClosed() {
				return nil, unfinished(taskID, stored, err)
			}
			retryAfter = e.RetryAfter
		}
		if !pause(ctx, backoff(try, retryAfter)) {
			// Without an error its deadline is nearer than the next try.
			return nil, unfinished(taskID, stored, cmp.Or(ctx.Err(), context.DeadlineExceeded))
		}
	}
}

// waitMS is how long the next get may wait, so that its answer comes before ctx ends.
func waitMS(ctx context.Context) int64 {
	wait := getWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)*9/10)
	}
	return max(wait.Milliseconds(), 0)
}

// unfinished is the error of a wait that ended first. Stored says whether the engine has confirmed the task.
func unfinished(taskID string, stored bool, cause error) error {
	if !stored {
		return fmt.Errorf("%w: %w", fault.New(fault.Unavailable, "the engine did not report on task %s", taskID), cause)
	}
	return &UnfinishedError{TaskID: taskID, cause: cause}
}

func resultOf(t *TaskInfo) (*Result, error) {
	if t.State == StateCompleted {
		return &Result{TaskID: t.ID, Payload: t.Result, Task: t}, nil
	}
	e := &TaskError{TaskID: t.ID, State: t.State, Message: t.ErrorMessage, ErrorType: t.ErrorType, Failures: t.Failures}
	if n := len(t.Events); t.State == StateExpired && n > 0 {
		e.Reason = t.Events[n-1].ErrorType
	}
	return nil, e
}
