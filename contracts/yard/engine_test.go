package yard

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/yardmaster-io/yardmaster/contracts/codec"
	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// fakeEngine is an engine in memory, for tests in a synctest bubble. It hands
// every task out once and remembers what it was sent.
type fakeEngine struct {
	mu        sync.Mutex
	tasks     []*yardv1.PolledTask
	arrived   chan struct{} // closed and replaced when tasks come
	polls     []int32       // max_tasks of each poll
	asked     []*yardv1.PollRequest
	completed []*yardv1.Completion
	failed    []*yardv1.Failure
	beats     []*yardv1.Beat
	requests  map[string][]int // sizes of the requests by verb
	// script may answer a request in the engine's place; nil verdicts = go on.
	script func(verb string, call int, ids []string) ([]*yardv1.Verdict, error)
	// latency of every answer but those of polls.
	latency time.Duration
	closed  bool
	// signs are the signs of life, signsAt when they came; signsFail is what is answered.
	signs     []*yardv1.WorkerAlive
	signsAt   []time.Time
	signsFail error
	// drain is that of the worker; questions are polls that only asked for it.
	drain     *yardv1.WorkerDrain
	questions int
	// hint tells the worker of cancelled tasks.
	hint func(taskIDs []string)
}

func newFakeEngine() *fakeEngine {
	return &fakeEngine{arrived: make(chan struct{}), requests: map[string][]int{}}
}

func (e *fakeEngine) push(tasks ...*yardv1.PolledTask) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks = append(e.tasks, tasks...)
	close(e.arrived)
	e.arrived = make(chan struct{})
}

func (e *fakeEngine) cancels(heard func([]string)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hint = heard
	return func() {}
}

func (e *fakeEngine) poll(ctx context.Context, req *yardv1.PollRequest) (*yardv1.PollResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if req.NoTasks {
		e.questions++
		return &yardv1.PollResponse{Drain: e.drain}, nil
	}
	e.polls = append(e.polls, req.MaxTasks)
	e.asked = append(e.asked, req)
	wait := time.After(time.Duration(req.WaitMs) * time.Millisecond)
	for {
		if e.closed {
			return nil, fault.New(fault.Unavailable, "closed")
		}
		if e.drain != nil && req.WorkerId != "" {
			return &yardv1.PollResponse{Drain: e.drain}, nil
		}
		if tasks := e.take(req.Tasklist, int(req.MaxTasks)); len(tasks) > 0 {
			return &yardv1.PollResponse{Tasks: tasks}, nil
		}
		arrived := e.arrived
		e.mu.Unlock()
		var err error
		over := false
		select {
		case <-arrived:
		case <-wait:
			over = true
		case <-ctx.Done():
			over, err = true, ctx.Err()
		}
		e.mu.Lock()
		if over {
			return &yardv1.PollResponse{}, err
		}
	}
}

// take takes up to n tasks of a tasklist.
func (e *fakeEngine) take(tasklist string, n int) (tasks []*yardv1.PolledTask) {
	e.tasks = slices.DeleteFunc(e.tasks, func(t *yardv1.PolledTask) bool {
		if t.Tasklist != tasklist || len(tasks) == n {
			return false
		}
		tasks = append(tasks, t)
		return true
	})
	return tasks
}

func (e *fakeEngine) answer(verb string, ids []string, apply func()) ([]*yardv1.Verdict, error) {
	time.Sleep(e.latency)
	e.mu.Lock()
	defer e.mu.Unlock()
	call := len(e.requests[verb])
	e.requests[verb] = append(e.requests[verb], len(ids))
	if e.script != nil {
		if verdicts, err := e.script(verb, call, ids); verdicts != nil || err != nil {
			return verdicts, err
		}
	}
	apply()
	return verdictsOf(ids, codeOK), nil
}

func verdictsOf(ids []string, code string) []*yardv1.Verdict {
	verdicts := make([]*yardv1.Verdict, len(ids))
	for i, id := range ids {
		verdicts[i] = &yardv1.Verdict{TaskId: id, Code: code}
	}
	return verdicts
}

func (e *fakeEngine) outcomeOnce(_ context.Context, endpoint string, req codec.Message, _ int) ([]*yardv1.Verdict, error) {
	switch r := req.(type) {
	case *yardv1.CompleteRequest:
		return e.answer("complete", idsOf(r.Tasks), func() { e.completed = append(e.completed, r.Tasks...) })
	case *yardv1.FailRequest:
		return e.answer("fail", idsOf(r.Tasks), func() { e.failed = append(e.failed, r.Tasks...) })
	case *yardv1.HeartbeatRequest:
		return e.answer("heartbeat", idsOf(r.Tasks), func() { e.beats = append(e.beats, r.Tasks...) })
	}
	panic(endpoint)
}

func (e *fakeEngine) alive(sign *yardv1.WorkerAlive) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.signs = append(e.signs, sign)
	e.signsAt = append(e.signsAt, time.Now())
	return e.signsFail
}

func idsOf[E interface{ GetTaskId() string }](tasks []E) []string {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		ids[i] = t.GetTaskId()
	}
	return ids
}

func (e *fakeEngine) connClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// locked calls f while the engine does nothing.
func (e *fakeEngine) locked(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// granted makes n granted tasks of a type, with an hour's deadline.
func granted(taskType string, n int) []*yardv1.PolledTask {
	tasks := make([]*yardv1.PolledTask, n)
	for i := range tasks {
		tasks[i] = &yardv1.PolledTask{
			TaskId: fmt.Sprintf("%s-%d", taskType, i), Token: fmt.Sprintf("token-%d", i), Type: taskType, Tasklist: "list",
			Attempt: 1, MaxAttempts: 5, TimeoutMs: time.Hour.Milliseconds(),
			Payload: &yardv1.Payload{Data: fmt.Appendf(nil, "%d", i)},
		}
	}
	return tasks
}

// lasting is a handler that takes a time, and no notice of its context.
func lasting(d time.Duration) HandlerFunc {
	return func(context.Context, *Attempt) (Payload, error) {
		time.Sleep(d)
		return Payload{}, nil
	}
}

// waitingFor is a handler that returns once release is closed.
func waitingFor(release <-chan struct{}) HandlerFunc {
	return func(context.Context, *Attempt) (Payload, error) {
		<-release
		return Payload{}, nil
	}
}

// bench is a worker on a fake engine inside a bubble.
type bench struct {
	engine *fakeEngine
	worker *Worker
	stop   context.CancelFunc
	done   chan error
}

func newBench(opts ...WorkerOption) *bench {
	client := &Client{domain: "shop", providers: noop.NewTracerProvider()}
	opts = append([]WorkerOption{WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))}, opts...)
	return &bench{engine: newFakeEngine(), worker: NewWorker(client, "list", opts...), done: make(chan error, 1)}
}

// onBench runs a test in a bubble, on a bench of its own.
func onBench(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Helper()
	inBubble(t, func(t *testing.T) { test(t, newBench()) })
}

// start runs the worker, which is given these tasks.
func (b *bench) start(tasks ...*yardv1.PolledTask) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go func() { b.done <- newSession(b.worker, b.engine).run(ctx) }()
	b.engine.push(tasks...)
}

// finish stops the worker and fails the test if it left anything behind.
func (b *bench) finish(t *testing.T) {
	t.Helper()
	b.stop()
	checktest.Check(t, <-b.done)
}

// inBubble runs a worker test with virtual time; leaving a goroutine behind fails it.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}
