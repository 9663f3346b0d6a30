package stack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const within = 90 * time.Second

// start starts a stack that is closed when the test ends, unless it was before.
func start(t *testing.T, cfg stack.Config) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, cfg)
	testkit.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *stack.Stack) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	testkit.Check(t, s.Close(ctx))
}

// client makes a client on a socket, as another process would.
func client(t *testing.T, s *stack.Stack, domain string) *yard.Client {
	t.Helper()
	c, err := yard.Connect(s.URL, domain)
	testkit.NoError(t, err)
	t.Cleanup(c.Close)
	testkit.NoError(t, testkit.Err(c.Admin().PutDomain(t.Context(), yard.Domain{Name: domain})))
	return c
}

// runWorker runs a worker of the tasklist until the test ends.
func runWorker(t *testing.T, c *yard.Client, tasklist string) {
	t.Helper()
	w := yard.NewWorker(c, tasklist, yard.WithLogger(slog.New(slog.DiscardHandler)))
	yard.Handle(w, "greet", func(_ context.Context, name string) (string, error) { return "hello " + name, nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-done)
	})
}

func greet(t *testing.T, c *yard.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	got, err := yard.Run[string](ctx, c, yard.Task{Type: "greet", Tasklist: "mail", Payload: name})
	if err != nil || got != "hello "+name {
		t.Errorf("%q %v", got, err)
	}
}

func TestAcceptedTasksSurviveAStop(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for a restart")
	dir := t.TempDir()
	cfg := stack.Config{DataDir: dir, Tables: stack.TablesMemory, Partitioning: topology.Partitioning{History: 2, Matching: 2}}
	first := start(t, cfg)
	c := client(t, first, "shop")
	var tasks []yard.Task
	for i := range 250 {
		tasks = append(tasks, yard.Task{Type: "greet", Tasklist: "mail", Payload: fmt.Sprint(i)})
	}
	delayed := yard.Task{Type: "greet", Tasklist: "mail", Payload: "later", Delay: time.Second}
	ids, err := c.SubmitMany(t.Context(), append(tasks, delayed))
	testkit.NoError(t, err)
	c.Close()
	stop(t, first)

	cfg.Partitioning = topology.Partitioning{} // as it was created
	second := start(t, cfg)
	testkit.Equal(t, "partitioning", second.Partitioning, (topology.Partitioning{History: 2, Matching: 2}))
	c = client(t, second, "shop")
	runWorker(t, c, "mail")
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for i, id := range ids {
		result, err := c.Wait(ctx, id)
		if err != nil {
			t.Fatalf("task %d: %v", i, err)
		}
		// On a busy machine a grant may reach no one, and come back without cost.
		if result.Task.Failures != 0 || result.Task.State != yard.StateCompleted {
			t.Errorf("task %d: %v after %d failures", i, result.Task.State, result.Task.Failures)
		}
	}

	cfg.Partitioning = topology.Partitioning{History: 3}
	stop(t, second)
	if s, err := stack.Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "created with 2 history partitions") {
		t.Errorf("another partitioning: %v", err)
		if s != nil {
			stop(t, s)
		}
	}
}

func TestTemporaryDataGoWithTheStack(t *testing.T) {
	t.Parallel()
	s := start(t, stack.Config{Tables: stack.TablesMemory, HTTP: testkit.FreeAddr(t)})
	if s.TablesAt != "memory" || s.RedisPID() != 0 {
		t.Errorf("tables at %q, redis %d", s.TablesAt, s.RedisPID())
	}
	c := client(t, s, "shop")
	runWorker(t, c, "mail")
	greet(t, c, "ann")
	stop(t, s)
	if _, err := os.Stat(s.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory: %v", err)
	}
	stop(t, s) // once more does no harm
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	addr := testkit.FreeAddr(t)
	start(t, stack.Config{Tables: stack.TablesMemory, HTTP: addr})
	for path, want := range map[string]string{"/readyz": `"ready": true`, "/livez": "ok", "/metrics": "yardmaster_history_"} {
		resp, err := http.Get("http://" + addr + path)
		testkit.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %v\n%s", path, resp.StatusCode, err, body)
		}
	}
}

func TestRedisOfOurOwnIsReplacedWhenItDies(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for a restart")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	testkit.NoError(t, err)
	defer log.Close()
	s := start(t, stack.Config{Log: slog.New(slog.NewTextHandler(log, nil))})
	if !strings.HasPrefix(s.TablesAt, "unix://") || s.RedisPID() == 0 {
		t.Fatalf("tables at %q, redis %d", s.TablesAt, s.RedisPID())
	}
	c := client(t, s, "shop")
	testkit.NoError(t, testkit.Err(c.PutType(t.Context(), yard.TaskType{Name: "greet", MaxConcurrency: 3})))
	runWorker(t, c, "mail")
	greet(t, c, "ann")

	before := s.RedisPID()
	testkit.NoError(t, syscall.Kill(before, syscall.SIGKILL))
	testkit.Eventually(t, within, func() error {
		if pid := s.RedisPID(); pid == 0 || pid == before {
			return fmt.Errorf("redis is process %d, was %d", pid, before)
		}
		return nil
	})
	greet(t, c, "bob")
	logged, err := os.ReadFile(log.Name())
	if err != nil || !strings.Contains(string(logged), "redis-server started here") || !strings.Contains(string(logged), "redis-server ended") {
		t.Errorf("%v, log:\n%s", err, logged)
	}
	last := s.RedisPID()
	stop(t, s)
	if err := syscall.Kill(last, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("redis-server %d lives on: %v", last, err)
	}
}

func TestRedisThatIsNamed(t *testing.T) {
	t.Parallel()
	redis := testkit.RunRedis(t)
	s := start(t, stack.Config{Redis: "redis://" + redis.Addr})
	if s.TablesAt != "redis://"+redis.Addr || s.RedisPID() != 0 {
		t.Errorf("tables at %q, redis %d", s.TablesAt, s.RedisPID())
	}
	c := client(t, s, "shop")
	runWorker(t, c, "mail")
	greet(t, c, "ann")
}

func TestWhatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for a Redis that is not there")
	dir := t.TempDir()
	running := start(t, stack.Config{DataDir: dir, Tables: stack.TablesMemory})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(running.URL, "nats://"))
	testkit.NoError(t, err)
	var taken int
	testkit.NoError(t, testkit.Err(fmt.Sscan(port, &taken)))
	file := dir + "/file"
	testkit.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		cfg  stack.Config
		want string
	}{
		"directory in use":  {stack.Config{DataDir: dir}, "in use by another process"},
		"port in use":       {stack.Config{Port: taken}, "address already in use"},
		"not a directory":   {stack.Config{DataDir: file}, "data directory"},
		"bad sync":          {stack.Config{Sync: "sometimes"}, `"always" or a duration`},
		"bad tables":        {stack.Config{Tables: "disk"}, "want auto, memory or redis"},
		"two tables":        {stack.Config{Tables: stack.TablesMemory, Redis: "redis://x"}, "choose one"},
		"bad redis":         {stack.Config{Redis: "http://x"}, "invalid URL scheme"},
		"redis not there":   {stack.Config{Redis: "redis://" + testkit.FreeAddr(t)}, "does not answer"},
		"redis database":    {stack.Config{Redis: "redis://x/3"}, "only database 0"},
		"partitions":        {stack.Config{Tables: stack.TablesMemory, Partitioning: topology.Partitioning{History: 2000}}, "must be 1..1024"},
		"health port taken": {stack.Config{Tables: stack.TablesMemory, HTTP: "127.0.0.1:" + port}, "health server"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			s, err := stack.Start(ctx, c.cfg)
			if err == nil {
				stop(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestAnInterruptedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if s, err := stack.Start(ctx, stack.Config{DataDir: dir, Tables: stack.TablesMemory}); err == nil {
		stop(t, s)
		t.Fatal("it started")
	}
	start(t, stack.Config{DataDir: dir, Tables: stack.TablesMemory}) // the directory is free again
}
