package linear

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

const (
	domain   = "linear"
	tasklist = "work"
	// answerWithin is how long a client waits for an answer, pollWait how long a poll waits for tasks.
	answerWithin, pollWait = 4 * time.Second, 300 * time.Millisecond
	// farAway is the delay of what is not to run in a test.
	farAway = time.Hour
	// lettersIn is how long a redrive waits before it is repeated.
	lettersIn = 400 * time.Millisecond
	// triesMax is how often a client sends what has no clear answer.
	triesMax = 4
	// repeatAfter is how long a client waits until it repeats an update.
	repeatAfter = 5 * time.Second
)

// client sends calls, each in a message of its own, and writes down what it heard.
type client struct {
	nc *nats.Conn
	h  *history
	no int
}

// ask sends one request. Its error has a code: UNKNOWN where there is no answer.
func ask[Resp any, P interface {
	*Resp
	codec.Message
}](ctx context.Context, c *client, endpoint string, req codec.Message) (P, error) {
	body, err := codec.Marshal(codec.JSON, req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answer, err := c.nc.RequestWithContext(ctx, topology.API(domain, endpoint), body)
	if errors.Is(err, nats.ErrNoResponders) { // no frontend has it
		return nil, fault.New(fault.Unavailable, "%v", err)
	} else if err != nil {
		return nil, fault.New(fault.Unknown, "%v", err)
	}
	if e := fault.Decode(answer.Header.Get(fault.HeaderCode), answer.Header.Get(fault.HeaderDescription), answer.Data); e != nil {
		return nil, e
	}
	resp := P(new(Resp))
	return resp, codec.Unmarshal(codec.JSON, answer.Data, resp)
}

// submit hands in one task, again where no one knows whether it is stored. Its tries are one call.
func (c *client) submit(ctx context.Context, in input) (id string) {
	at := c.h.instant()
	in.kind = submit
	call := call{in: in, from: c.h.now(), by: c.no}
	task := &yardv1.NewTask{Type: typeName(in), Payload: payload(in.value), UniqueKey: in.key}
	if in.when == far {
		task.DelayMs = farAway.Milliseconds()
	}
	switch in.on {
	case rejected:
		task.OnConflict = yardv1.OnConflict_ON_CONFLICT_REJECT
	case replaced:
		task.OnConflict = yardv1.OnConflict_ON_CONFLICT_REPLACE
	}
	req := &yardv1.SubmitRequest{Tasklist: tasklist, Tasks: []*yardv1.NewTask{task}, RequestId: requestID(at)}
	unknown := false
	for req.Tries = 1; req.Tries <= triesMax; req.Tries++ {
		resp, err := ask[yardv1.SubmitResponse](ctx, c, "tasks.submit", req)
		call.out = output{code: string(fault.CodeOf(err))}
		if err == nil {
			r := resp.Results[0]
			call.out = output{code: r.Outcome.Name(), task: r.TaskId}
			break
		}
		if call.out.code != string(fault.Unknown) && !unknown {
			break
		}
		unknown = true
		call.out.code = string(fault.Unknown)
		if ctx.Err() != nil {
			break
		}
	}
	c.h.submitted(call, at)
	return call.out.task
}

// payload is a value as JSON.
func payload(value int64) *yardv1.Payload {
	return &yardv1.Payload{Data: fmt.Append(nil, value)}
}

func valueOf(p *yardv1.Payload) (value int64) {
	_, _ = fmt.Sscan(string(p.GetData()), &value) // 0 is no value
	return value
}

func requestID(at time.Time) string { return ids.NewRequestID(at).String() }

// get looks at a task.
func (c *client) get(ctx context.Context, id string) (*yardv1.Task, bool) {
	call := call{in: input{kind: get, task: id}, from: c.h.now(), by: c.no}
	resp, err := ask[yardv1.GetResponse](ctx, c, "tasks.get", &yardv1.GetRequest{TaskId: id})
	switch code := fault.CodeOf(err); {
	case err == nil:
		call.out = output{code: codeOK, seen: viewOf(resp.Task)}
	case code == fault.NotFound:
		call.out.code = string(code)
	default: // a read has no effect
		c.h.count(get, string(code))
		return nil, false
	}
	c.h.add(call)
	return resp.GetTask(), true
}

func viewOf(t *yardv1.Task) view {
	v := view{phase: idle, revision: t.Revision, value: valueOf(t.Payload), attempts: t.Grants, stopping: t.CancelRequested}
	switch t.State {
	case yardv1.TaskState_TASK_STATE_WAITING, yardv1.TaskState_TASK_STATE_QUEUED:
		v.weak = true
	case yardv1.TaskState_TASK_STATE_RUNNING:
		v.phase = running
	case yardv1.TaskState_TASK_STATE_COMPLETED:
		v.phase = completed
	case yardv1.TaskState_TASK_STATE_DEAD:
		v.phase = dead
	case yardv1.TaskState_TASK_STATE_CANCELLED:
		v.phase = cancelled
	}
	return v
}

// report sends what is decided for one task, until the answer is clear: each try is a call of its own.
func (c *client) report(ctx context.Context, in input, endpoint string, req codec.Message) (output, bool) {
	for range triesMax {
		call := call{in: in, from: c.h.now(), by: c.no}
		resp, err := ask[yardv1.OutcomeResponse](ctx, c, endpoint, req)
		if err != nil {
			call.out.code = string(fault.CodeOf(err))
		} else {
			v := resp.Verdicts[0]
			call.out = output{code: v.Code, revision: v.Revision, stopping: v.CancelRequested}
		}
		if call.out.code == string(fault.FailedPrecondition) {
			call.out.revision = 0
		}
		c.h.add(call)
		if call.out.code != string(fault.Unknown) || ctx.Err() != nil {
			return call.out, call.out.code == codeOK
		}
		if u, ok := req.(*yardv1.UpdateRequest); ok {
			if u.Tries++; u.Tries == 2 {
				select {
				case <-ctx.Done():
				case <-time.After(repeatAfter):
				}
			}
		}
	}
	return output{}, false
}

func (c *client) update(ctx context.Context, in input) (revision int64) {
	in.kind, in.request = update, requestID(c.h.instant())
	u := &yardv1.TaskUpdate{TaskId: in.task, IfRevision: in.ifRevision, Payload: payload(in.value), RunNow: in.when == soon}
	if in.when == far {
		u.DelayMs = farAway.Milliseconds()
	}
	out, _ := c.report(ctx, in, "tasks.update", &yardv1.UpdateRequest{RequestId: in.request, Tries: 1, Tasks: []*yardv1.TaskUpdate{u}})
	return out.revision
}

func (c *client) cancel(ctx context.Context, id string) {
	c.report(ctx, input{kind: cancel, task: id}, "tasks.cancel", &yardv1.CancelRequest{TaskIds: []string{id}})
}

// redrive brings a dead letter back, again where it is not known whether it is: a letter is stored a moment after the end. Its tries are one call.
func (c *client) redrive(ctx context.Context, id string) {
	request := requestID(c.h.instant())
	call := call{in: input{kind: redrive, task: id, request: request}, from: c.h.now(), by: c.no}
	for try := range triesMax {
		if try > 0 {
			<-time.After(lettersIn)
		}
		resp, err := ask[yardv1.RedriveResponse](ctx, c, "deadletters.redrive", &yardv1.RedriveRequest{RequestId: request, TaskIds: []string{id}})
		if err == nil {
			call.out.code = resp.Verdicts[0].Code
		} else if code := fault.CodeOf(err); try == 0 || code == fault.Unknown { // what was not sent now may have been before
			call.out.code = string(code)
		}
		if call.out.code != string(fault.Unknown) {
			break
		}
	}
	c.h.add(call)
}

func (c *client) complete(ctx context.Context, id, token string) {
	c.report(ctx, input{kind: complete, task: id, token: token}, "tasks.complete", &yardv1.CompleteRequest{Tasks: []*yardv1.Completion{{TaskId: id, Token: token}}})
}

func (c *client) beat(ctx context.Context, id, token string) bool {
	_, ok := c.report(ctx, input{kind: beat, task: id, token: token}, "tasks.heartbeat", &yardv1.HeartbeatRequest{Tasks: []*yardv1.Beat{{TaskId: id, Token: token}}})
	return ok
}

func (c *client) fail(ctx context.Context, in input) {
	in.kind = fail
	f := &yardv1.Failure{TaskId: in.task, Token: in.token, Message: "no", NonRetryable: in.final}
	switch {
	case in.final:
	case in.when == far:
		f.DelayMs = farAway.Milliseconds()
	default:
		f.DelayMs = 20
	}
	c.report(ctx, in, "tasks.fail", &yardv1.FailRequest{Tasks: []*yardv1.Failure{f}})
}

// poll asks for attempts under a name of its own, by which those are known that do not arrive.
func (c *client) poll(ctx context.Context, worker string, most int32) []*yardv1.PolledTask {
	from := c.h.poll(worker)
	resp, err := ask[yardv1.PollResponse](ctx, c, "tasks.poll", &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: most, WaitMs: pollWait.Milliseconds(), Worker: worker})
	if err != nil {
		c.h.count("poll", string(fault.CodeOf(err)))
		return nil
	}
	for _, p := range resp.Tasks {
		c.h.add(call{
			in:  input{kind: grant, task: p.TaskId, token: p.Token, attempt: p.Attempt, value: valueOf(p.Payload)},
			out: output{code: codeOK}, from: from, by: c.no,
		})
	}
	return resp.Tasks
}
