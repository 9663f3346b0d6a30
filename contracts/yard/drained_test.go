package yard

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

func (b *bench) tell(d *yardv1.WorkerDrain) {
	b.engine.locked(func() {
		b.engine.drain = d
		close(b.engine.arrived) // polls that wait end
		b.engine.arrived = make(chan struct{})
	})
}

// TestADrainedWorkerPollsOnWithARest: however quickly its polls are answered. It runs what it has, and gets tasks once it is resumed.
func TestADrainedWorkerPollsOnWithARest(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.worker.HandleFunc("x", lasting(10*time.Second))
		b.start(granted("x", 1)...)
		synctest.Wait()
		b.tell(&yardv1.WorkerDrain{SinceMs: 1, Reason: "why"})
		b.engine.locked(func() { b.engine.polls = nil })
		time.Sleep(20 * time.Second)
		b.engine.locked(func() {
			if n := len(b.engine.polls); n < pollLoops*15 || n > pollLoops*22 {
				t.Errorf("%d polls in 20 s", n)
			}
			if len(b.engine.completed) != 1 || b.engine.questions != 0 {
				t.Errorf("%d are completed, %d questions", len(b.engine.completed), b.engine.questions)
			}
		})
		b.tell(nil)
		b.engine.push(granted("x", 2)...)
		time.Sleep(15 * time.Second)
		b.finish(t)
		if n := len(b.engine.completed); n != 3 {
			t.Errorf("%d are completed", n)
		}
	})
}

// TestAStoppedWorkersRunReturns what a program can tell, after its handlers have finished, and after the last sign of life.
func TestAStoppedWorkersRunReturns(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.worker.HandleFunc("x", lasting(10*time.Second))
		b.start(granted("x", 1)...)
		synctest.Wait()
		began := time.Now()
		b.tell(&yardv1.WorkerDrain{Stop: true, SinceMs: 1, Reason: "scaled down", By: "ann"})
		err := <-b.done
		stopped, left := new(StoppedError), new(DrainError)
		if !errors.As(err, &stopped) || errors.As(err, &left) || *stopped != (StoppedError{Reason: "scaled down", By: "ann"}) || !strings.Contains(err.Error(), "an operator, ann: scaled down") {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(began); took != 10*time.Second || len(b.engine.completed) != 1 || !b.engine.signs[len(b.engine.signs)-1].Leaving {
			t.Errorf("it took %v, %d completed", took, len(b.engine.completed))
		}
	})
}

// TestAStoppedWorkerLeavesNoMoreThanItsTime: handlers that do not end in time get ErrStopping, and what is left is said.
func TestAStoppedWorkerLeavesNoMoreThanItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithDrainTimeout(time.Second), WithStopGrace(time.Second))
		release := make(chan struct{})
		b.worker.HandleFunc("x", waitingFor(release))
		b.start(granted("x", 1)...)
		synctest.Wait()
		b.tell(&yardv1.WorkerDrain{Stop: true, SinceMs: 1})
		err := <-b.done
		stopped, left := new(StoppedError), new(DrainError)
		if !errors.As(err, &stopped) || !errors.As(err, &left) || left.Running != 1 || stopped.Error() != "the worker was stopped by an operator" {
			t.Errorf("it ended with %v", err)
		}
		close(release)
	})
}

// TestAWorkerWithoutRoomAsks whether it is to stop, and only then.
func TestAWorkerWithoutRoomAsks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(1), WithDrainTimeout(time.Hour), WithPollWait(time.Minute))
		release := make(chan struct{})
		b.worker.HandleFunc("x", waitingFor(release))
		b.start()
		time.Sleep(time.Minute)
		b.engine.push(granted("x", 1)...)
		time.Sleep(time.Minute)
		b.engine.locked(func() {
			if n := b.engine.questions; n < 10 || n > 13 {
				t.Errorf("%d questions in a minute", n)
			}
		})
		b.tell(&yardv1.WorkerDrain{Stop: true, SinceMs: 1})
		time.Sleep(2 * askEvery)
		b.engine.locked(func() { b.engine.questions = 0 })
		time.Sleep(time.Minute)
		b.engine.locked(func() {
			if n := b.engine.questions; n != 0 {
				t.Errorf("%d questions of one that knows", n)
			}
		})
		close(release)
		if stopped := new(StoppedError); !errors.As(<-b.done, &stopped) {
			t.Error("it was not asked to stop")
		}
	})
}

// TestAWorkerWithoutSignsIsNotAsked: it has no name by which it could be drained.
func TestAWorkerWithoutSignsAsksNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newBench(WithConcurrency(1), WithSignsOfLife(0))
		b.worker.HandleFunc("x", lasting(20*time.Second))
		b.start(granted("x", 1)...)
		time.Sleep(time.Minute)
		b.finish(t)
		if b.engine.questions != 0 {
			t.Errorf("%d questions", b.engine.questions)
		}
	})
}

// TestOldNewsAreNoResume: the answer to a poll from before a drain says nothing against it.
func TestOldNewsAreNoResume(t *testing.T) {
	var state drainState
	asked := time.Now()
	d := &yardv1.WorkerDrain{SinceMs: 1}
	if state.hear(nil, asked) || !state.hear(d, asked) || state.hear(d.CloneVT(), asked) || state.hear(nil, asked) {
		t.Error("the wrong ones are news")
	}
	if !state.hear(&yardv1.WorkerDrain{SinceMs: 2, Stop: true}, asked) || state.stopped() == nil || !state.hear(nil, time.Now()) || state.stopped() != nil {
		t.Error("news are not heard")
	}
}
