package firing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/batch"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/parallel"
)

// farTask is a task that is not in memory, as its record is read again.
type farTask struct {
	id     ids.TaskID
	places []far.Place
	// all are the records of the task at places, records the same encoded.
	all     []due.Reread
	records [][]byte
}

// farReader reads tasks that are not in memory.
type farReader struct{ *Owner }

// read reads the records of those tasks that are not in memory, and of no others.
func (o farReader) read(ctx context.Context, wanted []due.Wanted) (tasks []farTask, err error) {
	err = o.ask(ctx, func() {
		for _, w := range wanted {
			if places := o.table.Far().Places(w.ID); len(places) > 0 {
				tasks = append(tasks, farTask{id: w.ID, places: places})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return tasks, o.places(ctx, tasks)
}

// wentFar are those tasks that were in memory when the others were read, and are no more.
func (o farReader) wentFar(wanted []due.Wanted, read []farTask) (all []ids.TaskID) {
	known := make(map[ids.TaskID]bool, len(read))
	for i := range read {
		known[read[i].id] = true
	}
	for _, w := range wanted {
		if !known[w.ID] && len(o.table.Far().Places(w.ID)) > 0 {
			all = append(all, w.ID)
		}
	}
	return all
}

// places reads the records of tasks, each message once.
func (o farReader) places(ctx context.Context, tasks []farTask) error {
	type message struct {
		body  *batch.Message
		tasks []due.Task
	}
	messages := map[uint64]message{}
	var seqs []uint64
	for _, t := range tasks {
		for _, at := range t.places {
			if _, known := messages[at.Seq]; !known {
				messages[at.Seq] = message{}
				seqs = append(seqs, at.Seq)
			}
		}
	}
	var mu sync.Mutex // of messages
	err := parallel.Each(ctx, len(seqs), o.Config.FetchParallel, func(ctx context.Context, i int) error {
		data, err := o.Store.Get(ctx, seqs[i])
		if errors.Is(err, ErrGone) {
			return nil
		}
		if err != nil {
			return err
		}
		body, index, err := batch.Decode(data)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		messages[seqs[i]] = message{body, index.Tasks}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read waiting tasks: %w", err)
	}
	for i := range tasks {
		t := &tasks[i]
		for _, at := range t.places {
			if m := messages[at.Seq]; int(at.Index) < len(m.tasks) && m.tasks[at.Index].ID == t.id {
				t.all = append(t.all, due.Reread{Place: at, Task: m.tasks[at.Index]})
				t.records = append(t.records, m.body.Record(at.Index))
			}
		}
	}
	return nil
}

// locate is the record of a task that waits and is not in memory; nil = there is none.
func (o farReader) locate(ctx context.Context, id ids.TaskID, domain string) (record []byte, err error) {
	tasks, err := o.read(ctx, []due.Wanted{{ID: id}})
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	var picked due.Reread
	var ok bool
	if err := o.ask(ctx, func() { picked, ok = o.table.Far().Waits(tasks[0].all, domain) }); err != nil {
		return nil, err
	}
	for i := range tasks[0].all {
		if ok && tasks[0].all[i].Place == picked.Place {
			return bytes.Clone(tasks[0].records[i]), nil
		}
	}
	return nil, nil
}

// bringEarly brings those tasks into memory that a message fires early, for as long as it takes: the cursor would speak of them otherwise. It is for messages
// that another owner has stored: this one has brought its own before.
func (o farReader) bringEarly(ctx context.Context, m *due.Message) error {
	needed := o.table.EarlyFar(m)
	if len(needed) == 0 {
		return nil
	}
	tasks := make([]farTask, len(needed))
	for i, r := range needed {
		tasks[i] = farTask{id: r.ID, places: o.table.Far().Places(r.ID)}
	}
	for wait := backoff.New(retryFirst, retryLast); ; {
		err := o.places(ctx, tasks)
		if err == nil {
			break
		}
		o.Logger.Warn("tasks that fire early cannot be read, trying again", "sequence", m.Seq, "error", err)
		if !wait.Sleep(ctx) {
			return ctx.Err()
		}
	}
	lost := false
	for i := range tasks {
		o.table.Bring(tasks[i].all)
		lost = lost || len(tasks[i].all) == 0
	}
	if lost {
		o.Logger.Error("tasks that fire early are no longer in the timer store", "sequence", m.Seq)
		o.table.Far().Lose(m)
	}
	return nil
}

// approach begins to bring buckets into memory if it is time.
func (o farReader) approach(ctx context.Context) {
	buckets, upTo := o.table.Approach(o.Now().UnixMilli())
	if len(buckets) == 0 {
		return
	}
	o.loads.Go(func() {
		began := time.Now()
		for wait := backoff.New(retryFirst, retryLast); ; {
			err := o.loadBuckets(ctx, buckets, upTo)
			if err == nil {
				o.Gauges.Loaded(time.Since(began))
				return
			}
			if ctx.Err() != nil || errors.Is(err, ErrNotServing) || !wait.Sleep(ctx) {
				return
			}
			o.Logger.Warn("tasks that come near cannot be read, trying again", "bucket", buckets[0], "error", err)
		}
	})
}

// loadBuckets reads buckets, and hands their messages to the loop, some at a time.
func (o farReader) loadBuckets(ctx context.Context, buckets []int64, upTo uint64) error {
	var some []due.Message
	tasks, lost := 0, 0
	handOver := func(last bool) error {
		return o.ask(ctx, func() {
			for i := range some {
				o.table.LoadBucket(some[i])
			}
			if last {
				lost = o.table.Loaded()
			}
		})
	}
	err := o.Store.ReadBuckets(ctx, buckets, 1, upTo, func(m Stored) error {
		_, index, _ := Decode(m) // without an error, or it is in the quarantine
		some = append(some, index.Message)
		if tasks += len(index.Tasks); tasks < loadTasks && len(some) < loadTasks {
			return nil
		}
		err := handOver(false)
		some, tasks = nil, 0
		return err
	})
	if err != nil {
		return err
	}
	if err = handOver(true); err == nil && lost > 0 {
		o.Logger.Error("waiting tasks are no longer in the timer store: another owner has fired them, or the store has lost them", "tasks", lost, "bucket", buckets[0])
	}
	return err
}
