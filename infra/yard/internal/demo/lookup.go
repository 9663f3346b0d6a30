package demo

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

const (
	lookUpsAtOnce = 16
	lookUpEvery   = 100 * time.Millisecond // between rounds
)

// ending is what the engine says of one accepted task at the end.
type ending struct {
	id string
	// state is unspecified where the task was not found or no one answered.
	state yardv1.TaskState
	// lost: the engine knows no such task.
	lost bool
	// ends is how many final steps its history has.
	ends int
}

// getter asks the engine for one task.
type getter func(ctx context.Context, id string) (*yardv1.Task, error)

// lookUp asks for every task, and in further rounds for those not finished, until
// all have finished, or none more has for so long, or ctx ends. It counts the
// finished ones in done.
func lookUp(ctx context.Context, ids []string, get getter, stall time.Duration, done *atomic.Int64) []ending {
	endings := make([]ending, len(ids))
	pending := make([]*ending, len(ids))
	for i, id := range ids {
		endings[i].id = id
		pending[i] = &endings[i]
	}
	grew := time.Now()
	for {
		lookUpOnce(ctx, pending, get, done)
		left := slices.DeleteFunc(slices.Clone(pending), func(e *ending) bool { return e.state.Finished() })
		if len(left) < len(pending) {
			grew = time.Now()
		}
		pending = left
		if len(pending) == 0 || time.Since(grew) > stall || !backoff.Sleep(ctx, lookUpEvery) {
			return endings
		}
	}
}

// lookUpOnce is one round. It ends early where the engine does not answer, which
// takes long to find out.
func lookUpOnce(ctx context.Context, pending []*ending, get getter, done *atomic.Int64) {
	var next atomic.Int64
	var silent atomic.Bool
	var asking sync.WaitGroup
	for range lookUpsAtOnce {
		asking.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(pending)) && !silent.Load(); i = next.Add(1) - 1 {
				if !pending[i].ask(ctx, get) {
					silent.Store(true)
				}
				if pending[i].state.Finished() {
					done.Add(1)
				}
			}
		})
	}
	asking.Wait()
}

// ask notes what the engine says of the task now, and whether it says anything.
func (e *ending) ask(ctx context.Context, get getter) (answered bool) {
	task, err := get(ctx, e.id)
	switch {
	case err == nil:
		e.state, e.ends, e.lost = task.State, finalSteps(task), false
	case fault.CodeOf(err) == fault.NotFound:
		e.state, e.lost = yardv1.TaskState_TASK_STATE_UNSPECIFIED, true
	default:
		return false
	}
	return true
}

func finalSteps(task *yardv1.Task) int {
	n := 0
	for _, e := range task.Events {
		switch e.Kind {
		case yardv1.TaskEventKind_TASK_EVENT_KIND_COMPLETED,
			yardv1.TaskEventKind_TASK_EVENT_KIND_DEAD,
			yardv1.TaskEventKind_TASK_EVENT_KIND_CANCELLED,
			yardv1.TaskEventKind_TASK_EVENT_KIND_EXPIRED:
			n++
		}
	}
	return n
}
