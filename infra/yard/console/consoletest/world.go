// Package consoletest has an engine with work of every kind, and a console of it, for tests.
//
// Owns: the engine, its tasks, and its worker; all of it ends with the test. Never does: assert anything about the console. On failure: the test ends.
package consoletest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/console"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// readyWithin bounds the wait for the tasks to be in their states.
const readyWithin = time.Minute

// World is an engine, and a console of it.
type World struct {
	// URL is that of a console without a login.
	URL string
	// Client is of the domain shop.
	Client *yard.Client
	// Running, Waiting, Dead and Blocked are tasks in these states; Limited waits for the slot that Running has. Dead has a payload that a page must not run.
	Running, Waiting, Dead, Blocked, Limited string

	stack *stack.Stack
	mu    sync.Mutex
	conns []*nats.Conn
}

// Start starts an engine with work, and a console.
func Start(t *testing.T) *World {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Config{Tables: stack.TablesMemory, DataDir: t.TempDir()})
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.Check(t, s.Close(context.WithoutCancel(t.Context()))) })
	nc, err := s.Connect("consoletest")
	testkit.NoError(t, err)
	t.Cleanup(nc.Close)
	w := &World{stack: s}
	w.Client, err = yard.NewClient(nc, "shop")
	testkit.NoError(t, err)
	w.settings(t)
	w.work(t)
	w.URL = w.Console(t, console.Config{})
	return w
}

// Console starts another console of the engine, and returns its URL.
func (w *World) Console(t *testing.T, cfg console.Config) string {
	t.Helper()
	cfg.Listen = cmp.Or(cfg.Listen, "127.0.0.1:0")
	if cfg.NATS.Connect == nil {
		cfg.NATS.Connect = func(string) (*nats.Conn, error) { return w.connect() }
	}
	c, err := console.Listen(cfg)
	testkit.NoError(t, err)
	inBackground(t, c.Run)
	return c.URL()
}

// connect makes a connection of a console whose calls are counted.
func (w *World) connect() (*nats.Conn, error) {
	nc, err := w.stack.Connect("console")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, nc)
	return nc, err
}

// Calls is how many requests the consoles have sent.
func (w *World) Calls() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, nc := range w.conns {
		n += int(nc.Stats().OutMsgs)
	}
	return n
}

// Paths are those of all pages, each with work on it.
func (w *World) Paths() []string {
	paths := []string{"/", "/domains", "/fairness", "/cluster", "/nowhere"}
	for _, path := range []string{
		"", "/tasklists", "/tasklists/mail", "/tasklists/idle", "/limits", "/limits/shared/smtp", "/tasks", "/tasks/" + w.Running, "/tasks/" + w.Dead, "/tasks/" + w.Limited, "/timers", "/timers?within=week",
		"/schedules", "/schedules/nightly", "/batches", "/batches/import-1", "/keys", "/workers", "/dead", "/dead/list", "/audit", "/types", "/types/email.send", "/types/sms.send", "/groups", "/groups/acme",
		"/tasks/" + w.Running + "/cancel", "/tasks/" + w.Waiting + "/run", "/tasks/" + w.Running + "/end", "/groups/acme/pause", "/tasks/" + w.Dead + "/redrive", "/tasks/" + w.Dead + "/delete", "/dead/redrive?type=card.charge", "/dead/delete",
		"/pause", "/resume", "/tasklists/mail/pause", "/tasklists/mail/purge", "/tasklists/mail/change", "/types/email.send/drain", "/limits/shared/smtp/change", "/schedules/nightly/pause",
		"/schedules/nightly/trigger", "/batches/import-1/cancel", "/keys/unblock?order_key=account%2f7",
	} {
		paths = append(paths, "/domains/shop"+path)
	}
	return paths
}

// Get gets a page.
func (w *World) Get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+path, nil)
	testkit.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	testkit.NoError(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	testkit.NoError(t, err)
	return resp.StatusCode, string(text)
}

// settings makes the domains, a tasklist, types and a limit.
func (w *World) settings(t *testing.T) {
	t.Helper()
	ctx, admin := t.Context(), w.Client.Admin()
	shop := yard.Domain{Name: "shop", Description: "Orders of the shop", Weight: 3, Quota: yard.Quota{SubmitTasksPerSecond: 5000, WaitingTasks: 100_000}}
	testkit.NoError(t, testkit.Err(admin.PutDomain(ctx, shop)))
	testkit.NoError(t, testkit.Err(admin.PutDomain(ctx, yard.Domain{Name: "bank", Description: "Payouts"})))
	testkit.Eventually(t, readyWithin, func() error {
		return testkit.Err(w.Client.PutLimit(ctx, yard.Limit{Name: "smtp", Description: "Connections to the mail server", MaxConcurrency: 1}))
	})
	mail := yard.Tasklist{Name: "mail", Description: "What customers wait for", Priority: 2, Partitions: 3}
	testkit.NoError(t, testkit.Err(w.Client.PutTasklist(ctx, mail)))
	testkit.NoError(t, testkit.Err(w.Client.PutType(ctx, yard.TaskType{Name: "email.send", Limits: []string{"smtp"}, StartToClose: time.Hour})))
	nightly := schedules.Schedule{Name: "nightly", Task: yard.Task{Type: "report.build", Tasklist: "reports"}, Cron: []string{"30 2 * * *"}, TimeZone: "Europe/Berlin", Note: "For the finance team"}
	testkit.NoError(t, testkit.Err(schedules.Of(w.Client).Put(ctx, nightly)))
}

// work submits tasks, and runs a worker until each is where it is to be.
func (w *World) work(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	submit := func(task yard.Task) string {
		id, err := w.Client.Submit(ctx, task)
		testkit.NoError(t, err)
		return id
	}
	imported, err := w.Client.NewBatch(ctx, "import-1", yard.BatchOptions{})
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(imported.Add(ctx, []yard.Task{{Type: "row.import", Tasklist: "mail"}, {Type: "row.import", Tasklist: "mail"}})))
	testkit.NoError(t, testkit.Err(imported.Close(ctx)))
	w.Dead = submit(yard.Task{Type: "card.charge", Tasklist: "mail", Payload: json.RawMessage("{\"note\":\"<script>alert(1)</script>\u202e\"}"), Headers: map[string]string{"order": "4711"}})
	w.Blocked = submit(yard.Task{Type: "card.charge", Tasklist: "mail", OrderKey: "account/7", BlocksKey: true})
	submit(yard.Task{Type: "row.import", Tasklist: "mail", OrderKey: "account/7"})
	w.Running = submit(yard.Task{Type: "email.send", Tasklist: "mail", Group: "acme", Payload: map[string]string{"to": "ann@example.com"}})
	w.runWorker(t)
	w.until(t, w.Running, yardv1.TaskState_TASK_STATE_RUNNING)
	for priority := range 2 {
		w.Limited = submit(yard.Task{Type: "email.send", Tasklist: "mail", Priority: priority + 2, Group: "acme"})
	}
	submit(yard.Task{Type: "sms.send", Tasklist: "idle"})
	w.Waiting = submit(yard.Task{Type: "report.build", Tasklist: "reports", Delay: 2 * time.Hour})
	submit(yard.Task{Type: "report.build", Tasklist: "reports", Delay: 5 * time.Hour})
	testkit.Eventually(t, readyWithin, func() error { return testkit.Err(w.Client.GetDeadLetter(ctx, w.Dead)) })
	testkit.Eventually(t, readyWithin, func() error {
		info, err := imported.Info(ctx)
		if err == nil && !info.State.Over() {
			err = fmt.Errorf("the batch is %s", info.State)
		}
		return err
	})
	testkit.Eventually(t, readyWithin, func() error {
		task, err := w.Client.Get(ctx, w.Blocked)
		if err == nil && !task.Blocked {
			err = fmt.Errorf("the task is %s", task.State)
		}
		return err
	})
}

// runWorker runs a worker until the test ends: one type runs until then, one fails for good, one completes.
func (w *World) runWorker(t *testing.T) {
	t.Helper()
	worker := yard.NewWorker(w.Client, "mail", yard.WithConcurrency(4), yard.WithIdentity("mailer-1"), yard.WithVersion("1.4.2"), yard.WithSignsOfLife(time.Second), yard.WithDrainTimeout(time.Millisecond))
	yard.Handle(worker, "email.send", func(ctx context.Context, _ map[string]string) (struct{}, error) {
		<-ctx.Done()
		return struct{}{}, ctx.Err()
	})
	yard.Handle(worker, "card.charge", func(context.Context, map[string]string) (struct{}, error) {
		return struct{}{}, yard.NonRetryable(errors.New("the card was declined"))
	})
	yard.Handle(worker, "row.import", func(context.Context, map[string]string) (int, error) { return 1, nil })
	inBackground(t, func(ctx context.Context) error {
		_ = worker.Run(ctx) // it reports the attempt that the end of the test interrupts
		return nil
	})
}

// until waits for the state of a task.
func (w *World) until(t *testing.T, id string, state yardv1.TaskState) {
	t.Helper()
	testkit.Eventually(t, readyWithin, func() error {
		task, err := w.Client.Wire().Get(t.Context(), id)
		if err == nil && task.State != state {
			err = fmt.Errorf("task %s is %s", id, task.State.Name())
		}
		return err
	})
}

// inBackground runs a part until the test ends.
func inBackground(t *testing.T, run func(context.Context) error) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		testkit.Check(t, <-ended)
	})
}
