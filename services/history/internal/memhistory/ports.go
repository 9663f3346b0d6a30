package memhistory

import (
	"bytes"
	"context"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// ReadLane implements partition.Log.
func (w *World) ReadLane(ctx context.Context, lane ids.Lane, from uint64, handle func(partition.Record) error) error {
	return w.read(ctx, lane, from, 0, handle)
}

// ReadEvents implements partition.Log.
func (w *World) ReadEvents(ctx context.Context, from uint64, handle func(partition.Record) error) error {
	return w.read(ctx, laneEvent, from, 0, handle)
}

// ReplayLane implements partition.Log.
func (w *World) ReplayLane(ctx context.Context, lane ids.Lane, from, upTo uint64, handle func(partition.Record) error) error {
	if upTo == 0 {
		return nil
	}
	return w.read(ctx, lane, from, upTo, handle)
}

// ReplayEvents implements partition.Log.
func (w *World) ReplayEvents(ctx context.Context, from, upTo uint64, handle func(partition.Record) error) error {
	if upTo == 0 {
		return nil
	}
	return w.read(ctx, laneEvent, from, upTo, handle)
}

// Last implements partition.Log.
func (w *World) Last(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(len(w.log)), nil
}

// LastEvent implements partition.Log.
func (w *World) LastEvent(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.log) - 1; i >= 0; i-- {
		if w.log[i].lane == laneEvent {
			return w.log[i].rec.Seq, nil
		}
	}
	return 0, nil
}

// AppendEvents implements partition.Store.
func (w *World) AppendEvents(_ context.Context, batch []byte) error {
	w.mu.Lock()
	err := w.write()
	w.mu.Unlock()
	if err == nil {
		w.append(laneEvent, batch)
	}
	return err
}

// Park implements partition.Store.
func (w *World) Park(_ context.Context, _ int64, batch []byte) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(); err != nil {
		return 0, err
	}
	w.timer = append(w.timer, bytes.Clone(batch)) // the caller uses its buffer again
	return uint64(len(w.timer)), nil
}

// Archive implements partition.Store.
func (w *World) Archive(_ context.Context, _ string, _ int64, batch []byte) error {
	return w.file(&w.archive, batch)
}

// Bury implements partition.Store.
func (w *World) Bury(_ context.Context, _, _ string, _ ids.TaskID, batch []byte) error {
	return w.file(&w.dead, batch)
}

func (w *World) file(to *[]*logv1.Record, batch []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(); err != nil {
		return err
	}
	var b logv1.Batch
	if err := b.UnmarshalVT(batch); err != nil {
		return err
	}
	*to = append(*to, b.Tasks...)
	return nil
}

// Forget implements partition.Store.
func (w *World) Forget(_ context.Context, lanes [ids.Lanes]uint64, events uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.log {
		m := &w.log[i]
		upTo := events
		if m.lane != laneEvent {
			upTo = lanes[m.lane]
		}
		if m.rec.Seq <= upTo {
			m.gone = true
		}
	}
	return nil
}

// Tail implements partition.Timer.
func (w *World) Tail(_ context.Context, after uint64, handle func(batch []byte) error) error {
	w.mu.Lock()
	batches := append([][]byte(nil), w.timer[min(after, uint64(len(w.timer))):]...)
	w.mu.Unlock()
	for _, b := range batches {
		if err := handle(b); err != nil {
			return err
		}
	}
	return nil
}

// Cancel implements partition.Timer: of the latest stay of each task it gives the
// record, unless that stay has fired.
func (w *World) Cancel(_ context.Context, wanted []ids.TaskID) (found []*logv1.Record, fired []ids.TaskID, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(); err != nil {
		return nil, nil, err
	}
	latest := map[ids.TaskID]*logv1.Record{}
	for _, r := range w.waiting() {
		if known := latest[ids.TaskID(r.Id)]; known == nil || r.Parkings >= known.Parkings {
			latest[ids.TaskID(r.Id)] = r
		}
	}
	for _, id := range wanted {
		r, ok := latest[id]
		if !ok {
			continue
		}
		key := stay{id, r.Parkings}
		if w.fired[key] {
			fired = append(fired, id)
			continue
		}
		w.void[key] = true
		found = append(found, r)
	}
	return found, fired, nil
}

// Archived implements partition.Finder.
func (w *World) Archived(_ context.Context, id ids.TaskID) (*logv1.Record, error) {
	for _, r := range w.ArchivedTasks() {
		if ids.TaskID(r.Id) == id {
			return r, nil
		}
	}
	return nil, nil
}

// Unread implements partition.Finder.
func (w *World) Unread(_ context.Context, id ids.TaskID, read [ids.Lanes]uint64) (*logv1.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.log {
		if m.lane == laneEvent || m.gone || m.rec.Seq <= read[m.lane] {
			continue
		}
		var b logv1.Batch
		if err := b.UnmarshalVT(m.rec.Data); err != nil {
			return nil, err
		}
		for _, t := range b.Tasks {
			if ids.TaskID(t.Id) == id {
				return t, nil
			}
		}
	}
	return nil, nil
}

// Recent implements partition.Finder.
func (w *World) Recent(_ context.Context, domain string, limit int) ([]*logv1.Record, error) {
	var out []*logv1.Record
	all := w.ArchivedTasks()
	for i := len(all) - 1; i >= 0 && len(out) < limit; i-- {
		if all[i].Domain == domain {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// Backlog implements partition.Finder.
func (w *World) Backlog(_ context.Context, lane ids.Lane, read uint64) (n uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.log {
		if m.lane == lane && m.rec.Seq > read {
			n++
		}
	}
	return n, nil
}

// Load implements partition.Checkpoints.
func (w *World) Load(context.Context) (*logv1.Checkpoint, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.revision == 0 {
		return nil, 0, nil
	}
	cp := &logv1.Checkpoint{}
	return cp, w.revision, cp.UnmarshalVT(w.checkpoint)
}

// Save implements partition.Checkpoints.
func (w *World) Save(_ context.Context, cp *logv1.Checkpoint, revision uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if revision != w.revision {
		return 0, partition.ErrTakenOver
	}
	data, err := cp.MarshalVT()
	if err != nil {
		return 0, err
	}
	w.checkpoint, w.revision = data, revision+1
	return w.revision, nil
}

// Publish implements partition.Wire.
func (w *World) Publish(subject string, data []byte) { w.published(subject, data) }

// Answer implements partition.Wire.
func (w *World) Answer(subject string, data []byte, bounced func()) {
	if !w.answered(subject, data) {
		go bounced()
	}
}
