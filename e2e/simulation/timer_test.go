package simulation

import (
	"slices"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
)

// timer is a small ideal model of the timer service and its store.
type timer struct {
	seq   uint64
	fence uint64
	// stays are what was parked and is not void, in order.
	stays []stay
	// waiting and cancelled are by task the stays that wait, and that were taken out.
	waiting, cancelled map[ids.TaskID]*historysim.Task
	// by is the epoch that parked each stay first, twice what another epoch parked again.
	by    map[historysim.Stay]uint64
	twice *historysim.Stay
	// last is the highest stay of each task ever stored.
	last map[ids.TaskID]uint32
}

type stay struct {
	seq uint64
	historysim.Stay
}

func newTimer() *timer {
	return &timer{
		waiting: map[ids.TaskID]*historysim.Task{}, cancelled: map[ids.TaskID]*historysim.Task{}, last: map[ids.TaskID]uint32{},
		by: map[historysim.Stay]uint64{},
	}
}

// raise stores a fence.
func (t *timer) raise(epoch uint64) uint64 {
	t.seq++
	t.fence = max(t.fence, epoch)
	return t.seq
}

// park stores tasks, which are void if their writer has been replaced.
func (t *timer) park(tasks []historysim.Task, epoch uint64) uint64 {
	t.seq++
	if epoch < t.fence {
		return t.seq
	}
	for i := range tasks {
		task := historysim.CopyTask(&tasks[i])
		key := historysim.Stay{ID: task.ID, Parkings: task.Parkings}
		t.stays = append(t.stays, stay{t.seq, key})
		if first, again := t.by[key]; again && first != epoch {
			t.twice = &key
		}
		t.by[key] = epoch
		if task.Parkings <= t.last[task.ID] {
			continue
		}
		t.last[task.ID] = task.Parkings
		t.waiting[task.ID] = &task
	}
	return t.seq
}

func (t *timer) tail(from uint64) historysim.Outcome {
	out := historysim.Outcome{Seq: t.seq}
	for _, s := range t.stays {
		if s.seq >= from {
			out.Stays = append(out.Stays, s.Stay)
		}
	}
	return out
}

// find answers a search: a cancel takes the task out.
func (t *timer) find(s historysim.Search) *historysim.Task {
	task := t.waiting[s.ID]
	if task == nil && s.Cancel {
		task = t.cancelled[s.ID]
	}
	if task == nil || s.Domain != "" && s.Domain != task.Domain {
		return nil
	}
	if s.Cancel {
		delete(t.waiting, s.ID)
		t.cancelled[s.ID] = task
	}
	return task
}

// fire takes out what is due.
func (t *timer) fire(nowMS int64) (all []*historysim.Task) {
	for _, task := range t.waiting {
		if task.DueAt <= nowMS {
			all = append(all, task)
		}
	}
	slices.SortFunc(all, func(a, b *historysim.Task) int {
		return slices.Compare(a.ID[:], b.ID[:])
	})
	for _, task := range all {
		delete(t.waiting, task.ID)
	}
	return all
}

// fireDue puts what is due into the log.
func (w *world) fireDue() {
	pause := w.dice.between(20e6, 200e6)
	if w.fault(slowTimer, 50) {
		pause = w.dice.between(1e9, 8e9)
	}
	w.after(pause, w.fireDue)
	for _, task := range w.timer.fire(w.serverMS()) {
		seq := w.appendLog(&historysim.Message{Lane: ids.Lane(task.Priority), Tasks: []historysim.Task{historysim.CopyTask(task)}})
		w.say("timer", "fires %s stay %d: %d", w.name(task.ID), task.Parkings, seq)
		w.check.fired(task)
	}
}
