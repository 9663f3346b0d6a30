package yard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Update changes one task (Client.Update). A zero field stays as it is. A task that does not run may change in all; of a running one only
// StartToClose, FinishWithin and Retry.
type Update struct {
	// TaskID is the task's; required.
	TaskID string
	// IfRevision: only if the task has this revision (TaskInfo.Revision). Default 0: any.
	IfRevision int64
	// Priority is 1 (most urgent) to 5.
	Priority int
	// Delay runs it this long after now, up to 366 days; RunAt at a time, to the millisecond; Now at once. At most one of them. Of a task
	// that failed it is the time of the next attempt. The times of StartWithin and FinishWithin begin again with it.
	Delay time.Duration
	RunAt time.Time
	Now   bool
	// Retry: fields that are set replace those of the task's policy, and lists replace lists.
	Retry *RetryPolicy
	// StartToClose bounds an attempt, 100 ms to 7 days. One that runs has this long from now on, be that longer or shorter.
	StartToClose time.Duration
	// HeartbeatTimeout is as in Task.
	HeartbeatTimeout time.Duration
	// StartWithin and FinishWithin are as in Task, and count from the update, or from when the task is due, if that is later.
	StartWithin, FinishWithin time.Duration
	// Group is as in Task.
	Group string
	// Headers are in place of all that it has.
	Headers map[string]string
	// Payload is the new input, encoded as NewPayload says; nil = no other.
	Payload any
}

// Wire is u as it travels, for Wire.Update.
func (u *Update) Wire() (*yardv1.TaskUpdate, error) {
	w := &yardv1.TaskUpdate{
		TaskId: u.TaskID, IfRevision: u.IfRevision, Priority: int32Of(u.Priority), DelayMs: milliseconds(u.Delay), RunNow: u.Now,
		Retry: u.Retry.wire(), StartToCloseMs: milliseconds(u.StartToClose), HeartbeatTimeoutMs: milliseconds(u.HeartbeatTimeout),
		StartWithinMs: milliseconds(u.StartWithin), FinishWithinMs: milliseconds(u.FinishWithin), Group: u.Group, Headers: u.Headers,
	}
	if !u.RunAt.IsZero() {
		w.RunAtMs = u.RunAt.UnixMilli()
	}
	if u.Payload != nil {
		payload, err := NewPayload(u.Payload)
		if err != nil {
			return nil, err
		}
		w.Payload = payload.wire()
	}
	return w, nil
}

// Update changes a task, and returns its revision behind that. It is decided in the order of the log: once it has returned, the update
// holds. STALE: the task has another revision than u.IfRevision, the one in the error's detail under "revision".
// FAILED_PRECONDITION: the task has ended, or runs and u is not for that. Retries are safe: an update is applied once. UNKNOWN: the outcome is unknown; also
// if the task got another update before a retry could be answered.
func (c *Client) Update(ctx context.Context, u Update) (revision int64, err error) {
	w, err := u.Wire()
	if err != nil {
		return 0, err
	}
	verdicts, err := c.update(ctx, []*yardv1.TaskUpdate{w})
	if err != nil {
		return 0, err
	}
	if v := verdicts[0]; v.Code != codeOK {
		return v.Revision, updateError(v)
	}
	return verdicts[0].Revision, nil
}

// RunNow has up to 100 tasks run at once that wait for their time: delayed ones, and those that failed and wait for the next attempt. One
// that is ready stays so. The error joins one *fault.Error per task for which that cannot be, with its id in the detail under "task_id":
// NOT_FOUND, or FAILED_PRECONDITION for one that runs or has ended.
func (c *Client) RunNow(ctx context.Context, taskIDs ...string) error {
	all := make([]*yardv1.TaskUpdate, len(taskIDs))
	for i, id := range taskIDs {
		all[i] = &yardv1.TaskUpdate{TaskId: id, RunNow: true}
	}
	if len(all) == 0 {
		return nil
	}
	verdicts, err := c.update(ctx, all)
	if err != nil {
		return err
	}
	var refused []error
	for _, v := range verdicts {
		if v.Code != codeOK {
			refused = append(refused, updateError(v))
		}
	}
	if len(refused) == 1 {
		return refused[0]
	}
	return errors.Join(refused...)
}

// detailRevision is the key of a task's revision in the detail of an error.
const detailRevision = "revision"

func updateError(v *yardv1.Verdict) error {
	err := verdictError(v)
	var e *fault.Error
	if errors.As(err, &e) && v.Revision > 0 {
		e.Detail[detailRevision] = strconv.FormatInt(v.Revision, 10)
	}
	return err
}

// update sends one request until each of its tasks has a verdict, or ctx ends. While nothing of it was taken, it is a new request each time.
func (c *Client) update(ctx context.Context, tasks []*yardv1.TaskUpdate) ([]*yardv1.Verdict, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	req := &yardv1.UpdateRequest{Tasks: tasks, RequestId: c.newRequestID(), Tries: 1}
	var unsure error // of a try that may have been taken
	for try := 0; ; try++ {
		verdicts, err := c.Wire().Update(ctx, req)
		e := fault.From(err)
		switch {
		case err == nil && !slices.ContainsFunc(verdicts, undecided):
			return verdicts, nil
		case err == nil:
			req.Tries++
		case e.Code == fault.Unknown && !final(e):
			unsure = err
			req.Tries++
		case !e.Code.Retryable():
			return nil, err
		case req.Tries == 1:
			req.RequestId = c.newRequestID()
		}
		if c.nc.IsClosed() || !pause(ctx, backoff(try, retryAfterOf(err))) {
			if err != nil {
				err = ended(ctx, cmp.Or(unsure, err))
			}
			return verdicts, err
		}
	}
}

// undecided tells whether a repeat may get another verdict.
func undecided(v *yardv1.Verdict) bool {
	code := fault.Code(v.Code)
	return v.Code != codeOK && !v.Final && (code == fault.Unknown || code.Retryable())
}
