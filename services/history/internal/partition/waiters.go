package partition

import (
	"math"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// waiter is a caller that waits for the end of a task.
type waiter struct {
	domain string
	// until is when it has waited long enough, as replica.Now.Mono.
	until time.Duration
	reply func(*rpcv1.GetTaskResponse)
}

// waiters are those who wait, by task. The task need not be in memory.
type waiters struct{ byID map[ids.TaskID][]waiter }

func newWaiters() waiters { return waiters{byID: make(map[ids.TaskID][]waiter)} }

func (w *waiters) add(id ids.TaskID, one waiter) { w.byID[id] = append(w.byID[id], one) }

// ended answers those who wait for t.
func (w *waiters) ended(t *taskstate.Task) {
	waiting, ok := w.byID[t.ID]
	if !ok {
		return
	}
	delete(w.byID, t.ID)
	task := record.Public(t, false, t.FinishedAt)
	for _, one := range waiting {
		one.reply(visible(task, one.domain))
	}
}

// expire answers those whose time is over with the state so far.
func (w *waiters) expire(r *replica.Replica, now replica.Now) {
	for id, waiting := range w.byID {
		kept := waiting[:0]
		for _, one := range waiting {
			if one.until > now.Mono {
				kept = append(kept, one)
				continue
			}
			one.reply(lookup(r, id, one.domain, now.MS))
		}
		if len(kept) == 0 {
			delete(w.byID, id)
		} else {
			w.byID[id] = kept
		}
	}
}

// endAll answers everybody: the owner leaves, and they ask the next one.
func (w *waiters) endAll(r *replica.Replica, now replica.Now) {
	now.Mono = math.MaxInt64
	w.expire(r, now)
}

// lookup is what memory tells of a task; an answer without one if it is not there.
func lookup(r *replica.Replica, id ids.TaskID, domain string, now int64) *rpcv1.GetTaskResponse {
	if t := r.Get(id); t != nil {
		return visible(record.Public(t, false, now), domain)
	}
	return &rpcv1.GetTaskResponse{}
}

func visible(task *yardv1.Task, domain string) *rpcv1.GetTaskResponse {
	if domain != "" && task.Domain != domain {
		return &rpcv1.GetTaskResponse{}
	}
	return &rpcv1.GetTaskResponse{Task: task}
}
