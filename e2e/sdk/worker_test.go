package sdk_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/yardtest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

// within bounds what must happen soon; a healthy run needs milliseconds.
const within = 60 * time.Second

func TestMain(m *testing.M) { natskit.VerifyTestMain(m) }

// worker is one of the tasklist of these tests.
func worker(c *yard.Client, handle func(context.Context, int) (struct{}, error), opts ...yard.WorkerOption) *yard.Worker {
	w := yard.NewWorker(c, "mail", append(opts, yard.WithLogger(slog.New(slog.DiscardHandler)))...)
	yard.Handle(w, "x", handle)
	return w
}

// run runs a worker until the returned func is called. The test's end calls it too.
func run(t *testing.T, w *yard.Worker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		testkit.Check(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	t.Cleanup(cancel)
	return ctx
}

// Workers come and go while tasks flow: a poll that is withdrawn keeps nothing. Every task runs once, as its first
// attempt.
func TestChurnBurnsNoAttempts(t *testing.T) {
	const rounds, perRound = 25, 40
	engine := yardtest.New(t)
	var mu sync.Mutex
	ran := map[string]int{}
	handle := func(ctx context.Context, _ int) (struct{}, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[yard.Info(ctx).TaskID]++
		return struct{}{}, nil
	}
	var all []string
	for round := range rounds {
		stop := run(t, worker(engine.Connect(t), handle, yard.WithConcurrency(4)))
		tasks := make([]yard.Task, perRound)
		for i := range tasks {
			tasks[i] = yard.Task{Type: "x", Tasklist: "mail", Payload: i}
		}
		ids, err := engine.Client.SubmitMany(soon(t), tasks)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		all = append(all, ids...)
		stop()
	}
	run(t, worker(engine.Client, handle))
	for _, id := range all {
		testkit.NoError(t, testkit.Err(engine.Client.Wait(soon(t), id)))
		task, err := engine.Client.Get(soon(t), id)
		if err != nil || task.Failures != 0 || task.State != yard.StateCompleted {
			t.Errorf("%v, %v", task, err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for id, n := range ran {
		if n != 1 {
			t.Errorf("task %s ran %d times", id, n)
		}
	}
}

// An outcome whose connection has ended is sent to the server that comes back, and the worker works on.
func TestWorkerSurvivesARestart(t *testing.T) {
	engine := yardtest.New(t)
	began, finish := make(chan struct{}, 1), make(chan struct{})
	run(t, worker(engine.Client, func(context.Context, int) (struct{}, error) {
		began <- struct{}{}
		<-finish
		return struct{}{}, nil
	}))
	task := yard.Task{Type: "x", Tasklist: "mail", Payload: 1}
	id, err := engine.Client.Submit(soon(t), task)
	testkit.NoError(t, err)
	<-began
	engine.Restart(t)
	close(finish)
	testkit.Check(t, testkit.Err(engine.Client.Wait(soon(t), id)))
	testkit.Check(t, testkit.Err(engine.Client.Run(soon(t), task)))
}
