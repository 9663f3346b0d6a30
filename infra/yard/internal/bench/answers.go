package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// answers runs W14: the first half of the tasks waits for a worker, and there is none; the others are due within 30 days. Then it asks what people ask,
// one question after the other: each read of the API, and each page of the console.
func (l *load) answers(ctx context.Context) (report.Result, error) {
	if l.target.stack == nil {
		return report.Result{}, errors.New("W14 leaves its tasks behind, so it runs on a system of its own: name no --url")
	}
	before, err := l.target.read(ctx)
	if err != nil {
		return report.Result{}, err
	}
	a := &answers{l}
	some, err := a.fill(ctx)
	if err != nil {
		return report.Result{}, fmt.Errorf("fill: %w", err)
	}
	r, err := l.target.since(ctx, before, l.tasks, time.Now())
	if err != nil {
		return r, err
	}
	if err := a.parked(ctx, some.far); err != nil {
		return r, err
	}
	l.say("%d tasks wait", l.tasks)
	r.Answers = &report.Answers{Waiting: l.tasks}
	if err := a.askAPI(ctx, r.Answers, readsOf(some)); err != nil {
		return r, err
	}
	return r, a.askConsole(ctx, r.Answers, some.ready)
}

// answers is what W14 does with its tasks.
type answers struct{ *load }

// asked are the tasks that are asked for: one that is ready, or will be, one that is queued on disk behind others, and one that is far from due.
type asked struct{ ready, queued, far string }

// fill submits the tasks.
func (a *answers) fill(ctx context.Context) (some asked, err error) {
	clients, err := a.target.clients([]string{domain})
	if err != nil {
		return some, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next, now := new(atomic.Int64), time.Now()
	var producing sync.WaitGroup
	for i := range bulk.producers {
		producing.Go(func() {
			for from := range a.requests(next) {
				tasks := a.target.some(from, min(bulk.request, a.tasks-from))
				for n := range tasks {
					if later := from + n - a.tasks/2; later >= 0 {
						tasks[n].RunAt = now.Add(w14Ahead + w14Window/time.Duration(a.tasks)*time.Duration(later))
					}
				}
				ids, err := clients[i%len(clients)].SubmitMany(ctx, tasks)
				a.accepted.add(ids)
				if err != nil {
					cancel(fmt.Errorf("submit: %w", err))
					return
				}
				if from == 0 {
					some.ready = ids[0]
				}
				if from <= a.tasks/4 && a.tasks/4 < from+len(ids) {
					some.queued = ids[0]
				}
				if from+len(ids) == a.tasks {
					some.far = ids[len(ids)-1]
				}
			}
		})
	}
	producing.Wait()
	return some, context.Cause(ctx)
}

// parked waits until the task that was submitted last is with the timer, and so all that are far from due.
func (a *answers) parked(ctx context.Context, far string) error {
	clients, err := a.target.clients([]string{domain})
	if err != nil {
		return err
	}
	for end := time.Now().Add(stallAfter); ; {
		task, err := clients[0].Wire().Get(ctx, far)
		switch {
		case err == nil && task.State == yardv1.TaskState_TASK_STATE_WAITING:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("the last task is %v: %w", task.GetState(), err)
		case !sleepUntil(ctx, time.Now().Add(time.Second)):
			return ctx.Err()
		}
	}
}

// readsOf are the requests of W14.
func readsOf(some asked) []apiRead {
	list := func(name string, req *yardv1.ListRequest) apiRead {
		return apiRead{"tasks.list, " + name, "tasks.list", req}
	}
	return []apiRead{
		{"tasks.get, ready", "tasks.get", &yardv1.GetRequest{TaskId: some.ready}},
		{"tasks.get, queued", "tasks.get", &yardv1.GetRequest{TaskId: some.queued}},
		{"tasks.get, far", "tasks.get", &yardv1.GetRequest{TaskId: some.far}},
		{"tasks.explain, ready", "tasks.explain", &yardv1.ExplainRequest{TaskId: some.ready}},
		{"tasks.explain, queued", "tasks.explain", &yardv1.ExplainRequest{TaskId: some.queued}},
		{"tasks.explain, far", "tasks.explain", &yardv1.ExplainRequest{TaskId: some.far}},
		list("newest", &yardv1.ListRequest{}),
		list("ready", &yardv1.ListRequest{States: []yardv1.TaskState{yardv1.TaskState_TASK_STATE_READY}}),
		list("of a type", &yardv1.ListRequest{Type: typeName(3)}),
		list("due within a day", &yardv1.ListRequest{DueWithinMs: 24 * time.Hour.Milliseconds()}),
		{"timers.count, 30 days", "timers.count", &yardv1.CountTimersRequest{WithinMs: (30 * 24 * time.Hour).Milliseconds()}},
		{"tasklists.describe", "tasklists.describe", &yardv1.DescribeTasklistRequest{Tasklist: tasklist}},
		{"tasklists.list", "tasklists.list", &yardv1.ListTasklistsRequest{}},
		{"tasklists.peek", "tasklists.peek", &yardv1.PeekTasklistRequest{Name: tasklist}},
		{"tasklists.pollers", "tasklists.pollers", &yardv1.TasklistPollersRequest{Tasklist: tasklist}},
		{"limits.top", "limits.top", &yardv1.TopLimitsRequest{}},
		{"deadletters.list", "deadletters.list", &yardv1.ListDeadLettersRequest{}},
		{"deadletters.count", "deadletters.count", &yardv1.CountDeadLettersRequest{}},
		{"keys.list", "keys.list", &yardv1.ListKeysRequest{}},
		{"workers.list", "workers.list", &yardv1.ListWorkersRequest{}},
		{"batches.list", "batches.list", &yardv1.ListBatchesRequest{}},
		{"schedules.list", "schedules.list", &yardv1.ListSchedulesRequest{}},
		{"audit.list", "audit.list", &yardv1.ListAuditRequest{}},
	}
}

// apiRead is a request that changes nothing.
type apiRead struct {
	name, verb string
	request    codec.Message
}

func (a *answers) askAPI(ctx context.Context, out *report.Answers, reads []apiRead) error {
	nc, err := a.target.connect()
	if err != nil {
		return err
	}
	for _, q := range reads {
		body, err := codec.Marshal(codec.Protobuf, q.request)
		if err != nil {
			return err
		}
		err = a.ask(out, q.name, w14Calls, func() error {
			m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{
				Subject: topology.API(domain, q.verb), Data: body, Header: nats.Header{codec.HeaderContentType: {string(codec.Protobuf)}},
			})
			if err != nil {
				return err
			}
			if e := fault.Decode(m.Header.Get(fault.HeaderCode), m.Header.Get(fault.HeaderDescription), m.Data); e != nil {
				return e
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ask measures one question.
func (a *answers) ask(out *report.Answers, name string, times int, do func() error) error {
	took := make([]time.Duration, times)
	for i := range took {
		began := time.Now()
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took[i] = time.Since(began)
	}
	one := report.Answered{Of: name, Took: report.QuantilesOf(took)}
	out.All = append(out.All, one)
	a.say("%s", one)
	return nil
}

// askConsole gets the pages of a console.
func (a *answers) askConsole(ctx context.Context, out *report.Answers, task string) (err error) {
	c, err := console.Listen(console.Config{
		Listen: "127.0.0.1:0", NATS: console.Logins{Connect: func(string) (*nats.Conn, error) { return a.target.stack.Connect("yard-console") }},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()
	of := "/domains/" + domain
	for _, path := range []string{
		"/", "/domains", "/fairness", "/cluster", of, of + "/tasklists", of + "/tasklists/" + tasklist, of + "/limits", of + "/tasks", of + "/tasks/" + task,
		of + "/timers", of + "/schedules", of + "/batches", of + "/keys", of + "/workers", of + "/dead", of + "/dead/list",
	} {
		err := a.ask(out, "page "+path, w14Pages, func() error { return get(ctx, c.URL()+path) })
		if err != nil {
			return err
		}
	}
	return nil
}

// get reads a page to its end.
func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it is read to its end
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}
