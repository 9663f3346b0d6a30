package simulation

import (
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/timer/timersim"
)

// timerStore is the stream of waiting tasks. As JetStream it stores what it gets, as often as it
// gets it.
type timerStore struct {
	messages []timersim.Message
	gone     []bool
	// void counts the tasks of messages that are void.
	void map[uint64]int
	// fence is the highest epoch of the fences.
	fence uint64
	// copies are the records of each task that are not void, in order.
	copies map[ids.TaskID][]parked
	// by is the epoch that parked each stay first.
	by map[historysim.Stay]uint64
	// fired are the stays that are in the log, early those that may fire before they are due.
	fired, early map[historysim.Stay]bool
}

// parked is one record of a task.
type parked struct {
	seq      uint64
	parkings uint32
}

func newTimerStore() timerStore {
	return timerStore{
		void:   map[uint64]int{},
		copies: map[ids.TaskID][]parked{}, by: map[historysim.Stay]uint64{},
		fired: map[historysim.Stay]bool{}, early: map[historysim.Stay]bool{},
	}
}

func (t *timerStore) last() uint64 { return uint64(len(t.messages)) }

func (t *timerStore) append(atMS int64, subject string, data []byte) uint64 {
	seq := t.last() + 1
	t.messages = append(t.messages, timersim.Message{Seq: seq, AtMS: atMS, Subject: subject, Data: data})
	t.gone = append(t.gone, false)
	return seq
}

// tail are the messages from a sequence on, up to another one.
func (t *timerStore) tail(from, upTo uint64) (all []timersim.Message) {
	for i := from - 1; i < upTo; i++ {
		if !t.gone[i] {
			all = append(all, t.messages[i])
		}
	}
	return all
}

// subjects are those that have messages.
func (t *timerStore) subjects() (all []string) {
	for i, m := range t.messages {
		if !t.gone[i] && !slices.Contains(all, m.Subject) {
			all = append(all, m.Subject)
		}
	}
	return all
}

// noteEarly notes which stays a message fires before they are due.
func (t *timerStore) noteEarly(data []byte) {
	var b logv1.Batch
	if err := b.UnmarshalVT(data); err != nil {
		panic(err)
	}
	for i, id := range b.Early {
		t.early[historysim.Stay{ID: ids.TaskID(id), Parkings: b.EarlyParkings[i]}] = true
	}
}

// park stores what a history owner parks. What one parks that has been replaced is void.
func (w *world) park(p *proc, op *historysim.Op) historysim.Outcome {
	t := &w.waiting
	seq := t.append(w.serverMS(), topology.Timer(0, op.Bucket), op.Data)
	if op.Epoch < t.fence {
		w.say(p.name, "what it parks is void, the fence is at %d", t.fence)
		t.void[seq] = len(op.Tasks)
		return historysim.Outcome{Seq: seq}
	}
	for i := range op.Tasks {
		task := &op.Tasks[i]
		stay := historysim.Stay{ID: task.ID, Parkings: task.Parkings}
		t.copies[task.ID] = append(t.copies[task.ID], parked{seq, task.Parkings})
		if first, again := t.by[stay]; again && first != op.Epoch {
			w.violated("R14: %s parks stay %d of %s again", p.name, stay.Parkings, w.name(stay.ID))
		}
		t.by[stay] = op.Epoch
		if task.Redriven().Count > 0 { // also if no one knows: the owner that was asked has died
			w.check.back[task.ID] = max(w.check.back[task.ID], task.Parkings)
		}
	}
	return historysim.Outcome{Seq: seq}
}

func (w *world) raiseFence(op *historysim.Op) historysim.Outcome {
	w.waiting.fence = max(w.waiting.fence, op.Epoch)
	return historysim.Outcome{Seq: w.waiting.append(w.serverMS(), topology.TimerFence(0), op.Data)}
}

func (w *world) timerTail(from uint64) historysim.Outcome {
	out := historysim.Outcome{Seq: w.waiting.last()}
	for _, m := range w.waiting.tail(from, out.Seq) {
		out.Batches = append(out.Batches, m.Data)
	}
	return out
}

// purgeTimer removes what a timer owner says that no one needs.
func (w *world) purgeTimer(p *timerProc, purge timersim.Purge) {
	t := &w.waiting
	var gone []uint64
	for i := range t.messages[:purge.UpTo] {
		if m := &t.messages[i]; !t.gone[i] && m.Subject == purge.Subject {
			t.gone[i] = true
			gone = append(gone, m.Seq)
		}
	}
	if len(gone) == 0 {
		return
	}
	w.say(p.name, "purges %s up to %d", purge.Subject, purge.UpTo)
	for _, id := range w.order {
		for _, c := range t.copies[id] {
			if t.gone[c.seq-1] && c.seq >= gone[0] && c.seq <= gone[len(gone)-1] {
				w.check.reachable(id)
			}
		}
	}
}

// holds tells whether a stay of a task is here that has not been fired.
func (t *timerStore) holds(id ids.TaskID) bool {
	for _, c := range t.copies[id] {
		if !t.gone[c.seq-1] && !t.fired[historysim.Stay{ID: id, Parkings: c.parkings}] {
			return true
		}
	}
	return false
}

// fire stores what a timer owner fires, and its cursor, if no one else has stored one.
func (w *world) fire(p *timerProc, a timersim.Append) historysim.Result {
	switch {
	case w.refuses(logFull):
		return historysim.Refused
	case a.Expected != w.cursorSeq:
		w.say(p.name, "is refused: the cursor is at %d, not %d", w.cursorSeq, a.Expected)
		return historysim.Conflict
	}
	for _, m := range a.Messages {
		tasks := w.decoder.Tasks(m.Data)
		seq := w.appendLog(&historysim.Message{Lane: m.Lane, Place: ids.PlaceOf(m.Domain, m.Tasklist), Tasks: tasks})
		for i := range tasks {
			w.say(p.name, "fires %s stay %d: %d", w.name(tasks[i].ID), tasks[i].Parkings, seq)
			w.check.fired(&tasks[i])
		}
	}
	w.log, w.storedAt = append(w.log, nil), append(w.storedAt, w.now)
	w.cursor, w.cursorSeq = a.Cursor, uint64(len(w.log))
	return historysim.OK
}

// leftBehind is a message that no one needs and that has not been purged since, 0 if there is none.
func (w *world) leftBehind(age time.Duration) uint64 {
	t := &w.waiting
	lastOf := map[string]uint64{}
	for i := range t.messages {
		if !t.gone[i] {
			lastOf[t.messages[i].Subject] = t.messages[i].Seq
		}
	}
	for subject, seq := range lastOf {
		m := &t.messages[seq-1]
		if subject != topology.TimerFence(0) && seq < t.last() && seq <= w.checkpoint.Snapshot.TimerSeq && m.AtMS < w.serverMS()-age.Milliseconds() {
			return seq
		}
	}
	return 0
}
