package memhistory

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/services/history/internal/turn"
)

// laneOf is the lane of a source, laneEvent for the events.
func laneOf(s partition.Source) ids.Lane {
	if s == partition.SourceEvents {
		return laneEvent
	}
	return ids.Lane(s)
}

// Read implements partition.Log.
func (w *World) Read(ctx context.Context, s partition.Source, at ids.Place, from, upTo uint64, handle func(partition.Record) error) error {
	return w.read(ctx, replica.Queue{Lane: laneOf(s), Place: at}, from, upTo, handle)
}

// Ends implements partition.Log.
func (w *World) Ends(context.Context) (last uint64, of [partition.Sources]uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range of {
		for i := len(w.log) - 1; i >= 0 && of[s] == 0; i-- {
			if m := w.log[i]; m.lane == laneOf(partition.Source(s)) && !m.gone {
				of[s] = m.rec.Seq
			}
		}
	}
	return uint64(len(w.log)), of, nil
}

// LastMembers implements partition.Log.
func (w *World) LastMembers(_ context.Context, domain, batch string) (all []ids.Position, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var last [ids.Lanes]uint64
	for _, m := range w.log {
		var tasks logv1.Batch
		if m.gone || m.lane >= ids.Lanes || tasks.UnmarshalVT(m.rec.Data) != nil {
			continue
		}
		if slices.ContainsFunc(tasks.Tasks, func(r *logv1.Record) bool { return r.Domain == domain && r.BatchId == batch }) {
			last[m.lane] = m.rec.Seq
		}
	}
	for lane, seq := range last {
		if seq > 0 {
			all = append(all, ids.NewPosition(seq, ids.Lane(lane)))
		}
	}
	return all, nil
}

// Append implements partition.Log.
func (w *World) Append(ctx context.Context, data []byte, after uint64) (uint64, error) {
	last, err := w.LastTurn(ctx)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(); err != nil {
		return 0, err
	}
	if last.Seq != after {
		return 0, turn.ErrWrongTurn
	}
	t, err := record.ReadTurn(data)
	if err != nil {
		return 0, err
	}
	w.requests = slices.DeleteFunc(w.requests, func(asked []byte) bool {
		return slices.ContainsFunc(t.Batches, func(batch []byte) bool { return bytes.HasPrefix(batch, asked) }) // owners add to it
	})
	return appendTo(w, replica.Queue{Lane: laneEvent}, data), nil
}

// LastTurn implements partition.Log.
func (w *World) LastTurn(context.Context) (partition.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.log) - 1; i >= 0; i-- {
		if m := w.log[i]; m.lane == laneEvent && !m.gone {
			return m.rec, nil
		}
	}
	return partition.Record{}, nil
}

// Listen implements partition.Log.
func (w *World) Listen(ctx context.Context, one func(batch []byte)) error {
	var mu sync.Mutex
	take := func(batch []byte) {
		mu.Lock()
		defer mu.Unlock()
		one(batch)
	}
	mu.Lock()
	w.mu.Lock()
	w.listened++
	number := w.listened
	w.listeners[number] = take
	waiting := slices.Clone(w.requests) // as of then: what is sent from now on, take gets from its sender, behind these
	w.mu.Unlock()
	for _, batch := range waiting {
		one(batch)
	}
	mu.Unlock()
	again := time.NewTicker(1013 * time.Millisecond) // not at the moment of what tests send
	defer again.Stop()
	for {
		select {
		case <-again.C:
			w.mu.Lock()
			waiting = slices.Clone(w.requests)
			w.mu.Unlock()
			for _, batch := range waiting {
				take(batch)
			}
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.listeners, number)
			return nil
		}
	}
}

// Forget implements partition.Log.
func (w *World) Forget(_ context.Context, levels replica.Levels) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.log {
		m := &w.log[i]
		if m.gone {
			continue
		}
		upTo := levels.Events
		if m.lane != laneEvent {
			upTo = levels.PurgeTo(replica.Queue{Lane: m.lane, Place: m.place})
		}
		if m.rec.Seq <= upTo {
			m.gone = true
		}
	}
	return nil
}

// Park implements partition.TimerStore.
func (w *World) Park(_ context.Context, _ int64, batch []byte) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(); err != nil {
		return 0, err
	}
	w.timer = append(w.timer, bytes.Clone(batch)) // the caller uses its buffer again
	return uint64(len(w.timer)), nil
}

// Fence implements partition.TimerStore.
func (w *World) Fence(ctx context.Context, batch []byte) error {
	_, err := w.Park(ctx, 0, batch)
	return err
}

// Fenced implements partition.TimerStore.
func (w *World) Fenced(context.Context) (epoch uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, data := range w.timer {
		var b logv1.Batch
		if err := b.UnmarshalVT(data); err != nil {
			return 0, err
		}
		if b.Fence {
			epoch = b.Epoch
		}
	}
	return epoch, nil
}

// Last implements partition.TimerStore.
func (w *World) Last(context.Context) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(len(w.timer)), nil
}

// Tail implements partition.TimerStore.
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

// FireEarly implements partition.Timer: what waits goes into the log at once.
func (w *World) FireEarly(_ context.Context, wanted []replica.Search) (partition.Early, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	early := partition.Early{Coming: map[ids.TaskID]bool{}, Fired: map[ids.TaskID]uint64{}}
	if err := w.write(); err != nil {
		return early, err
	}
	for _, s := range wanted {
		r := w.latest(s.ID)
		if r == nil || s.Domain != "" && s.Domain != r.Domain {
			continue
		}
		key := stay{s.ID, r.Parkings}
		if w.fired[key] {
			early.Fired[s.ID] = 0
			continue
		}
		w.fired[key], early.Coming[s.ID] = true, true
		data, err := (&logv1.Batch{Tasks: []*logv1.Record{r}}).MarshalVT()
		if err != nil {
			return early, err
		}
		appendTo(w, replica.Queue{Lane: ids.LaneLater, Place: ids.PlaceOf(r.Domain, "")}, data)
	}
	return early, nil
}

// Locate implements partition.Timer.
func (w *World) Locate(_ context.Context, id ids.TaskID) (*logv1.Record, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.latest(id)
	if r == nil || w.fired[stay{id, r.Parkings}] {
		return nil, 0, nil
	}
	return r, 0, nil
}

// latest is the record of a task's latest stay.
func (w *World) latest(id ids.TaskID) (latest *logv1.Record) {
	for _, r := range w.waiting() {
		if ids.TaskID(r.Id) == id && (latest == nil || r.Parkings >= latest.Parkings) {
			latest = r
		}
	}
	return latest
}

// unread finds a task behind the read levels.
func (w *World) unread(id ids.TaskID, read replica.Levels) (*logv1.Record, ids.Position, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.log {
		if m.lane >= ids.Lanes || m.gone || m.rec.Seq <= read.Of(replica.Queue{Lane: m.lane, Place: m.place}) {
			continue
		}
		var b logv1.Batch
		if err := b.UnmarshalVT(m.rec.Data); err != nil {
			return nil, 0, err
		}
		for _, t := range b.Tasks {
			if ids.TaskID(t.Id) == id && !record.Late(t, m.rec.Time) {
				record.Date(t, m.rec.Time)
				return t, ids.NewPosition(m.rec.Seq, m.lane), nil
			}
		}
	}
	return nil, 0, nil
}

// Backlog implements partition.Log.
func (w *World) Backlog(_ context.Context, of replica.Queue, read uint64) (n uint64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.log {
		if m.in(of) && m.rec.Seq > read && !m.gone {
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

// Snapshots keeps the snapshots of a World.
type Snapshots struct{ World *World }

// Save implements partition.Snapshots.
func (s Snapshots) Save(_ context.Context, name partition.SnapshotName, chunks [][]byte) error {
	s.World.mu.Lock()
	defer s.World.mu.Unlock()
	if err := s.World.write(); err != nil {
		return err
	}
	stored := s.World.snapshots[name]
	for i, chunk := range chunks {
		if i == len(stored) {
			stored = append(stored, nil)
		}
		stored[i] = bytes.Clone(chunk)
	}
	s.World.snapshots[name] = stored
	return nil
}

// Load implements partition.Snapshots.
func (s Snapshots) Load(_ context.Context, name partition.SnapshotName, count int) ([][]byte, error) {
	s.World.mu.Lock()
	defer s.World.mu.Unlock()
	if stored := s.World.snapshots[name]; len(stored) == count {
		return slices.Clone(stored), nil
	}
	return nil, partition.ErrNoSnapshot
}

// Forget implements partition.Snapshots.
func (s Snapshots) Forget(_ context.Context, keep ...partition.SnapshotName) error {
	s.World.mu.Lock()
	defer s.World.mu.Unlock()
	maps.DeleteFunc(s.World.snapshots, func(name partition.SnapshotName, _ [][]byte) bool { return name.Superseded(keep) })
	return nil
}

// Publish implements partition.Wire.
func (w *World) Publish(subject string, data []byte) { w.published(subject, data) }

// Store implements partition.Wire.
func (w *World) Store(subject string, data []byte) { w.published(subject, data) }

// Answer implements partition.Wire.
func (w *World) Answer(subject string, data []byte, bounced func()) {
	if !w.answered(subject, data) {
		go bounced()
	}
}
