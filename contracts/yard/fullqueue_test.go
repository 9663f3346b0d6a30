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
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// capped is a script: the tasklist full has room for so many tasks, and again for as many after each pause.
type capped struct {
	room, each int
	every      time.Duration
	refilled   time.Time
	refusals   int
}

func (q *capped) script(s *stack) func(string, int, *nats.Msg) bool {
	return func(endpoint string, _ int, msg *nats.Msg) bool {
		if endpoint != "tasks.submit" {
			return false
		}
		if now := time.Now(); q.every > 0 && now.Sub(q.refilled) >= q.every {
			q.room, q.refilled = q.each, now
		}
		first, n := -1, 0
		for i, task := range read[yardv1.SubmitRequest](s.engine, msg).Tasks {
			if task.Tasklist == "full" {
				if n++; first < 0 {
					first = i
				}
			}
		}
		if n > q.room {
			q.refusals++
			return s.engine.refuse(msg, fault.At(fault.ResourceExhausted, fmt.Sprintf("/tasks/%d/tasklist", first), "is full").After(time.Second))
		}
		q.room -= n
		return false
	}
}

// A tasklist whose queue is full holds up no task of another one, though they travel together.
func TestAFullQueueHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		q := &capped{}
		s.engine.script = q.script(s)
		var all sync.WaitGroup
		began := time.Now()
		for i := range 60 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				task := yard.Task{Type: "x", Tasklist: "mail", Payload: i}
				if i%3 == 0 {
					task.Tasklist = "full"
				}
				_, err := s.client.Submit(ctx, task)
				switch e := fault.From(err); {
				case task.Tasklist == "mail" && (err != nil || time.Since(began) > time.Second):
					t.Errorf("a task of another tasklist: %v after %v", err, time.Since(began))
				case task.Tasklist == "full" && (!errors.Is(err, yard.ErrResourceExhausted) || e.Path != "/tasks/0/tasklist"):
					t.Errorf("a task for a full queue: %v", err)
				}
			})
		}
		all.Wait()
		s.engine.locked(func() {
			if len(s.engine.tasks) != 40 {
				t.Errorf("%d tasks are stored", len(s.engine.tasks))
			}
		})
	})
}

// What waits for a full queue goes as there is room, each task once, and not those whose callers have given up.
func TestWhatWaitsForAQueueGoesAsThereIsRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		q := &capped{each: 7, every: 3 * time.Second}
		s.engine.script = q.script(s)
		var all sync.WaitGroup
		stored, gaveUp := make([]string, 50), make([]bool, 60)
		for i := range 60 {
			all.Go(func() {
				within := 2 * time.Minute
				if i >= 50 {
					within = time.Second / 2
				}
				time.Sleep(time.Millisecond) // together
				ctx, cancel := context.WithTimeout(context.Background(), within)
				defer cancel()
				id, err := s.client.Submit(ctx, yard.Task{Type: "x", Tasklist: "full", Payload: i})
				switch {
				case i < 50 && err != nil:
					t.Errorf("task %d: %v", i, err)
				case i < 50:
					stored[i] = id
				case errors.Is(err, yard.ErrResourceExhausted):
					gaveUp[i] = true
				case err != nil:
					t.Errorf("who gives up hears %v", err)
				}
			})
		}
		all.Wait()
		s.engine.locked(func() {
			payloads := map[string]bool{}
			for _, task := range s.engine.tasks {
				payloads[string(task.task.Payload.Data)] = true
			}
			for i, id := range stored {
				if s.engine.tasks[id] == nil || !payloads[fmt.Sprint(i)] {
					t.Errorf("task %d is not stored", i)
				}
			}
			for i, gone := range gaveUp {
				if gone && payloads[fmt.Sprint(i)] {
					t.Errorf("task %d is stored, though its caller heard that it is not", i)
				}
			}
			if n := len(s.engine.tasks); n != len(payloads) || n > 57 || q.refusals > 200 {
				t.Errorf("%d tasks of %d callers are stored, after %d refusals", n, len(payloads), q.refusals)
			}
		})
	})
}

// A group that is at its cap in a tasklist holds up no other group of it, not even while the tasklist is full, too.
func TestAFullGroupHoldsUpNoOther(t *testing.T) {
	for _, listIsFull := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			s := newStack(t)
			began := time.Now()
			s.engine.script = func(endpoint string, _ int, msg *nats.Msg) bool {
				if endpoint != "tasks.submit" {
					return false
				}
				refuse := func(i int, field string) bool {
					return s.engine.refuse(msg, fault.At(fault.ResourceExhausted, fmt.Sprintf("/tasks/%d/%s", i, field), "is full").After(time.Second))
				}
				for i, task := range read[yardv1.SubmitRequest](s.engine, msg).Tasks {
					if listIsFull && task.Tasklist == "mail" && time.Since(began) < time.Second {
						return refuse(i, "tasklist")
					}
					if task.Tasklist == "mail" && task.Group == "full" {
						return refuse(i, "group")
					}
				}
				return false
			}
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
					defer cancel()
					task := yard.Task{Type: "x", Tasklist: "mail", Group: []string{"full", "a", "b", ""}[i%4], Payload: i}
					if i%20 == 0 {
						task.Tasklist = "bulk" // where the group has no cap
					}
					_, err := s.client.Submit(ctx, task)
					switch full := task.Tasklist == "mail" && task.Group == "full"; {
					case full && (!errors.Is(err, yard.ErrResourceExhausted) || fault.From(err).Path != "/tasks/0/group"):
						t.Errorf("a task of a full group: %v", err)
					case !full && (err != nil || time.Since(began) > 10*time.Second):
						t.Errorf("a task of group %q in %s: %v after %v", task.Group, task.Tasklist, err, time.Since(began))
					}
				})
			}
			all.Wait()
			s.engine.locked(func() {
				if n := len(s.engine.tasks); n != 48 {
					t.Errorf("%d tasks are stored", n)
				}
			})
		})
	}
}

// An order key that is full holds up no other task, of whatever tasklist; its own wait until it has room.
func TestAFullKeyHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newStack(t)
		began := time.Now()
		const fullFor = 5 * time.Second
		s.engine.script = func(endpoint string, _ int, msg *nats.Msg) bool {
			if endpoint != "tasks.submit" || time.Since(began) > fullFor {
				return false
			}
			for i, task := range read[yardv1.SubmitRequest](s.engine, msg).Tasks {
				if task.OrderKey == "full" {
					return s.engine.refuse(msg, fault.At(fault.ResourceExhausted, fmt.Sprintf("/tasks/%d/order_key", i), "is full").After(time.Second))
				}
			}
			return false
		}
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				task := yard.Task{Type: "x", Tasklist: []string{"mail", "bulk"}[i%2], OrderKey: []string{"full", "a", "b"}[i%3], Payload: i}
				_, err := s.client.Submit(context.Background(), task)
				if took := time.Since(began); err != nil || (took > fullFor) != (task.OrderKey == "full") {
					t.Errorf("a task of key %s: %v after %v", task.OrderKey, err, took)
				}
			})
		}
		all.Wait()
	})
}
