package memhistory

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// filed is one task of one write of the archive.
type filed struct {
	task     *logv1.Record
	expireAt time.Time
}

func (f filed) kept() bool { return f.task != nil && time.Now().Before(f.expireAt) }

// Archive implements partition.Archive on a world.
type Archive struct {
	World *World
	// Retention is for how long a finished task is kept.
	Retention func(t *taskstate.Task) time.Duration
}

// Last implements partition.Archive.
func (a Archive) Last(context.Context) (uint64, error) {
	a.World.mu.Lock()
	defer a.World.mu.Unlock()
	return uint64(len(a.World.filed)), nil
}

// File implements partition.Archive.
func (a Archive) File(_ context.Context, tasks []*taskstate.Task, last uint64) (uint64, error) {
	w := a.World
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.write(); err != nil {
		return last, err
	}
	if last != uint64(len(w.filed)) {
		return last, partition.ErrArchiveMoved
	}
	if len(tasks) == 0 {
		return last, nil
	}
	var write []filed
	for _, t := range tasks {
		f := filed{stored(t), time.Now().Add(a.Retention(t))}
		write = append(write, f)
		w.archive = append(w.archive, f.task)
		if was := w.found[t.ID]; was.task == nil || was.task.Parkings <= t.Parkings {
			w.found[t.ID] = f
		}
	}
	w.filed = append(w.filed, write)
	return last + 1, nil
}

// stored is t as it is kept.
func stored(t *taskstate.Task) *logv1.Record {
	var enc record.Encoder
	return enc.Record(t).CloneVT() // the task goes on
}

// Tail implements partition.Archive.
func (a Archive) Tail(_ context.Context, after uint64, handle func([]replica.Stay) error) error {
	a.World.mu.Lock()
	some := slices.Clone(a.World.filed[min(after, uint64(len(a.World.filed))):])
	a.World.mu.Unlock()
	for _, write := range some {
		var all []replica.Stay
		for _, f := range write {
			if f.kept() {
				all = append(all, replica.Stay{ID: ids.TaskID(f.task.Id), Parkings: f.task.Parkings})
			}
		}
		if err := handle(all); err != nil {
			return err
		}
	}
	return nil
}

// change runs do, unless this write fails.
func (a Archive) change(do func(w *World)) error {
	a.World.mu.Lock()
	defer a.World.mu.Unlock()
	err := a.World.write()
	if err == nil {
		do(a.World)
	}
	return err
}

// EndKeys implements partition.Archive.
func (a Archive) EndKeys(_ context.Context, tasks []*taskstate.Task) error {
	return a.change(func(w *World) {
		for _, t := range tasks {
			if u := t.Unique(); w.keys[u.Seq] == (Key{t.Domain, u.Key, t.ID}) {
				delete(w.keys, u.Seq)
			}
		}
	})
}

// StoreDead implements partition.Archive.
func (a Archive) StoreDead(_ context.Context, tasks []*taskstate.Task) error {
	return a.change(func(w *World) {
		for _, t := range tasks {
			w.dead = slices.DeleteFunc(w.dead, func(l partition.Letter) bool {
				return bytes.Equal(l.Record.Id, t.ID[:]) && l.Record.Parkings < t.Parkings
			})
			if !slices.ContainsFunc(w.dead, func(l partition.Letter) bool { return bytes.Equal(l.Record.Id, t.ID[:]) }) {
				w.letters++
				w.dead = append(w.dead, partition.Letter{Record: stored(t), Seq: w.letters})
			}
		}
	})
}

// DropDead implements partition.Archive.
func (a Archive) DropDead(_ context.Context, letters []replica.Letter) error {
	return a.change(func(w *World) {
		for _, drop := range letters {
			w.dead = slices.DeleteFunc(w.dead, func(l partition.Letter) bool {
				return bytes.Equal(l.Record.Id, drop.ID[:]) && l.Record.Domain == drop.Domain && l.Record.Tasklist == drop.Tasklist && l.Seq <= drop.Seq
			})
		}
	})
}

// Reader implements partition.Reader on a world.
type Reader struct{ World *World }

// Archived implements partition.Reader.
func (r Reader) Archived(_ context.Context, wanted []replica.Search) ([]*logv1.Record, error) {
	r.World.mu.Lock()
	defer r.World.mu.Unlock()
	all := make([]*logv1.Record, len(wanted))
	for i, s := range wanted {
		if f := r.World.found[s.ID]; f.kept() && f.task.Domain == s.Domain {
			all[i] = f.task.CloneVT()
		}
	}
	return all, nil
}

// Letters implements partition.Reader.
func (r Reader) Letters(_ context.Context, wanted []replica.Search) ([]*partition.Letter, error) {
	r.World.mu.Lock()
	defer r.World.mu.Unlock()
	found := make([]*partition.Letter, len(wanted))
	for i, s := range wanted {
		for _, l := range r.World.dead {
			if bytes.Equal(l.Record.Id, s.ID[:]) && l.Record.Domain == s.Domain {
				found[i] = &partition.Letter{Record: l.Record.CloneVT(), Seq: l.Seq}
			}
		}
	}
	return found, nil
}

// Unread implements partition.Reader; a hint spares nothing in memory.
func (r Reader) Unread(_ context.Context, wanted replica.Search, _ uint64, read replica.Levels) (*logv1.Record, ids.Position, error) {
	return r.World.unread(wanted.ID, read)
}

// Finished implements partition.Reader.
func (r Reader) Finished(_ context.Context, domain string, before ids.TaskID, limit int, take func(*logv1.Record) bool) (end ids.TaskID, _ error) {
	var all []*logv1.Record
	r.World.mu.Lock()
	for _, f := range r.World.found {
		if f.kept() && f.task.Domain == domain && bytes.Compare(f.task.Id, before[:]) < 0 {
			all = append(all, f.task.CloneVT())
		}
	}
	r.World.mu.Unlock()
	slices.SortFunc(all, func(a, b *logv1.Record) int { return bytes.Compare(b.Id, a.Id) })
	for _, t := range all {
		if limit <= 0 {
			return end, nil
		}
		if take(t) {
			limit, end = limit-1, ids.TaskID(t.Id)
		}
	}
	if limit > 0 {
		end = ids.TaskID{}
	}
	return end, nil
}
