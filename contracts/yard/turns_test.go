package yard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard/internal/turns"
)

// of moves granted tasks to a tasklist.
func of(tasklist string, tasks []*yardv1.PolledTask) []*yardv1.PolledTask {
	for _, t := range tasks {
		t.Tasklist = tasklist
		t.TaskId = tasklist + "-" + t.TaskId
	}
	return tasks
}

// ran counts the attempts of each tasklist, and how many run at once.
type ran struct {
	each          map[string]int
	running, most int
	engine        *fakeEngine
}

func (r *ran) handler(takes time.Duration) HandlerFunc {
	return func(_ context.Context, a *Attempt) (Payload, error) {
		r.engine.locked(func() { r.each[a.Tasklist]++; r.running++; r.most = max(r.most, r.running) })
		time.Sleep(takes)
		r.engine.locked(func() { r.running-- })
		return Payload{}, nil
	}
}

func newRan(b *bench) *ran { return &ran{each: map[string]int{}, engine: b.engine} }

// All tasklists are served, within one concurrency; and the worker drains as with one.
func TestSeveralTasklistsShareTheConcurrency(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithTasklists("b", "c"), WithConcurrency(6))
		r := newRan(b)
		b.worker.HandleFunc("x", r.handler(time.Second))
		for _, list := range []string{"list", "b", "c"} {
			b.engine.push(of(list, granted("x", 60))...)
		}
		b.start()
		time.Sleep(15 * time.Second)
		// 6 slots, 15 s: about 90 attempts, and no list has less than half of its third.
		b.engine.locked(func() {
			for _, list := range []string{"list", "b", "c"} {
				if n := r.each[list]; n < 15 {
					t.Errorf("%d attempts of %s; all: %v", n, list, r.each)
				}
			}
			if r.most != 6 {
				t.Errorf("%d ran at once", r.most)
			}
		})
		b.finish(t)
		all := 0
		for _, n := range r.each {
			all += n
		}
		if r.running != 0 || len(b.engine.completed) != all || all+len(b.engine.tasks)+len(b.engine.failed) != 180 {
			t.Errorf("%d run, %d of %d completed, %d handed back, %d left", r.running, len(b.engine.completed), all, len(b.engine.failed), len(b.engine.tasks))
		}
	})
}

// Tasklists without work leave nearly all slots to one that has some.
func TestIdleTasklistsHoldFewSlots(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithTasklists("b", "c"), WithConcurrency(20), WithPollWait(time.Minute))
		r := newRan(b)
		b.worker.HandleFunc("x", r.handler(time.Hour))
		b.start()
		synctest.Wait() // each has its poll
		b.engine.push(of("b", granted("x", 100))...)
		time.Sleep(50 * time.Millisecond) // before any poll is withdrawn
		synctest.Wait()
		b.engine.locked(func() {
			if r.running != 18 { // the other two have one each
				t.Errorf("%d run", r.running)
			}
			polls := 0
			for _, req := range b.engine.asked {
				if req.Tasklist == "b" {
					polls++
				} else if req.MaxTasks != 1 {
					t.Errorf("%s was polled for %d tasks", req.Tasklist, req.MaxTasks)
				}
			}
			if polls > 7 { // 1, 2, 4, 8, and what is left
				t.Errorf("%d polls for 18 tasks", polls)
			}
		})
		b.stop()
		var left *DrainError
		if err := <-b.done; !errors.As(err, &left) || left.Running != 18 {
			t.Errorf("the worker ended with %v", err)
		}
		time.Sleep(2 * time.Hour) // the handlers return
	})
}

// With one slot for three tasklists each gets its turn soon, also after a handler that took the slot for long; and
// an idle worker does not leave withdrawn polls behind, turn after turn.
func TestTasklistsWithoutASlotGetTheirTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithTasklists("b", "c"), WithConcurrency(1), WithPollWait(time.Minute))
		r := newRan(b)
		b.worker.HandleFunc("x", r.handler(time.Millisecond))
		b.start()
		time.Sleep(10 * time.Second)
		b.engine.locked(func() {
			short := 0
			for _, req := range b.engine.asked {
				if req.WaitMs == turns.Length.Milliseconds() {
					short++
				}
			}
			if n := len(b.engine.asked); n-short > 3 || n > 110 {
				t.Errorf("%d polls, %d of them short", n, short)
			}
		})
		for _, list := range []string{"c", "list", "b"} {
			b.engine.push(of(list, granted("x", 1))...)
			time.Sleep(4 * turns.Length)
			b.engine.locked(func() {
				if r.each[list] != 1 {
					t.Errorf("the task of %s did not run: %v", list, r.each)
				}
			})
		}
		b.finish(t)
	})
}

// A long poll of a tasklist without work is withdrawn where another tasklist wants its slot.
func TestALongPollIsWithdrawnForAnotherTasklist(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithTasklists("b"), WithConcurrency(2), WithPollWait(time.Minute))
		r := newRan(b)
		b.worker.HandleFunc("x", r.handler(10*time.Second))
		b.start()
		time.Sleep(time.Second) // both wait for long
		b.engine.push(of("b", granted("x", 2))...)
		time.Sleep(5 * turns.Length)
		b.engine.locked(func() {
			if r.each["b"] != 2 {
				t.Errorf("%v", r.each)
			}
		})
		b.finish(t)
	})
}
