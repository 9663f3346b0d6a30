package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/child"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// Settings of asynq. Its defaults are 1 s and 5 s.
const (
	asynqInstances    = 4
	asynqConcurrency  = 50 // of each
	asynqTaskCheck    = 5 * time.Millisecond
	asynqDelayedCheck = 100 * time.Millisecond
	asynqType         = "noop"
	redisServer       = "redis-server"
)

type asynqueue struct{}

func (asynqueue) Name() string    { return "asynq" }
func (asynqueue) Missing() string { return inPath(redisServer) }

func (asynqueue) Version() string {
	redis := printed(redisServer, "--version") // Redis server v=7.0.15 sha=…
	_, redis, _ = strings.Cut(redis, "v=")
	redis, _, _ = strings.Cut(redis, " ")
	return "asynq " + module("github.com/hibiken/asynq") + ", Redis " + redis
}

func (asynqueue) appendfsync(sync Sync) string {
	if sync == Always {
		return "always"
	}
	return "everysec"
}

func (asynqueue) Settings() string {
	return fmt.Sprintf("Redis with AOF, appendfsync always or everysec; %d servers with %d handlers; TaskCheckInterval %v and "+
		"DelayedTaskCheckInterval %v instead of 1s and 5s; no request of several tasks exists, so %d requests are under way",
		asynqInstances, asynqConcurrency, asynqTaskCheck, asynqDelayedCheck, outstanding)
}

func (a asynqueue) Open(ctx context.Context, dir string, sync Sync) (load.Queue, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	c, err := child.Start(child.Config{Dir: dir, Command: []string{
		redisServer, "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", dir,
		"--appendonly", "yes", "--appendfsync", a.appendfsync(sync), "--save", "",
	}})
	if err != nil {
		return nil, err
	}
	q := &asynqQueue{
		server: server{c}, addr: addr,
		client: asynq.NewClient(asynq.RedisClientOpt{Addr: addr, PoolSize: outstanding}),
	}
	return opened(q, c.Await(ctx, func() error {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}))
}

type asynqQueue struct {
	server
	addr   string
	client *asynq.Client
}

func (q *asynqQueue) Submit(ctx context.Context, payload string, at time.Time) error {
	var opts []asynq.Option
	if !at.IsZero() {
		opts = append(opts, asynq.ProcessAt(at))
	}
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask(asynqType, []byte(payload)), opts...)
	return err
}

func (q *asynqQueue) SubmitMany(ctx context.Context, payloads []string, at time.Time) error {
	return each(ctx, payloads, outstanding/8, func(ctx context.Context, p string) error { return q.Submit(ctx, p, at) })
}

func (q *asynqQueue) Work(_ context.Context, handle func(payload string)) (func() error, error) {
	var servers []*asynq.Server
	stop := func() error {
		for _, s := range servers {
			s.Shutdown()
		}
		return nil
	}
	for range asynqInstances {
		s := asynq.NewServer(asynq.RedisClientOpt{Addr: q.addr, PoolSize: asynqConcurrency + 8}, asynq.Config{
			Concurrency: asynqConcurrency, LogLevel: asynq.FatalLevel,
			TaskCheckInterval: asynqTaskCheck, DelayedTaskCheckInterval: asynqDelayedCheck,
		})
		err := s.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
			handle(string(t.Payload()))
			return nil
		}))
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		servers = append(servers, s)
	}
	return stop, nil
}

func (q *asynqQueue) CPU() time.Duration { return q.child.CPU() }

func (q *asynqQueue) Close() error { return errors.Join(q.client.Close(), q.child.Stop()) }
