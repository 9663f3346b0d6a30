package partition

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
)

// ask runs fn in the owner's goroutine and waits for it.
func (o *Owner) ask(ctx context.Context, fn func()) error {
	done := make(chan struct{})
	if !o.post(ctx, func() { fn(); close(done) }) {
		return fault.New(fault.Unavailable, "the owner of partition %d is busy", o.Partition)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "the owner of partition %d is leaving", o.Partition)
	}
}

// Get answers by reply, at once or when the task is finished or the wait over. A task
// that is not in memory is looked for in the archive and in what is not read yet.
func (o *Owner) Get(ctx context.Context, req *rpcv1.GetTaskRequest, reply func(*rpcv1.GetTaskResponse, error)) {
	id, err := ids.TaskIDFromBytes(req.TaskId)
	if err != nil {
		reply(nil, fault.At(fault.InvalidArgument, "/task_id", "%v", err))
		return
	}
	ok := func(r *rpcv1.GetTaskResponse) { reply(r, nil) }
	posted := o.post(ctx, func() {
		known := o.lookup(id, req.Domain)
		waits := req.WaitUntilMs > time.Now().UnixMilli()
		switch {
		case known.Task != nil && (known.Task.State.Finished() || !waits):
			ok(known)
		case known.Task != nil:
			o.waiters.add(id, waiter{req.Domain, req.WaitUntilMs, ok})
		default:
			levels := o.readLevels()
			go o.getAbsent(ctx, id, req, levels, waits, reply)
		}
	})
	if !posted {
		reply(nil, fault.New(fault.Unavailable, "the owner of partition %d is leaving", o.Partition))
	}
}

// getAbsent looks for a task that was not in memory a moment ago.
func (o *Owner) getAbsent(ctx context.Context, id ids.TaskID, req *rpcv1.GetTaskRequest, levels [ids.Lanes]uint64, waits bool, reply func(*rpcv1.GetTaskResponse, error)) {
	found, err := o.Finder.Archived(ctx, id)
	if err == nil && found == nil {
		found, err = o.Finder.Unread(ctx, id, levels)
	}
	if err != nil {
		reply(nil, fault.New(fault.Unavailable, "look for the task: %v", err))
		return
	}
	answer := &rpcv1.GetTaskResponse{}
	if found != nil {
		task, err := record.NewDecoder().Task(found)
		if err != nil {
			reply(nil, err)
			return
		}
		answer = visible(record.Public(task, false), req.Domain)
	}
	if !waits || answer.Task != nil && answer.Task.State.Finished() {
		reply(answer, nil)
		return
	}
	o.post(ctx, func() {
		// It may have come, or even ended, meanwhile.
		if known := o.lookup(id, req.Domain); known.Task != nil && known.Task.State.Finished() {
			reply(known, nil)
			return
		}
		if end, ok := o.recent.get(id); ok && end.state.Finished() {
			go o.getAbsent(ctx, id, req, levels, false, reply)
			return
		}
		o.waiters.add(id, waiter{req.Domain, req.WaitUntilMs, func(r *rpcv1.GetTaskResponse) {
			if r.Task == nil {
				r = answer
			}
			reply(r, nil)
		}})
	})
}

// List returns tasks in memory and lately finished ones, newest first.
func (o *Owner) List(ctx context.Context, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	filter := req.GetFilter()
	limit := int(filter.GetLimit())
	if limit <= 0 {
		limit = 100
	}
	out := &rpcv1.ListTasksResponse{}
	wanted := func(t *taskstate.Task) bool {
		return t.Domain == req.Domain && (filter.GetTasklist() == "" || t.Tasklist == filter.GetTasklist()) &&
			(filter.GetType() == "" || t.Type == filter.GetType()) &&
			(len(filter.GetStates()) == 0 || slices.Contains(filter.GetStates(), record.State(t)))
	}
	listed := make(map[string]bool)
	err := o.ask(ctx, func() {
		var hits []*entry
		for _, e := range o.tasks {
			if wanted(&e.Task) {
				hits = append(hits, e)
			}
		}
		slices.SortFunc(hits, func(a, b *entry) int { return slices.Compare(b.ID[:], a.ID[:]) })
		for _, e := range hits[:min(limit, len(hits))] {
			task := record.Public(&e.Task, true)
			listed[task.TaskId] = true
			out.Tasks = append(out.Tasks, task)
		}
	})
	if err != nil {
		return nil, err
	}
	ended, err := o.Finder.Recent(ctx, req.Domain, limit)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "read the archive: %v", err)
	}
	dec := record.NewDecoder()
	for _, r := range ended {
		t, err := dec.Task(r)
		if err == nil && wanted(t) && !listed[t.ID.String()] {
			listed[t.ID.String()] = true
			out.Tasks = append(out.Tasks, record.Public(t, true))
		}
	}
	return out, nil
}

// Describe counts the tasks of one tasklist.
func (o *Owner) Describe(ctx context.Context, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
	out := &rpcv1.DescribePartitionResponse{}
	err := o.ask(ctx, func() {
		for i := range o.pending {
			out.UnreadBatches += o.pending[i].Load()
		}
		l, ok := o.lists[tasklistKey{req.Domain, req.Tasklist}]
		if !ok {
			return
		}
		out.Ready, out.Running, out.Backoff = l.active[taskstate.Ready], l.active[taskstate.Running], l.active[taskstate.Backoff]
		out.Completed, out.Failed, out.Dead = l.completed, l.failed, l.dead
		if out.Ready == 0 {
			return
		}
		now := time.Now().UnixMilli()
		for _, e := range o.tasks {
			if e.list == l && e.State == taskstate.Ready {
				out.OldestReadyMs = max(out.OldestReadyMs, now-e.ReadyAt)
			}
		}
	})
	return out, err
}

// Bookings tells which attempts of a domain hold a slot, as of every event that was in
// the log when the call came.
func (o *Owner) Bookings(ctx context.Context, req *rpcv1.BookingsRequest) (*rpcv1.BookingsResponse, error) {
	end, err := o.Log.LastEvent(ctx)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "find the log's end: %v", err)
	}
	if err := o.reached(ctx, end); err != nil {
		return nil, err
	}
	byType := make(map[string]*rpcv1.Bookings)
	out := &rpcv1.BookingsResponse{}
	err = o.ask(ctx, func() {
		for _, e := range o.tasks {
			if e.Domain != req.Domain || e.State != taskstate.Running || !e.Attempt.Booked {
				continue
			}
			b, ok := byType[e.Type]
			if !ok {
				b = &rpcv1.Bookings{Type: e.Type}
				byType[e.Type] = b
				out.Types = append(out.Types, b)
			}
			b.Bookings = append(b.Bookings, ids.Booking(e.ID, e.Version)...)
			b.ExpiresMs = append(b.ExpiresMs, e.Attempt.DeadlineAt+slotGraceMS)
		}
	})
	return out, err
}

// slotGraceMS is for how long a slot outlives its attempt's deadline, in case that
// its release is lost.
const slotGraceMS = 30_000

// reached waits until the event at seq has been applied.
func (o *Owner) reached(ctx context.Context, seq uint64) error {
	for {
		var at uint64
		if err := o.ask(ctx, func() { at = o.eventAt }); err != nil {
			return err
		}
		if at >= seq {
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return fault.New(fault.Unavailable, "the owner of partition %d lags behind its log", o.Partition)
		}
	}
}

// Retrigger sends the triggers of all that is ready of one shard again: those of one
// domain, or of all of them where none is named.
func (o *Owner) Retrigger(ctx context.Context, req *rpcv1.RetriggerRequest) (*rpcv1.RetriggerResponse, error) {
	out := &rpcv1.RetriggerResponse{}
	err := o.ask(ctx, func() {
		out.Triggers = o.retrigger(func(e *entry) bool {
			return (req.Domain == "" || e.Domain == req.Domain) && e.list.shard == int(req.Shard)
		})
	})
	return out, err
}

// Reconnected re-sends the triggers of all that is ready: those sent since the
// connection broke, which nobody can tell, are lost.
func (o *Owner) Reconnected(ctx context.Context) {
	o.post(ctx, func() { o.retrigger(func(*entry) bool { return true }) })
}

// Hungry re-sends the triggers of a tasklist that were not sent lately: its pollers
// have nothing to do.
func (o *Owner) Hungry(ctx context.Context, hint *rpcv1.Hungry) {
	o.post(ctx, func() {
		l, ok := o.lists[tasklistKey{hint.Domain, hint.Tasklist}]
		if !ok || l.active[taskstate.Ready]+l.active[taskstate.Backoff] == 0 {
			return
		}
		before := time.Now().UnixMilli() - hungryAgeMS
		o.retrigger(func(e *entry) bool { return e.list == l && e.triggeredAt < before })
	})
}

const (
	// hungryAgeMS spares triggers that are still on their way.
	hungryAgeMS = 2000
	// overtakenMS is how much later another task must have become ready, to say that
	// this one was passed over and not just granted out of order.
	overtakenMS = 3000
	// oldAgeMS is when a ready task is triggered again without being asked for.
	oldAgeMS = 5 * 60_000
)

// heal re-sends the triggers of tasks that others of their column have overtaken, and
// of what has been ready for long whatever the reason (I5). While polls are fed with other
// tasks nobody is hungry, so nobody else would notice.
func (o *Owner) heal(now time.Time) {
	at := now.UnixMilli()
	o.retrigger(func(e *entry) bool {
		overtaken := e.ReadyAt < e.column.grantedReadyAt-overtakenMS && e.triggeredAt < at-hungryAgeMS-overtakenMS
		return overtaken || e.triggeredAt < at-oldAgeMS
	})
}

// retrigger sends the triggers of the ready tasks that match.
func (o *Owner) retrigger(match func(*entry) bool) int64 {
	now := time.Now().UnixMilli()
	ready := o.inLine(func(e *entry) bool {
		due := e.State == taskstate.Ready || e.State == taskstate.Backoff && e.DueAt <= now
		return due && match(e)
	})
	for _, e := range ready {
		o.trigger(e)
	}
	o.Metrics.Retriggered.Add(int64(len(ready)))
	return int64(len(ready))
}

// inLine lists the tasks that match, in the order in which they became ready, those of
// one message in its order: whoever is told of them again shall not see them shuffled.
func (o *Owner) inLine(match func(*entry) bool) []*entry {
	var line []*entry
	for _, e := range o.tasks {
		if match(e) {
			line = append(line, e)
		}
	}
	slices.SortFunc(line, func(a, b *entry) int {
		return cmp.Or(
			cmp.Compare(a.ReadyAt, b.ReadyAt),
			cmp.Compare(a.Position.Seq(), b.Position.Seq()),
			cmp.Compare(a.index, b.index),
		)
	})
	return line
}
