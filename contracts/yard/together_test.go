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

// gate holds back the answers of submits until it is opened.
type gate struct {
	held []*nats.Msg
	open bool
}

// hold is a script: the submits of the first n calls wait.
func (s *stack) hold(g *gate, n int) {
	s.engine.script = func(endpoint string, call int, msg *nats.Msg) bool {
		if endpoint != "tasks.submit" || call >= n || g.open {
			return false
		}
		g.held = append(g.held, msg)
		return true
	}
}

// letGo answers what was held back.
func (s *stack) letGo(g *gate) {
	s.engine.locked(func() {
		g.open = true
		for _, msg := range g.held {
			s.engine.submit(msg)
		}
	})
}

// sizes are the numbers of tasks of the submits so far.
func (s *stack) sizes() (all []int) {
	s.engine.locked(func() {
		for _, msg := range s.engine.heard["tasks.submit"] {
			all = append(all, len(read[yardv1.SubmitRequest](s.engine, msg).Tasks))
		}
	})
	return all
}

// What goroutines submit while a request is under way goes together with the next one, and each of them gets the id
// of its own task.
func TestSubmitsTravelTogether(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		const callers = 64
		var g gate
		s.hold(&g, 100) // one request after the other, until all callers wait
		ids := make([]string, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				id, err := s.client.Submit(soon(t), yard.Task{Type: "x", Tasklist: "mail", Payload: i})
				checktest.Check(t, err)
				ids[i] = id
			})
		}
		eventually(t, func() error {
			sent := 0
			for _, n := range s.sizes() {
				sent += n
			}
			if sent < callers {
				return fmt.Errorf("%d tasks are sent", sent)
			}
			return nil
		})
		s.letGo(&g)
		all.Wait()
		s.engine.locked(func() {
			for i, id := range ids {
				if task := s.engine.tasks[id]; task == nil || string(task.task.Payload.Data) != fmt.Sprint(i) {
					t.Errorf("the id of caller %d is of another task", i)
				}
			}
		})
		if requests := len(s.sizes()); requests >= callers/2 {
			t.Errorf("%d requests for %d tasks", requests, callers)
		}
	})
}

// A task that is refused is refused to its own caller, by its own path, and the others are stored once.
func TestOneRefusedOfManyIsRefusedAlone(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.script = func(endpoint string, _ int, msg *nats.Msg) bool {
			if endpoint != "tasks.submit" {
				return false
			}
			for i, task := range read[yardv1.SubmitRequest](s.engine, msg).Tasks {
				if task.Priority == 99 {
					return s.engine.refuse(msg, fault.At(fault.InvalidArgument, fmt.Sprintf("/tasks/%d/priority", i), "is 99"))
				}
			}
			return false
		}
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				task := yard.Task{Type: "x", Tasklist: "mail", Payload: i}
				if i%10 == 3 {
					task.Priority = 99
				}
				_, err := s.client.Submit(soon(t), task)
				var e *fault.Error
				if bad := task.Priority == 99; bad != errors.Is(err, yard.ErrInvalidArgument) || bad && (!errors.As(err, &e) || e.Path != "/tasks/0/priority") || !bad && err != nil {
					t.Errorf("task %d: %v", i, err)
				}
			})
		}
		all.Wait()
		s.engine.locked(func() {
			if len(s.engine.tasks) != 36 {
				t.Errorf("%d tasks are stored", len(s.engine.tasks))
			}
		})
	})
}

// A caller that gives up learns what is known of its own task, and the others wait on.
func TestACallerGivesUpAlone(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		var g gate
		s.hold(&g, 1)
		ctx, cancel := context.WithCancel(soon(t))
		gone, stayed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := s.client.Submit(ctx, one)
			gone <- err
		}()
		eventually(t, func() error {
			if len(s.sizes()) == 0 {
				return errors.New("nothing is sent")
			}
			return nil
		})
		go func() {
			_, err := s.client.Submit(soon(t), one)
			stayed <- err
		}()
		cancel()
		if err := <-gone; !errors.Is(err, yard.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Errorf("it may be stored: %v", err)
		}
		s.letGo(&g)
		checktest.Check(t, <-stayed)
	})
}

// A request that no one answers holds up no other for long: a partition of the log may be away.
func TestARequestWithoutAnswerHoldsUpNoOther(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		var g gate
		s.hold(&g, 1)
		short, cancel := context.WithTimeout(context.Background(), time.Minute)
		first := make(chan error, 1)
		go func() {
			_, err := s.client.Submit(short, one)
			first <- err
		}()
		eventually(t, func() error {
			if len(s.sizes()) == 0 {
				return errors.New("nothing is sent")
			}
			return nil
		})
		checktest.Check(t, checktest.Err(s.client.Submit(soon(t), one)))
		cancel()
		if err := <-first; !errors.Is(err, yard.ErrUnknown) {
			t.Error(err)
		}
	})
}

// Tasks too large for one request together are cut apart.
func TestWhatIsTooLargeTogetherIsCut(t *testing.T) {
	onStack(t, func(t *testing.T, s *stack) {
		s.engine.script = func(endpoint string, _ int, msg *nats.Msg) bool {
			return endpoint == "tasks.submit" && len(read[yardv1.SubmitRequest](s.engine, msg).Tasks) > 3 &&
				s.engine.refuse(msg, fault.At(fault.InvalidArgument, "/tasks", "take too many bytes together"))
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				checktest.Check(t, checktest.Err(s.client.Submit(soon(t), one)))
			})
		}
		all.Wait()
		s.engine.locked(func() {
			if len(s.engine.tasks) != 50 {
				t.Errorf("%d tasks are stored", len(s.engine.tasks))
			}
		})
	})
}
