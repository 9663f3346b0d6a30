package partition

import (
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// waiter is somebody who wants to hear when a task is finished.
type waiter struct {
	domain string
	until  int64
	reply  func(*rpcv1.GetTaskResponse)
}

// waiters are those who wait, by task. The task need not be in memory.
type waiters struct{ byID map[ids.TaskID][]waiter }

func newWaiters() waiters { return waiters{byID: make(map[ids.TaskID][]waiter)} }

func (w *waiters) add(id ids.TaskID, one waiter) { w.byID[id] = append(w.byID[id], one) }

// finished answers those who wait for e.
func (w *waiters) finished(o *Owner, e *entry) {
	waiting, ok := w.byID[e.ID]
	if !ok {
		return
	}
	delete(w.byID, e.ID)
	task := record.Public(&e.Task, false)
	for _, one := range waiting {
		one.reply(visible(task, one.domain))
	}
}

// expire answers those whose time is over with the state so far.
func (w *waiters) expire(o *Owner, now int64) {
	for id, waiting := range w.byID {
		kept := waiting[:0]
		for _, one := range waiting {
			if one.until > now {
				kept = append(kept, one)
				continue
			}
			one.reply(o.lookup(id, one.domain))
		}
		if len(kept) == 0 {
			delete(w.byID, id)
		} else {
			w.byID[id] = kept
		}
	}
}

// endAll answers everybody: the owner leaves, and they ask the next one.
func (w *waiters) endAll(o *Owner) {
	for id, waiting := range w.byID {
		for _, one := range waiting {
			one.reply(o.lookup(id, one.domain))
		}
	}
	clear(w.byID)
}

// lookup is what memory tells of a task; an answer without one where it is not there.
func (o *Owner) lookup(id ids.TaskID, domain string) *rpcv1.GetTaskResponse {
	if e, ok := o.tasks[id]; ok {
		return visible(record.Public(&e.Task, false), domain)
	}
	if end, ok := o.recent.get(id); ok && end.task != nil {
		return visible(record.Public(end.task, false), domain)
	}
	return &rpcv1.GetTaskResponse{}
}

func visible(task *yardv1.Task, domain string) *rpcv1.GetTaskResponse {
	if domain != "" && task.Domain != domain {
		return &rpcv1.GetTaskResponse{}
	}
	return &rpcv1.GetTaskResponse{Task: task}
}
