package scenario_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/provision"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// list is the tasklist of scenarios that need one.
const list = "work"

// world is what a scenario has: a domain of its own, and a program's two ways to
// speak for it.
type world struct {
	t      *testing.T
	stack  *stack.Stack
	nc     *nats.Conn // JSON by hand
	client *yard.Client
	// operator and admin manage domains.
	operator *nats.Conn
	admin    *yard.Admin
	domain   string
}

// enter makes a domain on s and connects to it.
func enter(t *testing.T, s *stack.Stack) *world {
	t.Helper()
	w := join(t, s, shared.domain(t, s))
	testkit.NoError(t, testkit.Err(w.admin.PutDomain(w.soon(), yard.Domain{Name: w.domain, Description: t.Name()})))
	w.eventually(func() error { // a slow frontend learns of it a moment later
		_, err := w.raw("types.list", "{}")
		return err
	})
	return w
}

// join connects to s for a domain that need not exist.
func join(t *testing.T, s *stack.Stack, domain string) *world {
	t.Helper()
	// An inbox for each request, so that tasks of a poll that was given up find no one, and come back.
	nc := connect(t, s, sealed.Admin(domain), nats.UseOldRequestStyle())
	client, err := yard.NewClient(nc, domain)
	testkit.NoError(t, err)
	operator := connect(t, s, sealed.Operator())
	admin, err := yard.NewAdmin(operator)
	testkit.NoError(t, err)
	return &world{t: t, stack: s, nc: nc, client: client, operator: operator, admin: admin, domain: domain}
}

// restarted is the same domain on a stack that is started again with what the one before has stored.
func (w *world) restarted(cfg stack.Config) *world {
	w.t.Helper()
	testkit.NoError(w.t, closeStack(w.stack))
	return join(w.t, own(w.t, cfg), w.domain)
}

// connect connects to s as one of its users.
func connect(t *testing.T, s *stack.Stack, u permissions.User, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := sealed.Connect(s, u, append(opts, nats.Name(t.Name()))...)
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// inside is a connection to what no user may see.
func (w *world) inside() jetstream.JetStream {
	w.t.Helper()
	nc, err := w.stack.Connect(w.t.Name())
	testkit.NoError(w.t, err)
	w.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	testkit.NoError(w.t, err)
	return js
}

// tokens read and print tokens as the engine does.
func (w *world) tokens() *ids.Tokens {
	w.t.Helper()
	js := w.inside()
	config, err := js.KeyValue(w.soon(), topology.ConfigBucket)
	testkit.NoError(w.t, err)
	secret, err := provision.TokenSecret(w.soon(), config)
	testkit.NoError(w.t, err)
	return ids.NewTokens(secret)
}

func taskID(t *testing.T, s string) ids.TaskID {
	t.Helper()
	id, err := ids.ParseTaskID(s)
	testkit.NoError(t, err)
	return id
}

// soon is a context that ends where a healthy run has long been done.
func (w *world) soon() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	w.t.Cleanup(cancel)
	return ctx
}

// eventually waits until a condition holds.
func (w *world) eventually(cond func() error) {
	w.t.Helper()
	testkit.Eventually(w.t, within, cond)
}

// putType makes a task type.
func (w *world) putType(t yard.TaskType) {
	w.t.Helper()
	testkit.NoError(w.t, testkit.Err(w.client.PutType(w.soon(), t)))
}

// raw sends a JSON body and returns the answer's. As clients do, it sends it again where the
// answer is that it did not happen: on a slow machine owners lose what they serve for moments.
func (w *world) raw(endpoint, body string) (string, error) {
	return w.request(w.soon(), endpoint, body)
}

// request is raw until ctx ends.
func (w *world) request(ctx context.Context, endpoint, body string) (string, error) {
	for {
		answer, err := w.nc.RequestWithContext(ctx, topology.API(w.domain, endpoint), []byte(body))
		if err != nil {
			return "", fmt.Errorf("%s: %w", endpoint, err)
		}
		e := fault.Decode(answer.Header.Get(fault.HeaderCode), answer.Header.Get(fault.HeaderDescription), answer.Data)
		switch {
		case e == nil:
			return string(answer.Data), nil
		case e.Code != fault.Unavailable:
			return "", e
		}
		select {
		case <-time.After(e.RetryAfter):
		case <-ctx.Done():
			return "", e
		}
	}
}

// call sends a request as JSON.
func call[Resp any, P interface {
	*Resp
	codec.Message
}](w *world, endpoint string, req codec.Message) (P, error) {
	body, err := codec.Marshal(codec.JSON, req)
	if err != nil {
		return nil, err
	}
	answer, err := w.raw(endpoint, string(body))
	if err != nil {
		return nil, err
	}
	resp := P(new(Resp))
	return resp, codec.Unmarshal(codec.JSON, []byte(answer), resp)
}

// must is call where nothing may go wrong.
func must[Resp any, P interface {
	*Resp
	codec.Message
}](w *world, endpoint string, req codec.Message) P {
	w.t.Helper()
	resp, err := call[Resp, P](w, endpoint, req)
	if err != nil {
		w.t.Fatalf("%s: %v", endpoint, err)
	}
	return resp
}

// handIn submits tasks, again where no one knows whether they are stored.
func (w *world) handIn(req *yardv1.SubmitRequest) (resp *yardv1.SubmitResponse, err error) {
	req.RequestId, req.Tries = ids.NewRequestID(time.Now()).String(), 1
	for end := time.Now().Add(within); ; req.Tries++ {
		resp, err = call[yardv1.SubmitResponse](w, "tasks.submit", req)
		if fault.CodeOf(err) != fault.Unknown || time.Now().After(end) {
			return resp, err
		}
	}
}

// submit hands in tasks in one request, and returns their ids.
func (w *world) submit(tasks ...*yardv1.NewTask) []string {
	w.t.Helper()
	resp, err := w.handIn(&yardv1.SubmitRequest{Tasklist: list, Tasks: tasks})
	testkit.NoError(w.t, err)
	if len(resp.TaskIDs()) != len(tasks) {
		w.t.Fatalf("%d ids for %d tasks", len(resp.TaskIDs()), len(tasks))
	}
	return resp.TaskIDs()
}

// submitOne hands in one task.
func (w *world) submitOne(task *yardv1.NewTask) string {
	w.t.Helper()
	return w.submit(task)[0]
}

// pollGrace is how long after its wait a poll is given up.
const pollGrace = 10 * time.Second

// poll asks once. As the SDK does, it gives a poll up that is not answered in its time: on a slow machine
// its owner may be replaced after the frontend has forgotten it.
func (w *world) poll(req *yardv1.PollRequest) ([]*yardv1.PolledTask, error) {
	body, err := codec.Marshal(codec.JSON, req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(w.soon(), time.Duration(req.WaitMs)*time.Millisecond+pollGrace)
	defer cancel()
	answer, err := w.request(ctx, "tasks.poll", string(body))
	if ctx.Err() != nil {
		return nil, fault.New(fault.Unavailable, "the poll was not answered: %v", err)
	} else if err != nil {
		return nil, err
	}
	var resp yardv1.PollResponse
	err = codec.Unmarshal(codec.JSON, []byte(answer), &resp)
	return resp.Tasks, err
}

// someOf polls a tasklist until tasks come, n at most.
func (w *world) someOf(tasklist string, n int, types ...string) (tasks []*yardv1.PolledTask) {
	w.t.Helper()
	w.eventually(func() (err error) {
		tasks, err = w.poll(&yardv1.PollRequest{Tasklist: tasklist, MaxTasks: int32(n), WaitMs: 20_000, Types: types, Worker: "scenario"})
		if err == nil && len(tasks) == 0 {
			err = errNothing
		}
		return err
	})
	return tasks
}

// some polls until tasks come, n at most.
func (w *world) some(n int, types ...string) []*yardv1.PolledTask {
	w.t.Helper()
	return w.someOf(list, n, types...)
}

// take polls until it has n tasks.
func (w *world) take(n int, types ...string) []*yardv1.PolledTask {
	w.t.Helper()
	var all []*yardv1.PolledTask
	for len(all) < n {
		all = append(all, w.some(n-len(all), types...)...)
	}
	return all
}

// takeOne polls until it has a task.
func (w *world) takeOne(types ...string) *yardv1.PolledTask {
	w.t.Helper()
	return w.take(1, types...)[0]
}

// nothing polls without a wait, and fails where a task comes.
func (w *world) nothing(tasklist string) {
	w.t.Helper()
	w.eventually(func() error {
		tasks, err := w.poll(&yardv1.PollRequest{Tasklist: tasklist, MaxTasks: 10})
		if len(tasks) > 0 {
			w.t.Fatalf("a poll brought %v", tasks)
		}
		return err
	})
}

// grant is the number of an attempt among all that the task was granted.
func (w *world) grant(p *yardv1.PolledTask) int32 {
	w.t.Helper()
	token, err := w.tokens().Read(taskID(w.t, p.TaskId), p.Token)
	testkit.NoError(w.t, err)
	return int32(token.Version)
}

// codes are the verdicts' codes, in order.
func codes(resp *yardv1.OutcomeResponse) string {
	var all []string
	for _, v := range resp.Verdicts {
		all = append(all, v.Code)
	}
	return strings.Join(all, " ")
}

// decide sends outcomes until each has a verdict: which no one knows they are to be sent again.
func (w *world) decide(endpoint string, req codec.Message) (resp *yardv1.OutcomeResponse, err error) {
	for end := time.Now().Add(within); ; {
		resp, err = call[yardv1.OutcomeResponse](w, endpoint, req)
		unknown := slices.ContainsFunc(resp.GetVerdicts(), func(v *yardv1.Verdict) bool { return v.Code == string(fault.Unknown) })
		if err != nil || !unknown || time.Now().After(end) {
			return resp, err
		}
	}
}

// outcome is decide where nothing may go wrong.
func (w *world) outcome(endpoint string, req codec.Message) *yardv1.OutcomeResponse {
	w.t.Helper()
	resp, err := w.decide(endpoint, req)
	if err != nil {
		w.t.Fatalf("%s: %v", endpoint, err)
	}
	return resp
}

// complete reports attempts as done and returns the verdicts' codes.
func (w *world) complete(tasks ...*yardv1.PolledTask) string {
	w.t.Helper()
	req := &yardv1.CompleteRequest{}
	for _, p := range tasks {
		req.Tasks = append(req.Tasks, &yardv1.Completion{TaskId: p.TaskId, Token: p.Token, Result: jsonPayload(`"done"`)})
	}
	return codes(w.outcome("tasks.complete", req))
}

// fail reports a failure of p, with what f says besides, and returns the verdict's code.
func (w *world) fail(p *yardv1.PolledTask, f *yardv1.Failure) string {
	w.t.Helper()
	f.TaskId, f.Token = p.TaskId, p.Token
	return codes(w.outcome("tasks.fail", &yardv1.FailRequest{Tasks: []*yardv1.Failure{f}}))
}

// beat is a sign of life of p.
func (w *world) beat(p *yardv1.PolledTask) *yardv1.Verdict {
	w.t.Helper()
	return w.outcome("tasks.heartbeat", &yardv1.HeartbeatRequest{
		Tasks: []*yardv1.Beat{{TaskId: p.TaskId, Token: p.Token}},
	}).Verdicts[0]
}

// cancel withdraws a task.
func (w *world) cancel(id string) *yardv1.Verdict {
	w.t.Helper()
	return w.outcome("tasks.cancel", &yardv1.CancelRequest{
		TaskIds: []string{id}, Reason: "no longer wanted",
	}).Verdicts[0]
}

// get is all that is known of a task.
func (w *world) get(id string) *yardv1.Task {
	w.t.Helper()
	return must[yardv1.GetResponse](w, "tasks.get", &yardv1.GetRequest{TaskId: id}).Task
}

// ended waits for the end of a task.
func (w *world) ended(id string) *yardv1.Task {
	w.t.Helper()
	var task *yardv1.Task
	w.eventually(func() error {
		task = must[yardv1.GetResponse](w, "tasks.get", &yardv1.GetRequest{TaskId: id, WaitMs: 20_000}).Task
		if !task.State.Finished() {
			return fmt.Errorf("%s is %s after %s", id, stateOf(task), eventsOf(task))
		}
		return nil
	})
	return task
}

// reach waits until a task is in a state.
func (w *world) reach(id, state string) *yardv1.Task {
	w.t.Helper()
	var task *yardv1.Task
	w.eventually(func() error {
		if task = w.get(id); stateOf(task) != state {
			return fmt.Errorf("%s is %s after %s, want %s", id, stateOf(task), eventsOf(task), state)
		}
		return nil
	})
	return task
}

// many are n tasks alike.
func many(n int, task *yardv1.NewTask) []*yardv1.NewTask {
	return slices.Repeat([]*yardv1.NewTask{task}, n)
}

// described waits until a tasklist is described as wanted.
func (w *world) described(tasklist string, wanted func(yard.TasklistInfo) bool) {
	w.t.Helper()
	w.eventually(func() error {
		d, err := w.client.DescribeTasklist(w.soon(), tasklist)
		if err == nil && !wanted(d) {
			err = fmt.Errorf("it is described as %+v", d)
		}
		return err
	})
}

// startsNothing waits until no task like the probe starts: a shard may hear of what holds it up a second later.
func (w *world) startsNothing(probe *yardv1.NewTask) {
	w.t.Helper()
	w.eventually(func() error {
		w.submitOne(probe)
		tasks, err := w.client.Wire().Poll(w.soon(), &yardv1.PollRequest{Tasklist: list, MaxTasks: 1, WaitMs: 50, Types: []string{probe.Type}})
		if len(tasks) > 0 {
			w.complete(tasks...)
			return errors.New("a task still starts")
		}
		return err
	})
}

func jsonPayload(text string) *yardv1.Payload { return &yardv1.Payload{Data: []byte(text)} }

// work runs a worker of the SDK until the test ends, or the returned func is called.
func (w *world) work(tasklist string, register func(*yard.Worker), opts ...yard.WorkerOption) (stop func()) {
	w.t.Helper()
	worker := yard.NewWorker(w.client, tasklist, append([]yard.WorkerOption{yard.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))}, opts...)...)
	register(worker)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			testkit.Check(w.t, err)
		case <-time.After(within):
			w.t.Error("the worker did not stop")
		}
	}
	w.t.Cleanup(stop)
	return stop
}

var errNothing = errors.New("nothing is there yet")
