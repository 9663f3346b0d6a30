package system

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// Settings of River. Its default cooldown is 100 ms.
const (
	riverConcurrency = 5000
	riverCooldown    = 5 * time.Millisecond
	riverProducers   = 64 // connections; PostgreSQL allows 100 in all
	riverWorkers     = 20 // connections
)

type riverqueue struct{}

func (riverqueue) Name() string    { return "river" }
func (riverqueue) Missing() string { return missingPostgres() }

func (riverqueue) Version() string {
	return "River " + module("github.com/riverqueue/river") + ", " + postgresVersion()
}

func (riverqueue) synchronousCommit(sync Sync) string {
	if sync == Always {
		return "on"
	}
	return "off"
}

func (riverqueue) Settings() string {
	return fmt.Sprintf("PostgreSQL with the defaults, synchronous_commit on or off; one client with %d handlers; FetchCooldown %v "+
		"instead of 100ms; bulk is InsertManyFast", riverConcurrency, riverCooldown)
}

var quiet = slog.New(slog.DiscardHandler)

func (r riverqueue) Open(ctx context.Context, dir string, sync Sync) (load.Queue, error) {
	c, addr, err := startPostgres(ctx, dir, r.synchronousCommit(sync))
	if err != nil {
		return nil, err
	}
	q := &riverQueue{server: server{c}, addr: addr}
	return opened(q, q.open(ctx))
}

type riverQueue struct {
	server
	addr   string
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

func (q *riverQueue) open(ctx context.Context) (err error) {
	if q.pool, err = q.connect(ctx, riverProducers); err != nil {
		return err
	}
	if err := q.child.Await(ctx, func() error { return q.pool.Ping(ctx) }); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(q.pool), &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	q.client, err = river.NewClient(riverpgxv5.New(q.pool), &river.Config{Logger: quiet, FetchCooldown: riverCooldown}) // it spaces notifications, too
	return err
}

func (q *riverQueue) connect(ctx context.Context, connections int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(q.addr)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = connections
	return pgxpool.NewWithConfig(ctx, cfg)
}

type riverArgs struct {
	Payload string `json:"payload"`
}

// Kind is the name of the task type.
func (riverArgs) Kind() string { return "noop" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	handle func(payload string)
}

// Work is the handler.
func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	w.handle(job.Args.Payload)
	return nil
}

func (q *riverQueue) Submit(ctx context.Context, payload string, at time.Time) error {
	_, err := q.client.Insert(ctx, riverArgs{payload}, &river.InsertOpts{ScheduledAt: at})
	return err
}

func (q *riverQueue) SubmitMany(ctx context.Context, payloads []string, at time.Time) error {
	all := make([]river.InsertManyParams, len(payloads))
	for i, p := range payloads {
		all[i] = river.InsertManyParams{Args: riverArgs{p}, InsertOpts: &river.InsertOpts{ScheduledAt: at}}
	}
	_, err := q.client.InsertManyFast(ctx, all)
	return err
}

func (q *riverQueue) Work(ctx context.Context, handle func(payload string)) (func() error, error) {
	pool, err := q.connect(ctx, riverWorkers)
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{handle: handle})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: quiet, Workers: workers, FetchCooldown: riverCooldown,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: riverConcurrency}},
	})
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return func() error {
		defer pool.Close()
		return client.Stop(ctx)
	}, nil
}

func (q *riverQueue) CPU() time.Duration { return q.child.CPU() }

func (q *riverQueue) Close() error {
	if q.pool != nil {
		q.pool.Close()
	}
	return q.child.Stop()
}
