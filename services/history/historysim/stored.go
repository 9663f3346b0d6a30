package historysim

import (
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// logVersion is the version of what it writes.
const logVersion = 1

// Decoder reads the encoded batches of the timer store and of what the timer fires.
type Decoder struct{ records *record.Decoder }

// NewDecoder makes a decoder.
func NewDecoder() Decoder { return Decoder{record.NewDecoder()} }

// Tasks are those of a batch. One that cannot be read panics: all are written by historysim.
func (d Decoder) Tasks(batch []byte) []Task {
	entries, bad, err := d.records.Submits(batch, time.Time{}) // none of these is void
	if err != nil || len(bad) > 0 {
		panic("historysim: a batch that cannot be read")
	}
	all := make([]Task, len(entries))
	for i, e := range entries {
		all[i] = e.Task
	}
	return all
}

// Task is one encoded record.
func (d Decoder) Task(data []byte) *Task {
	var r logv1.Record
	if err := r.UnmarshalVT(data); err != nil {
		panic(err)
	}
	e, err := d.records.Entry(&r)
	if err != nil {
		panic(err)
	}
	return &e.Task
}

// TasksOf are the tasks that a snapshot has; none if it is the zero one.
func TasksOf(chunks [][]byte, ref *SnapshotRef) (all []ids.TaskID) {
	if ref.Seq == 0 {
		return nil
	}
	s, err := record.NewDecoder().Snapshot(chunks, ref)
	if err != nil {
		panic(err)
	}
	for i := range s.Tasks {
		all = append(all, s.Tasks[i].ID)
	}
	return all
}

// fence is an encoded fence.
func fence(epoch uint64) []byte {
	data, err := (&logv1.Batch{Fence: true, Epoch: epoch, LogVersion: logVersion}).MarshalVT()
	if err != nil {
		panic(err)
	}
	return data
}

// parkedTail is what the tail of the timer store holds for an owner, see partition's takeover.
func parkedTail(batches [][]byte, epoch, own uint64) map[Stay]bool {
	tail := replica.NewParkedTail(epoch, own)
	for _, data := range batches {
		var b logv1.Batch
		if err := b.UnmarshalVT(data); err != nil {
			panic(err)
		}
		record.Parked(tail, &b)
	}
	return tail.Stays
}

// copyOf is a task that a store has found; nil = it has not.
func copyOf(t *Task) *Task {
	if t == nil {
		return nil
	}
	c := CopyTask(t)
	return &c
}
