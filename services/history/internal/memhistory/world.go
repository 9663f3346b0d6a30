// Package memhistory is the partition's ports in memory: a log, a timer store, an archive and a checkpoint that outlive
// any owner, for tests and simulation.
//
// Owns: the same contracts as package natshistory, without a server. Never does: lose anything stored; a test cuts the
// wire instead.
// On failure: FailWrites makes every write fail until it is reset. The tests of natshistory exercise both alike.
package memhistory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
)

// message is one stored message; lane is laneEvent for events, place where a submit is filed.
type message struct {
	lane  ids.Lane
	place ids.Place
	rec   partition.Record
	gone  bool
}

// Messages that are no submits.
const (
	laneKey   ids.Lane = 254
	laneEvent ids.Lane = 255
)

// World is what survives an owner.
type World struct {
	mu         sync.Mutex
	grown      chan struct{}
	log        []message
	timer      [][]byte
	fired      map[stay]bool
	archive    []*logv1.Record
	filed      [][]filed // the archive by sequence
	found      map[ids.TaskID]filed
	dead       []partition.Letter
	letters    uint64
	keys       map[uint64]Key // those that a task has, by where the log says it
	checkpoint []byte
	snapshots  map[partition.SnapshotName][][]byte
	revision   uint64
	failWrites bool
	// requests are what services asked of the owners and no turn has; listeners are the owners that listen.
	requests  [][]byte
	listeners map[int]func(batch []byte)
	listened  int
	published func(subject string, data []byte)
	answered  func(subject string, data []byte) bool
}

// NewWorld makes an empty one. published gets hints and answers; answered gets the answers that grant attempts and
// tells whether somebody listened.
func NewWorld(published func(subject string, data []byte), answered func(subject string, data []byte) bool) *World {
	return &World{
		grown: make(chan struct{}), fired: map[stay]bool{}, found: map[ids.TaskID]filed{}, keys: map[uint64]Key{}, listeners: map[int]func([]byte){},
		snapshots: map[partition.SnapshotName][][]byte{}, published: published, answered: answered,
	}
}

// ErrDown is what writes return while they are made to fail.
var ErrDown = errors.New("the store is down")

// FailWrites makes writes fail, or work again.
func (w *World) FailWrites(fail bool) {
	w.mu.Lock()
	w.failWrites = fail
	w.mu.Unlock()
}

// AppendSubmit appends a submit batch that domains share, as a frontend does.
func (w *World) AppendSubmit(lane ids.Lane, batch []byte) uint64 {
	return w.append(replica.Queue{Lane: lane}, batch)
}

// AppendSubmitOf appends a submit batch that is filed at a place, as a frontend or the timer does.
func (w *World) AppendSubmitOf(at replica.Queue, batch []byte) uint64 { return w.append(at, batch) }

// SendEvents sends an event batch of another service to every owner, and again each second, until a turn has it.
func (w *World) SendEvents(batch []byte) {
	w.mu.Lock()
	w.requests = append(w.requests, batch)
	listeners := slices.Collect(maps.Values(w.listeners))
	w.mu.Unlock()
	for _, take := range listeners {
		take(batch)
	}
}

// AppendTurn appends a turn as another owner does.
func (w *World) AppendTurn(turn []byte) uint64 { return w.append(replica.Queue{Lane: laneEvent}, turn) }

// subjectOf is where a message is filed, in partition 0.
func subjectOf(at replica.Queue) string {
	switch {
	case at.Lane == laneEvent:
		return topology.Event(0)
	case at.Lane == laneKey:
		return topology.UniqueKey(0, "simulated", "any")
	case at.Place == "":
		return topology.SubmitShared(0, at.Lane)
	case at.Place.Tasklist() == "":
		return topology.SubmitOf(0, at.Lane, at.Place.Domain())
	}
	return topology.SubmitsAt(0, at.Lane, at.Place)
}

func (w *World) append(at replica.Queue, data []byte) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return appendTo(w, at, data)
}

// appendTo appends a message to the log of w, which is locked.
func appendTo(w *World, at replica.Queue, data []byte) uint64 {
	seq := uint64(len(w.log) + 1)
	w.log = append(w.log, message{lane: at.Lane, place: at.Place, rec: partition.Record{Subject: subjectOf(at), Seq: seq, Time: time.Now(), Data: data}})
	close(w.grown)
	w.grown = make(chan struct{})
	return seq
}

// Key is the unique key of a task that has not ended.
type Key struct {
	Domain, Key string
	Task        ids.TaskID
}

// AppendKey appends that a task has a unique key, as a frontend does, in front of its submit.
func (w *World) AppendKey(k Key) {
	seq := w.append(replica.Queue{Lane: laneKey}, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[seq] = k
	w.log[seq-1].gone = true // no reader has it
}

// Keys are the unique keys that tasks have.
func (w *World) Keys() []Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.keys))
}

// ArchivedTasks returns every record ever archived.
func (w *World) ArchivedTasks() []*logv1.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*logv1.Record(nil), w.archive...)
}

// DeadTasks returns the dead letters.
func (w *World) DeadTasks() []*logv1.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*logv1.Record
	for _, l := range w.dead {
		all = append(all, l.Record)
	}
	return all
}

// stay names one stay of a task in the timer store.
type stay struct {
	id       ids.TaskID
	parkings uint32
}

// Fire returns the waiting tasks that are due at now (Unix ms), each stay once, as the timer service would append them
// to the log.
func (w *World) Fire(now int64) []*logv1.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due []*logv1.Record
	for _, r := range w.waiting() {
		key := stay{ids.TaskID(r.Id), r.Parkings}
		if r.DueAtMs > now || w.fired[key] {
			continue
		}
		w.fired[key] = true
		due = append(due, r)
	}
	return due
}

// waiting decodes the timer store.
func (w *World) waiting() []*logv1.Record {
	var all []*logv1.Record
	for _, data := range w.timer {
		var b logv1.Batch
		if err := b.UnmarshalVT(data); err != nil {
			panic(err) // an owner wrote it
		}
		all = append(all, b.Tasks...)
	}
	return all
}

// LogLength is how many messages of the log are not purged.
func (w *World) LogLength() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.log {
		if !m.gone {
			n++
		}
	}
	return n
}

// Checkpoint returns the saved checkpoint.
func (w *World) Checkpoint() *logv1.Checkpoint {
	cp, _, err := w.Load(context.Background())
	if err != nil {
		panic(err) // it was written by Save
	}
	return cp
}

func (w *World) write() error {
	if w.failWrites {
		return ErrDown
	}
	return nil
}

// read hands out messages of a lane that are filed at a place, or in a part of it, from a sequence; upTo 0 = forever.
func (w *World) read(ctx context.Context, of replica.Queue, from, upTo uint64, handle func(partition.Record) error) error {
	for next := max(from, 1); ; {
		w.mu.Lock()
		var batch []partition.Record
		for ; next <= uint64(len(w.log)) && (upTo == 0 || next <= upTo); next++ {
			if m := w.log[next-1]; m.in(of) && !m.gone {
				batch = append(batch, m.rec)
			}
		}
		grown := w.grown
		w.mu.Unlock()
		for _, r := range batch {
			if ctx.Err() != nil {
				return nil
			}
			if err := handle(r); err != nil {
				return err
			}
		}
		if upTo != 0 {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		}
	}
}

// in tells whether m is filed at a place of a lane, or in a part of it.
func (m *message) in(of replica.Queue) bool {
	return m.lane == of.Lane && of.Place.Has(m.place)
}
