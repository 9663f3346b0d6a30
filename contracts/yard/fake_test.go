package yard_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// fake is an engine in memory behind the public subjects. It keeps the parts of
// the protocol that the SDK relies on: tasks are granted to the inbox of a poll,
// an answer that finds no responders is taken back, outcomes are fenced by the
// attempt's token, a repeat of an outcome gets the same verdict.
type fake struct {
	tb testing.TB
	nc *nats.Conn

	mu     sync.Mutex
	tasks  map[string]*task
	ready  []*task
	polls  []*poll
	grants int
	// heard are the requests by endpoint, as they came.
	heard map[string][]*nats.Msg
	// script may answer a request in the engine's place: true = it is done with.
	script func(endpoint string, call int, msg *nats.Msg) bool
	subs   []*nats.Subscription
}

type task struct {
	id        string
	task      *yardv1.NewTask
	state     yardv1.TaskState
	token     string
	lastToken string // of the attempt whose outcome was taken
	failures  int
	grants    int
	cancel    bool
	result    *yardv1.Payload
	progress  *yardv1.Payload
	failure   *yardv1.Failure
}

type poll struct {
	reply string
	req   *yardv1.PollRequest
	timer *time.Timer
}

var endpoints = []string{
	"tasks.submit", "tasks.poll", "tasks.complete", "tasks.fail", "tasks.heartbeat", "tasks.get", "tasks.cancel",
}

// newFake makes an engine that serves once serve is called.
func newFake(tb testing.TB, nc *nats.Conn) *fake {
	return &fake{tb: tb, nc: nc, tasks: map[string]*task{}, heard: map[string][]*nats.Msg{}}
}

func (f *fake) serve() *fake {
	f.tb.Helper()
	for _, endpoint := range endpoints {
		subject := topology.APIAny(endpoint)
		if endpoint == "tasks.poll" {
			subject = topology.PollOfAny
		}
		sub, err := f.nc.Subscribe(subject, func(msg *nats.Msg) { f.handle(endpoint, msg) })
		checktest.NoError(f.tb, err)
		f.subs = append(f.subs, sub)
	}
	// Taken back: answers to polls that no one waited for.
	sub, err := f.nc.Subscribe(f.returns()+".*", f.takeBack)
	checktest.NoError(f.tb, err)
	f.subs = append(f.subs, sub)
	checktest.NoError(f.tb, f.nc.FlushWithContext(soon(f.tb)))
	f.tb.Cleanup(f.stop)
	return f
}

func (f *fake) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.polls {
		p.timer.Stop()
	}
	f.polls = nil
	for _, sub := range f.subs {
		_ = sub.Unsubscribe() // the connection may be gone already
	}
}

func (f *fake) returns() string { return "returns" }

// locked calls fn while the engine does nothing.
func (f *fake) locked(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

// requests is how many requests of an endpoint came.
func (f *fake) requests(endpoint string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.heard[endpoint])
}

func (f *fake) handle(endpoint string, msg *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := len(f.heard[endpoint])
	f.heard[endpoint] = append(f.heard[endpoint], msg)
	if f.script != nil && f.script(endpoint, call, msg) {
		return
	}
	switch endpoint {
	case "tasks.submit":
		f.submit(msg)
	case "tasks.poll":
		f.poll(msg)
	case "tasks.get":
		f.get(msg)
	default:
		f.outcome(endpoint, msg)
	}
}

func (f *fake) answer(to string, m codec.Message) {
	data, err := codec.Marshal(codec.Protobuf, m)
	checktest.Check(f.tb, err)
	if err := f.nc.PublishMsg(&nats.Msg{Subject: to, Data: data}); err != nil {
		f.tb.Logf("answer: %v", err)
	}
}

// refuse answers msg with a fault.
func (f *fake) refuse(msg *nats.Msg, e *fault.Error) bool {
	code, description, body := fault.Encode(e)
	err := f.nc.PublishMsg(&nats.Msg{Subject: msg.Reply, Data: body, Header: nats.Header{
		fault.HeaderCode: {code}, fault.HeaderDescription: {description},
	}})
	if err != nil {
		f.tb.Logf("refuse: %v", err)
	}
	return true
}

func read[M any, P interface {
	*M
	codec.Message
}](f *fake, msg *nats.Msg) P {
	m := P(new(M))
	if msg.Header.Get(codec.HeaderContentType) != string(codec.Protobuf) {
		f.tb.Errorf("%s came as %q", msg.Subject, msg.Header.Get(codec.HeaderContentType))
	}
	if err := codec.UnmarshalRequest(codec.Protobuf, msg.Data, m); err != nil {
		f.tb.Errorf("%s: %v", msg.Subject, err)
	}
	return m
}

func (f *fake) submit(msg *nats.Msg) {
	req := read[yardv1.SubmitRequest](f, msg)
	resp := &yardv1.SubmitResponse{}
	for _, t := range req.Tasks {
		id := ids.NewTaskID(time.Now(), 0, rand.Uint64()).String()
		entry := &task{id: id, task: t, state: yardv1.TaskState_TASK_STATE_READY}
		f.tasks[id] = entry
		f.ready = append(f.ready, entry)
		resp.Results = append(resp.Results, &yardv1.SubmitResult{TaskId: id, Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED})
	}
	f.answer(msg.Reply, resp)
	f.match()
}

func (f *fake) poll(msg *nats.Msg) {
	p := &poll{reply: msg.Reply, req: read[yardv1.PollRequest](f, msg)}
	p.timer = time.AfterFunc(time.Duration(p.req.WaitMs)*time.Millisecond, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, waiting := range f.polls {
			if waiting == p {
				f.polls = append(f.polls[:i], f.polls[i+1:]...)
				f.answer(p.reply, &yardv1.PollResponse{})
				return
			}
		}
	})
	f.polls = append(f.polls, p)
	f.match()
}

// match answers waiting polls, the oldest first, as a matching shard would.
func (f *fake) match() {
	for len(f.polls) > 0 && len(f.ready) > 0 {
		p := f.polls[0]
		f.polls = f.polls[1:]
		p.timer.Stop()
		resp := &yardv1.PollResponse{}
		n := min(int(p.req.MaxTasks), len(f.ready))
		for _, t := range f.ready[:n] {
			resp.Tasks = append(resp.Tasks, f.grant(t))
		}
		f.ready = append([]*task(nil), f.ready[n:]...)
		f.grants++
		data, err := codec.Marshal(codec.Protobuf, resp)
		checktest.Check(f.tb, err)
		// The reply subject names the grants, so that "no responders" can take them back.
		back := fmt.Sprintf("%s.%d", f.returns(), f.grants)
		f.heard[back] = []*nats.Msg{{Data: data}}
		if err := f.nc.PublishMsg(&nats.Msg{Subject: p.reply, Reply: back, Data: data}); err != nil {
			f.tb.Logf("answer a poll: %v", err)
		}
	}
}

func (f *fake) grant(t *task) *yardv1.PolledTask {
	t.grants++
	t.state = yardv1.TaskState_TASK_STATE_RUNNING
	t.token = fmt.Sprintf("%s-%d", t.id, t.grants)
	return &yardv1.PolledTask{
		TaskId: t.id, Token: t.token, Type: t.task.Type, Tasklist: t.task.Tasklist, Payload: t.task.Payload,
		Attempt: int32(t.grants), Failures: int32(t.failures), MaxAttempts: 3, TimeoutMs: time.Minute.Milliseconds(),
		HeartbeatTimeoutMs: t.task.HeartbeatTimeoutMs, Traceparent: t.task.Traceparent, Headers: t.task.Headers,
	}
}

// takeBack makes tasks ready again whose poll had gone.
func (f *fake) takeBack(msg *nats.Msg) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var resp yardv1.PollResponse
	checktest.Check(f.tb, resp.UnmarshalVT(f.heard[msg.Subject][0].Data))
	for _, granted := range resp.Tasks {
		if t := f.tasks[granted.TaskId]; t.token == granted.Token {
			t.token, t.state = "", yardv1.TaskState_TASK_STATE_READY
			f.ready = append(f.ready, t)
		}
	}
	f.match()
}

func (f *fake) get(msg *nats.Msg) {
	req := read[yardv1.GetRequest](f, msg)
	t, ok := f.tasks[req.TaskId]
	if !ok {
		f.refuse(msg, fault.New(fault.NotFound, "no task %s", req.TaskId))
		return
	}
	f.answer(msg.Reply, &yardv1.GetResponse{Task: &yardv1.Task{
		TaskId: t.id, State: t.state, Result: t.result, Progress: t.progress, Failures: int32(t.failures),
		ErrorMessage: t.failure.GetMessage(), ErrorType: t.failure.GetErrorType(),
	}})
}

func (f *fake) outcome(endpoint string, msg *nats.Msg) {
	resp := &yardv1.OutcomeResponse{}
	verdict := func(id, token string, apply func(*task) *yardv1.Verdict) {
		t, ok := f.tasks[id]
		v := &yardv1.Verdict{Code: "OK"}
		switch {
		case !ok:
			v.Code = string(fault.NotFound)
		case token != "" && token == t.lastToken: // a repeat
		case token != t.token && endpoint != "tasks.cancel":
			v.Code = string(fault.Stale)
		default:
			v = apply(t)
		}
		v.TaskId = id
		resp.Verdicts = append(resp.Verdicts, v)
	}
	switch endpoint {
	case "tasks.complete":
		for _, c := range read[yardv1.CompleteRequest](f, msg).Tasks {
			verdict(c.TaskId, c.Token, func(t *task) *yardv1.Verdict {
				t.result = c.Result
				return t.end(yardv1.TaskState_TASK_STATE_COMPLETED)
			})
		}
	case "tasks.fail":
		for _, c := range read[yardv1.FailRequest](f, msg).Tasks {
			verdict(c.TaskId, c.Token, func(t *task) *yardv1.Verdict { return f.fail(t, c) })
		}
	case "tasks.heartbeat":
		for _, c := range read[yardv1.HeartbeatRequest](f, msg).Tasks {
			verdict(c.TaskId, c.Token, func(t *task) *yardv1.Verdict {
				if c.Progress != nil {
					t.progress = c.Progress
				}
				return &yardv1.Verdict{Code: "OK", CancelRequested: t.cancel}
			})
		}
	case "tasks.cancel":
		for _, id := range read[yardv1.CancelRequest](f, msg).TaskIds {
			verdict(id, "", func(t *task) *yardv1.Verdict {
				if t.state.Finished() {
					return &yardv1.Verdict{Code: string(fault.FailedPrecondition), Message: "finished"}
				}
				t.cancel = true
				return &yardv1.Verdict{Code: "OK", CancelRequested: true}
			})
		}
	}
	f.answer(msg.Reply, resp)
	f.match()
}

func (f *fake) fail(t *task, c *yardv1.Failure) *yardv1.Verdict {
	if c.NotStarted {
		t.end(yardv1.TaskState_TASK_STATE_READY)
		f.ready = append(f.ready, t)
		return &yardv1.Verdict{Code: "OK"}
	}
	t.failures++
	t.failure = c
	switch {
	case t.cancel:
		return t.end(yardv1.TaskState_TASK_STATE_CANCELLED)
	case c.NonRetryable || t.failures == 3:
		return t.end(yardv1.TaskState_TASK_STATE_DEAD)
	}
	t.end(yardv1.TaskState_TASK_STATE_READY)
	f.ready = append(f.ready, t)
	return &yardv1.Verdict{Code: "OK"}
}

func (t *task) end(state yardv1.TaskState) *yardv1.Verdict {
	t.state, t.lastToken, t.token = state, t.token, ""
	return &yardv1.Verdict{Code: "OK"}
}
