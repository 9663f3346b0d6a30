package system

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/child"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// Settings of Yardmaster.
const (
	yardConcurrency = 1000
	yardDomain      = "default"
	yardTasklist    = "compare"
	yardType        = "noop"
)

// yardmaster is `yard dev`, with all its defaults but sync.
type yardmaster struct{ yard string }

func (yardmaster) Name() string { return "yardmaster" }

func (y yardmaster) Missing() string { return missingFile(y.yard) }

func (y yardmaster) Version() string {
	version := strings.Fields(printed(y.yard, "version"))
	return fmt.Sprintf("Yardmaster %s of commit %s", version[len(version)-1], printed("git", "describe", "--always", "--dirty"))
}

func (yardmaster) Settings() string {
	return fmt.Sprintf("yard dev, sync always or 1s; all services in one process, tables in a redis-server if there is one; "+
		"one worker with %d handlers; bulk is SubmitMany", yardConcurrency)
}

func (y yardmaster) Open(ctx context.Context, dir string, sync Sync) (load.Queue, error) {
	c, err := child.Start(child.Config{Dir: dir, Command: []string{
		y.yard, "dev", "--data-dir", filepath.Join(dir, "yard"), "--port", "0", "--domain", yardDomain,
		"--sync", string(sync), "--output", "json", "--log-level", "error",
	}})
	if err != nil {
		return nil, err
	}
	q := &yardQueue{server: server{c}}
	return opened(q, q.open(ctx))
}

type yardQueue struct {
	server
	url    string
	client *yard.Client
}

func (q *yardQueue) open(ctx context.Context) (err error) {
	if q.url, err = readyURL(ctx, q.child); err != nil {
		return err
	}
	q.client, err = yard.Connect(q.url, yardDomain)
	return err
}

func task(payload string, at time.Time) yard.Task {
	return yard.Task{Type: yardType, Tasklist: yardTasklist, Payload: []byte(payload), RunAt: at}
}

// Submit sends a request of its own, as the other systems do; Client.Submit would gather tasks of several callers.
func (q *yardQueue) Submit(ctx context.Context, payload string, at time.Time) error {
	_, err := q.client.SubmitMany(ctx, []yard.Task{task(payload, at)})
	return err
}

func (q *yardQueue) SubmitMany(ctx context.Context, payloads []string, at time.Time) error {
	tasks := make([]yard.Task, len(payloads))
	for i, p := range payloads {
		tasks[i] = task(p, at)
	}
	_, err := q.client.SubmitMany(ctx, tasks)
	return err
}

func (q *yardQueue) Work(ctx context.Context, handle func(payload string)) (func() error, error) {
	client, err := yard.Connect(q.url, yardDomain)
	if err != nil {
		return nil, err
	}
	worker := yard.NewWorker(client, yardTasklist, yard.WithConcurrency(yardConcurrency), yard.WithLogger(slog.New(slog.DiscardHandler)))
	worker.HandleFunc(yardType, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		handle(string(a.Payload.Data))
		return yard.Payload{}, nil
	})
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(working) }()
	return func() error {
		stop()
		err := <-ended
		client.Close()
		return err
	}, nil
}

func (q *yardQueue) CPU() time.Duration { return q.child.CPU() }

func (q *yardQueue) Close() error {
	if q.client != nil {
		q.client.Close()
	}
	return q.child.Stop()
}
