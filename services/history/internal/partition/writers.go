package partition

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
)

// writers carry the effects out that are stored, each in a goroutine of its own, one job of a kind at a time.
type writers struct{ *base }

// The waits between repeats of a write that failed.
const (
	writeRetryMin = 50 * time.Millisecond
	writeRetryMax = 2 * time.Second
)

// persist repeats a write until it is stored, outside the lease not at all. It returns an error that wraps ErrRefused
// if the write can never succeed, ErrTakenOver or ErrUnreadable, or ctx's.
func (w writers) persist(ctx context.Context, what string, write func(context.Context) error) error {
	delays, complained := backoff.New(writeRetryMin, writeRetryMax), false
	for {
		err, began := errNoLease, time.Now()
		if w.leased() {
			err = write(ctx)
		}
		if err == nil {
			w.Metrics.appended(what, time.Since(began))
		}
		switch {
		case err == nil && complained:
			w.Logger.Info("history can write again", "partition", w.Partition, "operation", what)
			return nil
		case err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrTakenOver) || errors.Is(err, ErrUnreadable):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		w.Metrics.WriteRetries.Add(1)
		wait := delays.Next()
		if !complained && wait >= writeRetryMin*4 {
			complained = true
			w.Logger.Warn("history cannot write, trying again", "partition", w.Partition, "operation", what, "error", err)
		}
		if !backoff.Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

var errNoLease = errors.New("the checkpoint, and the lease with it, is not saved")

// setApart puts into the quarantine what its store does not take; then it counts as stored. It returns an error only
// when ctx has ended.
func (w writers) setApart(ctx context.Context, subject string, data []byte, reason error) error {
	var refused *RefusedTaskError
	item := Quarantined{Reason: reason.Error(), Subject: subject, Data: data}
	if errors.As(reason, &refused) {
		item.KeepS = refused.KeepS
	}
	w.Logger.Error("a record that its store refuses was put into quarantine",
		"partition", w.Partition, "subject", subject, "bytes", len(data), "error", reason)
	return w.persist(ctx, writeQuarantine, func(ctx context.Context) error { return w.Quarantine(ctx, item) })
}

// archive files ended tasks by compare-and-set. If something came first, it is read what, and the rest is filed. They
// are not changed any more, so it may read them.
func (w writers) archive(job []*replica.Entry, last uint64) {
	ctx := w.work
	tasks := make([]*taskstate.Task, 0, len(job))
	var dead, unique []*taskstate.Task
	for _, e := range job {
		tasks = append(tasks, &e.Task)
		if e.State == taskstate.Dead {
			dead = append(dead, &e.Task)
		}
		if e.Unique() != nil {
			unique = append(unique, &e.Task)
		}
	}
	// Before they are filed: what a takeover finds in the archive it does not write again.
	key := func(t *taskstate.Task) string {
		return topology.UniqueKey(w.Partition, t.Domain, topology.UniqueWithin(t.OrderKey(), t.Unique().Key))
	}
	if w.each(ctx, key, unique, w.Archive.EndKeys) != nil {
		return
	}
	letter := func(t *taskstate.Task) string { return topology.Dead(t.Domain, t.Tasklist, t.ID) }
	err := w.each(ctx, letter, dead, w.Archive.StoreDead)
	if err != nil {
		return
	}
	stored := replica.Stored{Kind: replica.JobArchive, Seq: last}
	from, sure := last, true
	filed := func(t *taskstate.Task) string { return topology.ArchiveOf(w.Partition, t.Domain) }
	err = w.each(ctx, filed, tasks, func(ctx context.Context, tasks []*taskstate.Task) error {
		missing := tasks
		if !sure {
			if missing, err = w.missing(ctx, job, tasks, from, &stored); err != nil {
				return err
			}
		}
		if len(missing) > 0 {
			stored.Seq, err = w.Archive.File(ctx, missing, stored.Seq)
			sure = err == nil // what failed may be stored, in part or by another owner
		}
		return err
	})
	if err == nil {
		w.report(stored)
	}
}

// missing are the tasks that were not filed after a sequence. It notes in stored where the archive ends, and what of
// others is there.
func (w writers) missing(ctx context.Context, job []*replica.Entry, tasks []*taskstate.Task, from uint64, stored *replica.Stored) ([]*taskstate.Task, error) {
	last, err := w.Archive.Last(ctx)
	if err != nil {
		return nil, err
	}
	there := make(map[replica.Stay]bool)
	err = w.Archive.Tail(ctx, from, func(all []replica.Stay) error {
		for _, stay := range all {
			there[stay] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var missing []*taskstate.Task
	for _, t := range tasks {
		if !there[replica.Stay{ID: t.ID, Parkings: t.Parkings}] {
			missing = append(missing, t)
		}
	}
	for _, e := range job {
		delete(there, replica.Stay{ID: e.ID, Parkings: e.Parkings})
	}
	stored.Seq, stored.Others = last, slices.Collect(maps.Keys(there))
	return missing, nil
}

// each repeats a write of tasks until all are stored. One that can never be is set apart for the subject that it
// belongs to, and the others go on.
func (w writers) each(ctx context.Context, subject func(*taskstate.Task) string, tasks []*taskstate.Task, write func(context.Context, []*taskstate.Task) error) error {
	for len(tasks) > 0 {
		err := w.persist(ctx, writeArchive, func(ctx context.Context) error { return write(ctx, tasks) })
		var refused *RefusedTaskError
		if !errors.As(err, &refused) {
			return err
		}
		kept := tasks[:0:0]
		for _, t := range tasks {
			if t.ID != refused.Task {
				kept = append(kept, t)
				continue
			}
			var enc record.Encoder
			if err := w.setApart(ctx, subject(t), enc.AppendTask(nil, t), refused); err != nil {
				return err
			}
		}
		tasks = kept
	}
	return nil
}

var errOvertaken = errors.New("a newer owner has fenced the timer store")

// dropSpent deletes the dead letters of tasks that were parked just now. Where a newer owner has fenced the timer store, that may be void: then it returns
// errOvertaken, and the letters stay. The newer owner brings the tasks back, or finds that they are; this one does not know, and says no more of them.
func (w writers) dropSpent(ctx context.Context, letters []replica.Letter) error {
	if len(letters) == 0 {
		return nil
	}
	var fenced uint64
	err := w.persist(ctx, "look at the fence of the timer store", func(ctx context.Context) (err error) {
		fenced, err = w.TimerStore.Fenced(ctx)
		return err
	})
	if err == nil && fenced > w.epoch {
		err = errOvertaken
	}
	if err != nil {
		return err
	}
	return w.dropLetters(ctx, letters)
}

// dropLetters deletes the dead letters of tasks that are safe elsewhere. It returns an error only when ctx has ended.
func (w writers) dropLetters(ctx context.Context, letters []replica.Letter) error {
	if len(letters) == 0 {
		return nil
	}
	return w.persist(ctx, writeLetters, func(ctx context.Context) error { return w.Archive.DropDead(ctx, letters) })
}

// batchBytesMax bounds one stored batch; a larger task goes alone.
const batchBytesMax = 400 << 10

// park moves tasks into the timer store, in messages by bucket.
func (w writers) park(job []*replica.Entry, letters []replica.Letter) {
	ctx := w.work
	var enc record.Encoder
	open := make(map[int64][]byte)
	var order []int64
	var last uint64
	store := func(bucket int64) error {
		data := record.AppendStamp(open[bucket], w.LogVersion(), w.epoch)
		open[bucket] = nil
		err := w.persist(ctx, writeTimerStore, func(ctx context.Context) error {
			seq, err := w.TimerStore.Park(ctx, bucket, data)
			last = max(last, seq)
			return err
		})
		if errors.Is(err, ErrRefused) {
			err = w.setApart(ctx, topology.Timer(w.Partition, bucket), data, err)
		}
		return err
	}
	for _, e := range job {
		bucket := topology.TimerBucket(e.DueAt)
		data, known := open[bucket]
		if !known {
			order = append(order, bucket)
		}
		if len(data) > 0 && len(data)+enc.Size(&e.Task) > batchBytesMax {
			if store(bucket) != nil {
				return
			}
		}
		open[bucket] = enc.AppendTask(open[bucket], &e.Task)
	}
	for _, bucket := range order {
		if len(open[bucket]) > 0 && store(bucket) != nil {
			return
		}
	}
	if w.dropSpent(ctx, letters) != nil {
		return
	}
	w.report(replica.Stored{Kind: replica.JobPark, Seq: last})
}

// snapshot stores a copy of the state.
func (w writers) snapshot(s *replica.Snapshot) {
	var enc record.Encoder
	chunks, ref := enc.Snapshot(s, w.LogVersion(), w.epoch)
	err := w.persist(w.work, writeSnapshot, func(ctx context.Context) error {
		return w.Snapshots.Save(ctx, SnapshotName{ref.Epoch, ref.Seq}, chunks)
	})
	if err == nil {
		w.Metrics.Snapshots.Add(1)
		w.report(replica.Stored{Kind: replica.JobSnapshot, Snapshot: ref})
	}
}

// forget deletes the snapshots before one that the checkpoint names. A snapshot that was not deleted goes with the next ones.
func (w writers) forget(ref replica.SnapshotRef) {
	ctx, cancel := context.WithTimeout(w.work, time.Minute)
	defer cancel()
	if err := w.Snapshots.Forget(ctx, SnapshotName{ref.Epoch, ref.Seq}); err != nil && w.work.Err() == nil {
		w.Logger.Warn("old snapshots could not be deleted, trying again with the next one", "partition", w.Partition, "error", err)
	}
}

// purge lets the log forget. A purge that fails comes again with the next one.
func (w writers) purge(levels replica.Levels) {
	ctx, cancel := context.WithTimeout(w.work, time.Minute)
	defer cancel()
	err := w.Log.Forget(ctx, levels)
	if err != nil && !errors.Is(err, ErrMore) && w.work.Err() == nil {
		w.Logger.Warn("finished messages could not be purged from the log, trying again", "partition", w.Partition, "error", err)
	}
	w.report(replica.Purged{Again: err != nil})
}
