package yard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// refusal is an error whose pointer is nil where a careless handler returns its variable.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// The text of an error is the handler's code too: a panic in it, such as of a nil pointer in an error, is the attempt's.
func TestAnErrorThatPanicsBecomesAFailure(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		w := yard.NewWorker(s.client, "mail", quiet())
		yard.Handle(w, "x", func(context.Context, yard.Payload) (struct{}, error) {
			var none *refusal
			return struct{}{}, none
		})
		run(t, w)
		_, err := s.client.Run(soon(t), yard.Task{Type: "x", Tasklist: "mail"})
		var dead *yard.TaskError
		if !errors.As(err, &dead) || dead.ErrorType != yard.TypePanic || dead.Failures != 3 {
			t.Errorf("got %v", err)
		}
	})
}

func TestCancelReachesARunningHandler(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		w := yard.NewWorker(s.client, "mail", quiet())
		causes := make(chan error, 1)
		started := make(chan string, 1)
		yard.Handle(w, "x", func(ctx context.Context, _ yard.Payload) (struct{}, error) {
			checktest.Check(t, yard.Progress(ctx, "half"))
			started <- yard.Info(ctx).TaskID
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return struct{}{}, ctx.Err()
		})
		run(t, w)
		id, err := s.client.Submit(soon(t), yard.Task{Type: "x", Tasklist: "mail", HeartbeatTimeout: 3 * time.Second})
		if err != nil || id != <-started {
			t.Fatal(err)
		}
		checktest.NoError(t, s.client.Cancel(soon(t), id))
		checktest.Equal(t, "the context ended with", <-causes, yard.ErrCancelled)
		if _, err := s.client.Wait(soon(t), id); !errors.Is(err, yard.ErrCancelled) {
			t.Errorf("got %v", err)
		}
		if task, err := s.client.Get(soon(t), id); err != nil || string(task.Progress.Data) != `"half"` {
			t.Errorf("got %v, %v", task, err)
		}
		err = s.client.Cancel(soon(t), id, "nonsense")
		if !errors.Is(err, &fault.Error{Code: fault.FailedPrecondition}) || !errors.Is(err, &fault.Error{Code: fault.NotFound}) {
			t.Errorf("cancel of a finished and of an unknown task: %v", err)
		}
	})
}

func numbered(taskType string, n int) []yard.Task {
	tasks := make([]yard.Task, n)
	for i := range tasks {
		tasks[i] = yard.Task{Type: taskType, Tasklist: "mail", Payload: i}
	}
	return tasks
}

func (s *stack) eventuallyCompleted(t *testing.T, want int) {
	t.Helper()
	eventually(t, func() (err error) {
		s.engine.locked(func() {
			n := 0
			for _, task := range s.engine.tasks {
				if task.state == yardv1.TaskState_TASK_STATE_COMPLETED {
					n++
				}
			}
			if n != want {
				err = fmt.Errorf("%d of %d tasks are completed", n, want)
			}
		})
		return err
	})
}

// A parked poll of a stopped worker must swallow nothing: what is granted to it
// comes back by itself, and goes to the next worker as its first attempt.
func TestStoppedWorkersPollFindsNoResponders(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		idle := yard.NewWorker(s.client, "mail", quiet())
		idle.HandleFunc("x", func(context.Context, *yard.Attempt) (yard.Payload, error) {
			t.Error("a stopped worker began a task")
			return yard.Payload{}, nil
		})
		stop := run(t, idle)
		eventually(t, func() error {
			if s.engine.requests("tasks.poll") == 0 {
				return errors.New("no poll yet")
			}
			return nil
		})
		checktest.NoError(t, stop())
		next := yard.NewWorker(s.connect(t), "mail", quiet())
		yard.Handle(next, "x", func(ctx context.Context, _ yard.Payload) (int, error) { return yard.Info(ctx).Failures, nil })
		id, err := s.client.Submit(soon(t), yard.Task{Type: "x", Tasklist: "mail"})
		checktest.NoError(t, err)
		run(t, next)
		result, err := s.client.Wait(soon(t), id)
		if err != nil || string(result.Payload.Data) != "0" {
			t.Errorf("got %v, %v", result, err)
		}
	})
}

// Workers come and go while tasks flow; every task must run, as its first
// attempt, and none may be left granted to no one.
func TestChurnBurnsNoAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const rounds, perRound = 25, 40
		s := newStack(t)
		var ran sync.Map
		for round := range rounds {
			w := yard.NewWorker(s.client, "mail", quiet(), yard.WithConcurrency(4))
			yard.Handle(w, "x", func(ctx context.Context, _ int) (struct{}, error) {
				a := yard.Info(ctx)
				if a.Failures != 0 {
					t.Errorf("%d attempts of task %s were burnt", a.Failures, a.TaskID)
				}
				if _, twice := ran.LoadOrStore(a.TaskID, true); twice {
					t.Errorf("task %s ran twice", a.TaskID)
				}
				return struct{}{}, nil
			})
			stop := run(t, w)
			if _, err := s.client.SubmitMany(soon(t), numbered("x", perRound)); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := stop(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		last := yard.NewWorker(s.client, "mail", quiet())
		yard.Handle(last, "x", func(context.Context, int) (struct{}, error) { return struct{}{}, nil })
		run(t, last)
		s.eventuallyCompleted(t, rounds*perRound)
		s.engine.locked(func() {
			for _, task := range s.engine.tasks {
				if task.failures > 0 {
					t.Errorf("task %s has %d failures", task.id, task.failures)
				}
			}
		})
	})
}

// TestOutcomeIsRepeatedWhenItsTakerDied: a killed process says nothing any more, and the
// attempt is still good.
func TestOutcomeIsRepeatedWhenItsTakerDied(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.script = func(endpoint string, call int, _ *nats.Msg) bool { return endpoint == "tasks.complete" && call == 0 }
		w := yard.NewWorker(s.client, "mail", quiet())
		yard.Handle(w, "x", func(context.Context, yard.Payload) (struct{}, error) { return struct{}{}, nil })
		run(t, w)
		// Less than the try of any other request lasts (12 s).
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		checktest.Check(t, checktest.Err(s.client.Run(ctx, yard.Task{Type: "x", Tasklist: "mail"})))
	})
}

func TestWorkerSurvivesARestartOfNATS(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		w := yard.NewWorker(s.client, "mail", quiet())
		began := make(chan struct{}, 1)
		finish := make(chan struct{})
		yard.Handle(w, "x", func(context.Context, yard.Payload) (struct{}, error) {
			began <- struct{}{}
			<-finish
			return struct{}{}, nil
		})
		run(t, w)
		checktest.NoError(t, checktest.Err(s.client.Submit(soon(t), yard.Task{Type: "x", Tasklist: "mail"})))
		<-began
		s.nats.stop()
		close(finish) // the outcome meets a server that is away
		s.nats.start()
		s.eventuallyCompleted(t, 1)
		checktest.Check(t, checktest.Err(s.client.Run(soon(t), yard.Task{Type: "x", Tasklist: "mail"})))
	})
}

func TestRunReturnsWhenTheConnectionIsClosed(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		client := s.connect(t)
		w := yard.NewWorker(client, "mail", quiet())
		yard.Handle(w, "x", func(context.Context, yard.Payload) (struct{}, error) { return struct{}{}, nil })
		done := make(chan error, 1)
		go func() { done <- w.Run(soon(t)) }()
		eventually(t, func() error {
			if s.engine.requests("tasks.poll") == 0 {
				return errors.New("no poll yet")
			}
			return nil
		})
		client.Close()
		if err := <-done; !errors.Is(err, nats.ErrConnectionClosed) || fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("got %v", err)
		}
	})
}
