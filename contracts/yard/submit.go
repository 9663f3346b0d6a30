package yard

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// taskOverhead is what a task takes in its request besides itself, bytes.
const taskOverhead = 5

// requestTasksMax is the engine's limit of tasks or outcomes in one request.
const requestTasksMax = 1000

// Submit submits one task and returns its id after it is stored.
//
// It tries until ctx ends (10 s if ctx has no deadline): UNAVAILABLE,
// RESOURCE_EXHAUSTED and a missing answer are repeated after a growing wait, with a
// request id by which the engine recognizes the task: it is stored once. An error with code
// UNKNOWN means that the task may or may not have been accepted; with any other
// code it was not.
//
// Tasks that several goroutines submit at once travel together: while one request is
// under way, the next one gathers. Each is still checked by itself.
//
// Of a task whose unique key another one has, it returns the id of that one; with Unique.Reject an error with the code ALREADY_EXISTS too.
func (c *Client) Submit(ctx context.Context, task Task) (string, error) {
	if task.Unique != nil {
		return c.submitUnique(ctx, task)
	}
	if c.wrapped != nil {
		return c.submitWrapped(ctx, task)
	}
	if task.OrderKey != "" || task.Batch != "" {
		return c.submitApart(ctx, task)
	}
	return c.submitOne(ctx, task)
}

// SubmitMany submits any number of tasks and returns their ids, in order.
//
// Up to 1000 tasks with less than 900 KB of encoded data together are one request:
// all of them are accepted or none. More are sent as several such requests, one
// after the other; each is atomic, all together are not. An error comes with the
// ids accepted so far, those of the first tasks: tasks[len(ids):] are left. If the
// code is UNKNOWN, the first request's worth of these may have been accepted too. If a batch was closed meanwhile, a request may be stored in part: the
// ids of tasks that were refused are empty, and the error names the first. Retries are as for Submit.
//
// Tasks with order keys travel apart from others, too. A request of them with several keys may be stored in parts: none of it is known to be
// accepted if that ends with UNKNOWN.
//
// Tasks with unique keys are each for themselves; those next to each other travel together. The id of one whose key is taken is that of the
// task that has it; SubmitEach says which these are.
func (c *Client) SubmitMany(ctx context.Context, tasks []Task) ([]string, error) {
	if c.wrapped != nil {
		return c.wrapped(ctx, tasks)
	}
	return c.submitMany(ctx, tasks)
}

func (c *Client) submitMany(ctx context.Context, tasks []Task) ([]string, error) {
	all, err := c.submitEach(ctx, tasks)
	return idsIn(all), err
}

func (c *Client) submitEach(ctx context.Context, tasks []Task) ([]Submitted, error) {
	accepted := make([]Submitted, 0, len(tasks))
	for len(accepted) < len(tasks) {
		offset := len(accepted)
		req, err := gather(tasks[offset:], c.bytesMax())
		if err != nil {
			return accepted, offsetPath(err, offset)
		}
		resp, err := c.submitRequest(ctx, req)
		if err != nil {
			return accepted, offsetPath(err, offset)
		}
		if len(resp.Results) != len(req.Tasks) {
			return accepted, fault.New(fault.Internal, "%d results were answered for %d tasks", len(resp.Results), len(req.Tasks))
		}
		for i, r := range resp.Results {
			accepted = append(accepted, Submitted{r.TaskId, SubmitOutcome(r.Outcome.Name())})
			if r.Outcome == yardv1.SubmitOutcome_SUBMIT_OUTCOME_REFUSED && err == nil {
				err = fault.At(fault.FailedPrecondition, taskPath(offset+i), "was refused, and other tasks are stored: its batch was closed, or its tasklist or type drained, meanwhile")
			}
		}
		if err != nil {
			return accepted, err
		}
	}
	return accepted, nil
}

// submitApart submits one task that does not travel with others: it has an order key, or a batch.
func (c *Client) submitApart(ctx context.Context, task Task) (string, error) {
	ids, err := c.submitMany(ctx, []Task{task})
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// gather makes one request of the first tasks, as many as fit and all have unique keys, or order keys, or none has, and are of the same batch, if any.
func gather(tasks []Task, bytesMax int) (*yardv1.SubmitRequest, error) {
	tasks = tasks[:min(len(tasks), requestTasksMax)]
	// One allocation for all the messages, one for the pointers.
	slab := make([]yardv1.NewTask, len(tasks))
	req := &yardv1.SubmitRequest{Tasks: make([]*yardv1.NewTask, 0, len(tasks))}
	size := 0
	for i := range tasks {
		w := &slab[i]
		if err := tasks[i].fill(w); err != nil {
			return nil, fillFault(taskPath(i), err)
		}
		size += w.SizeVT() + taskOverhead
		if i > 0 && (size > bytesMax || !tasks[i].travelsWith(&tasks[0])) {
			break
		}
		req.Tasks = append(req.Tasks, w)
	}
	return req, nil
}

// travelsWith reports whether both may be in one request.
func (t *Task) travelsWith(o *Task) bool {
	return (t.Unique == nil) == (o.Unique == nil) && (t.OrderKey == "") == (o.OrderKey == "") && t.Batch == o.Batch
}

func (c *Client) submitRequest(ctx context.Context, req *yardv1.SubmitRequest) (*yardv1.SubmitResponse, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	return c.submit(ctx, req, nil)
}

// submitTry bounds a first try: a frontend that has not answered by then has died, or is very slow. A repeat takes
// what tryTimeout allows, since the engine may have to wait until no earlier try can be under way (8 s).
const submitTry = 5 * time.Second

// clockTries bounds how often a request gets a new id because this machine's clock is off.
const clockTries = 3

// submit sends one request until its outcome is known, or ctx ends. Once a try has ended with UNKNOWN, only
// two answers decide it: success, and a refusal with the clock of the engine, since then no try was stored or will be. Any other
// refusal is about the repeat. As long as it is certain that nothing was stored, each try is a first one: those are quicker.
func (c *Client) submit(ctx context.Context, req *yardv1.SubmitRequest, f *requestState) (*yardv1.SubmitResponse, error) {
	var unsure error
	clocks := 0
	c.name(req)
	for try := 0; ; try++ {
		f.begin()
		resp, err := c.trySubmit(ctx, req)
		if err == nil {
			c.heedClock(resp.NowMs)
			return resp, nil
		}
		f.finish(err)
		e := fault.From(err)
		if f != nil && unsure == nil && fullQueue(err, len(req.Tasks)) >= 0 {
			return nil, err // the tasks of other tasklists need not wait
		}
		if final(e) {
			return nil, err
		}
		again := e.Code.Retryable() || e.Code == fault.Unknown
		switch now := e.Detail[fault.DetailNowMs]; {
		case e.Code == fault.Unknown:
			unsure = err
			req.Tries++
		case e.Path == "/request_id" && now != "":
			ms, _ := strconv.ParseInt(now, 10, 64) // 0 where it is no number, which is not heeded
			c.heedClock(ms)
			c.name(req)
			if unsure == nil && clocks < clockTries {
				clocks++
				continue
			}
			unsure, again = nil, unsure != nil
		case unsure != nil:
			req.Tries++
		default:
			c.name(req)
		}
		if again && !c.nc.IsClosed() && pause(ctx, backoff(try, e.RetryAfter)) {
			continue
		}
		if unsure != nil {
			err = unsure
		}
		return nil, ended(ctx, err)
	}
}

// name makes req a new request.
func (c *Client) name(req *yardv1.SubmitRequest) {
	req.RequestId, req.Tries = c.newRequestID(), 1
}

// newRequestID names a request, by the server's clock as far as it is known.
func (c *Client) newRequestID() string {
	return ids.NewRequestID(time.Now().Add(time.Duration(c.clock.Load()))).String()
}

// heedClock takes in the server's clock, Unix ms, where it differs from ours; 0 = it does not.
func (c *Client) heedClock(nowMS int64) {
	if nowMS > 0 {
		c.clock.Store(int64(time.Until(time.UnixMilli(nowMS))))
	}
}

// trySubmit is one try.
func (c *Client) trySubmit(ctx context.Context, req *yardv1.SubmitRequest) (*yardv1.SubmitResponse, error) {
	if req.Tries == 1 {
		once, cancel := context.WithTimeout(ctx, submitTry)
		defer cancel()
		ctx = once
	}
	return callOnce[yardv1.SubmitResponse](ctx, &c.transport, c.subject("tasks.submit"), req)
}

func taskPath(i int) string { return "/tasks/" + strconv.Itoa(i) }

// offsetPath makes the path of a refused task count from the caller's first
// task rather than from the first of the request it was in.
func offsetPath(err error, offset int) error {
	e, ok := err.(*fault.Error)
	if !ok || offset == 0 {
		return err
	}
	i := taskOf(e.Path, math.MaxInt)
	if i < 0 {
		return err
	}
	moved := *e
	moved.Path = taskPath(offset+i) + strings.TrimPrefix(e.Path, taskPath(i))
	return &moved
}
