package yard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
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
	// Group is as in Task. Tasklist moves the task there.
	Group, Tasklist string
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
		StartWithinMs: milliseconds(u.StartWithin), FinishWithinMs: milliseconds(u.FinishWithin), Group: u.Group, Tasklist: u.Tasklist, Headers: u.Headers,
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
	return join(refused)
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

// update sends one request until each of its tasks has a verdict, or ctx ends.
func (c *Client) update(ctx context.Context, tasks []*yardv1.TaskUpdate) (verdicts []*yardv1.Verdict, err error) {
	err = c.counted(ctx, func(ctx context.Context, id string, tries int32) error {
		verdicts, err = c.Wire().Update(ctx, &yardv1.UpdateRequest{Tasks: tasks, RequestId: id, Tries: tries})
		if err == nil && slices.ContainsFunc(verdicts, undecided) {
			return fault.New(fault.Unknown, "some of the tasks have no verdict")
		}
		return err
	})
	if verdicts != nil {
		return verdicts, nil
	}
	return nil, err
}

// undecided reports whether a repeat may get another verdict.
func undecided(v *yardv1.Verdict) bool {
	code := fault.Code(v.Code)
	return v.Code != codeOK && !v.Final && (code == fault.Unknown || code.Retryable())
}

// counted sends a request until its outcome is known, or ctx ends, and counts its tries. While none may have been taken, each is a new request.
func (c *Client) counted(ctx context.Context, send func(ctx context.Context, id string, tries int32) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	id, tries := c.newRequestID(), int32(1)
	var unsure error
	for try := 0; ; try++ {
		err := send(ctx, id, tries)
		switch e := fault.From(err); {
		case err == nil || final(e) || e.Code != fault.Unknown && !e.Code.Retryable():
			return err
		case e.Code == fault.Unknown:
			unsure, tries = err, tries+1
		case unsure == nil:
			id = c.newRequestID()
		}
		if c.nc.IsClosed() || !pause(ctx, backoff(try, retryAfterOf(err))) {
			return ended(ctx, cmp.Or(unsure, err))
		}
	}
}

// CallCounted is Call for a request that counts its tries, as tasks.update does. It is sent until its outcome is known and the answer is decided, or ctx ends.
func CallCounted[Resp any, P interface {
	*Resp
	codec.Message
}](ctx context.Context, c *Client, verb string, req func(id string, tries int32) codec.Message, decided func(P) bool) (resp P, err error) {
	err = c.counted(ctx, func(ctx context.Context, id string, tries int32) (err error) {
		ctx, cancel := context.WithTimeout(ctx, outcomeTry)
		defer cancel()
		if resp, err = callOnce[Resp, P](ctx, &c.transport, c.subject(verb), req(id, tries)); err == nil && !decided(resp) {
			err = fault.New(fault.Unknown, "some entries are not decided: repeat the request")
		}
		return err
	})
	return resp, err
}

// once sends one try of a counted request.
func once[Resp any, P interface {
	*Resp
	codec.Message
}](ctx context.Context, c *Client, endpoint string, req codec.Message) error {
	ctx, cancel := context.WithTimeout(ctx, outcomeTry)
	defer cancel()
	_, err := callOnce[Resp, P](ctx, &c.transport, c.subject(endpoint), req)
	return err
}
