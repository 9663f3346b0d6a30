package demo

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/shared/natsrpc"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// engine is the smallest thing that speaks the public API over NATS: everything
// in memory, behind one mutex. It exists to break promises, and so to show that
// the demo notices: a dishonest one knows nothing of the first task it accepted,
// runs one task again that was completed, tells of another that it is dead, and
// has no limits.
type engine struct {
	domain string
	honest bool

	mu     sync.Mutex
	limits map[string]int32
	tasks  map[string]*job
	order  []*job
	// repeated and lied: once in a domain is enough.
	repeated, lied bool
}

// job is a task; DueAtMs is when it may run (again).
type job struct{ yardv1.Task }

// openEngine serves all the tenants' domains until the test ends.
func openEngine(t *testing.T, nc *nats.Conn, honest bool) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	must := func(_ *nats.Subscription, err error) {
		testkit.NoError(t, err)
	}
	must(natsrpc.Serve(nc, topology.Admin("domains.put"), nil, log, func(_ context.Context, r *yardv1.PutDomainRequest) (natsrpc.Message, error) {
		return &yardv1.PutDomainResponse{Domain: r.Domain}, nil
	}))
	for _, domain := range []string{"shop", "media", domainPayouts} {
		e := &engine{domain: domain, honest: honest, limits: map[string]int32{}, tasks: map[string]*job{}}
		at := func(verb string) string { return topology.API(domain, verb) }
		must(natsrpc.Serve(nc, at("types.put"), nil, log, e.putType))
		must(natsrpc.Serve(nc, at("tasks.submit"), nil, log, e.submit))
		must(natsrpc.Serve(nc, topology.PollOf(domain, "*"), nil, log, e.poll))
		must(natsrpc.Serve(nc, at("tasks.complete"), nil, log, e.complete))
		must(natsrpc.Serve(nc, at("tasks.fail"), nil, log, e.fail))
		must(natsrpc.Serve(nc, at("tasks.heartbeat"), nil, log, e.heartbeat))
		must(natsrpc.Serve(nc, at("tasks.cancel"), nil, log, e.cancel))
		must(natsrpc.Serve(nc, at("tasks.get"), nil, log, e.get))
		must(natsrpc.Serve(nc, at("tasklists.describe"), nil, log, e.describe))
	}
}

func (e *engine) putType(_ context.Context, r *yardv1.PutTypeRequest) (natsrpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Type.MaxConcurrency > 0 && e.honest {
		e.limits[r.Type.Name] = r.Type.MaxConcurrency
	}
	return &yardv1.PutTypeResponse{Type: r.Type}, nil
}

func (e *engine) submit(_ context.Context, r *yardv1.SubmitRequest) (natsrpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	resp := &yardv1.SubmitResponse{}
	now := time.Now().UnixMilli()
	for _, n := range r.Tasks {
		j := &job{Task: yardv1.Task{
			TaskId: fmt.Sprintf("%s%020d", e.domain[:1], len(e.order)), Tasklist: n.Tasklist, Type: n.Type, Payload: n.Payload,
			Priority: cmp.Or(n.Priority, 3), CreatedAtMs: now, DueAtMs: now + n.DelayMs, State: yardv1.TaskState_TASK_STATE_READY,
		}}
		e.order, e.tasks[j.TaskId] = append(e.order, j), j
		resp.Results = append(resp.Results, &yardv1.SubmitResult{TaskId: j.TaskId, Outcome: yardv1.SubmitOutcome_SUBMIT_OUTCOME_CREATED})
	}
	return resp, nil
}

func (e *engine) poll(_ context.Context, r *yardv1.PollRequest) (natsrpc.Message, error) {
	until := time.Now().Add(time.Duration(r.WaitMs) * time.Millisecond)
	for {
		if resp := e.grant(r); len(resp.Tasks) > 0 || time.Now().After(until) {
			return resp, nil
		}
		time.Sleep(10 * time.Millisecond) // how often a poll looks, not a wait for something
	}
}

func (e *engine) grant(r *yardv1.PollRequest) *yardv1.PollResponse {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now().UnixMilli()
	due := slices.DeleteFunc(slices.Clone(e.order), func(j *job) bool {
		return j.State != yardv1.TaskState_TASK_STATE_READY || j.DueAtMs > now
	})
	slices.SortStableFunc(due, func(a, b *job) int { return cmp.Compare(a.Priority, b.Priority) })
	resp := &yardv1.PollResponse{}
	for _, j := range due {
		if limit := e.limits[j.Type]; len(resp.Tasks) == int(r.MaxTasks) || limit > 0 && e.running(j.Type) >= limit {
			continue
		}
		j.State = yardv1.TaskState_TASK_STATE_RUNNING
		j.Grants++
		resp.Tasks = append(resp.Tasks, &yardv1.PolledTask{
			TaskId: j.TaskId, Token: fmt.Sprint(j.Grants), Type: j.Type, Tasklist: j.Tasklist, Payload: j.Payload,
			Priority: j.Priority, Attempt: j.Grants, Failures: j.Failures, MaxAttempts: 100, CreatedAtMs: j.CreatedAtMs,
			TimeoutMs: time.Minute.Milliseconds(),
		})
	}
	return resp
}

func (e *engine) running(taskType string) int32 {
	var n int32
	for _, j := range e.order {
		if j.State == yardv1.TaskState_TASK_STATE_RUNNING && (taskType == "" || j.Type == taskType) {
			n++
		}
	}
	return n
}

// repeats tells whether an outcome has been taken before: clients repeat one whose answer was slow.
func (j *job) repeats(token string) bool {
	return j.State != yardv1.TaskState_TASK_STATE_RUNNING || token != fmt.Sprint(j.Grants)
}

// finish ends a task, honestly or not; it is called under the lock.
func (e *engine) finish(j *job, state yardv1.TaskState, kind yardv1.TaskEventKind) {
	if !e.honest && state == yardv1.TaskState_TASK_STATE_COMPLETED && j != e.order[0] {
		switch {
		case !e.repeated:
			e.repeated, j.State = true, yardv1.TaskState_TASK_STATE_READY
			return
		case !e.lied:
			e.lied, state = true, yardv1.TaskState_TASK_STATE_DEAD
		}
	}
	j.State = state
	j.Events = append(j.Events, &yardv1.TaskEvent{Kind: kind})
}

func (e *engine) complete(_ context.Context, r *yardv1.CompleteRequest) (natsrpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	resp := &yardv1.OutcomeResponse{}
	for _, c := range r.Tasks {
		if j := e.tasks[c.TaskId]; !j.repeats(c.Token) {
			e.finish(j, yardv1.TaskState_TASK_STATE_COMPLETED, yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED)
		}
		resp.Verdicts = append(resp.Verdicts, &yardv1.Verdict{TaskId: c.TaskId, Code: verdictOK})
	}
	return resp, nil
}

func (e *engine) fail(_ context.Context, r *yardv1.FailRequest) (natsrpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	resp := &yardv1.OutcomeResponse{}
	for _, f := range r.Tasks {
		if j := e.tasks[f.TaskId]; !j.repeats(f.Token) {
			e.failed(j, f.NonRetryable)
		}
		resp.Verdicts = append(resp.Verdicts, &yardv1.Verdict{TaskId: f.TaskId, Code: verdictOK})
	}
	return resp, nil
}

func (e *engine) failed(j *job, final bool) {
	j.Failures++
	if final {
		e.finish(j, yardv1.TaskState_TASK_STATE_DEAD, yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD)
		return
	}
	j.State, j.DueAtMs = yardv1.TaskState_TASK_STATE_READY, time.Now().UnixMilli()+20
}

func (e *engine) heartbeat(_ context.Context, r *yardv1.HeartbeatRequest) (natsrpc.Message, error) {
	resp := &yardv1.OutcomeResponse{}
	for _, b := range r.Tasks {
		resp.Verdicts = append(resp.Verdicts, &yardv1.Verdict{TaskId: b.TaskId, Code: verdictOK})
	}
	return resp, nil
}

func (e *engine) cancel(_ context.Context, r *yardv1.CancelRequest) (natsrpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	resp := &yardv1.OutcomeResponse{}
	for _, id := range r.TaskIds {
		v := &yardv1.Verdict{TaskId: id, Code: string(fault.FailedPrecondition)}
		if j := e.tasks[id]; j.State == yardv1.TaskState_TASK_STATE_READY {
			v.Code = verdictOK
			e.finish(j, yardv1.TaskState_TASK_STATE_CANCELLED, yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED)
		}
		resp.Verdicts = append(resp.Verdicts, v)
	}
	return resp, nil
}

func (e *engine) get(_ context.Context, r *yardv1.GetRequest) (natsrpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.tasks[r.TaskId]
	if j == nil || !e.honest && j == e.order[0] {
		return nil, fault.New(fault.NotFound, "no task %s", r.TaskId)
	}
	return &yardv1.GetResponse{Task: j.Task.CloneVT()}, nil
}

func (e *engine) describe(_ context.Context, r *yardv1.DescribeTasklistRequest) (natsrpc.Message, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	resp := &yardv1.DescribeTasklistResponse{Tasklist: r.Tasklist, Running: int64(e.running(""))}
	for _, j := range e.order {
		if j.State == yardv1.TaskState_TASK_STATE_READY {
			resp.Ready++
		}
	}
	for taskType, limit := range e.limits {
		resp.Slots = append(resp.Slots, &yardv1.SlotUse{Type: taskType, InUse: e.running(taskType), Limit: limit})
	}
	return resp, nil
}
