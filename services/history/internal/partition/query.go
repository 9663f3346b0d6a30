package partition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/admission"
	"github.com/yardmaster-io/yardmaster/shared/paging"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// ask runs fn in the owner's goroutine and waits for it.
func (o *Owner) ask(ctx context.Context, fn func()) error {
	done := make(chan error, 1)
	if !o.postOr(ctx, func() { fn(); done <- nil }, func() { done <- o.leaving() }) {
		return fault.New(fault.Unavailable, "the owner of partition %d is busy", o.Partition)
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return o.leaving()
	}
}

// leaving is what callers get that this owner no longer answers.
func (b *base) leaving() error {
	return fault.New(fault.Unavailable, "the owner of partition %d is leaving", b.Partition)
}

// unsure is what callers get while this owner has no lease.
func (b *base) unsure() error {
	return fault.New(fault.Unavailable, "the owner of partition %d has no lease", b.Partition)
}

// Get answers by reply, at once or when the task has ended or the wait is over. A task that is not in memory is looked
// for in the archive and in what is not read yet, unless the request is only about memory. Without a lease there may be
// another owner, which has read more: that one answers.
func (o *Owner) Get(ctx context.Context, req *rpcv1.GetTaskRequest, reply func(*rpcv1.GetTaskResponse, error)) {
	id, err := ids.TaskIDFromBytes(req.TaskId)
	if err != nil {
		reply(nil, fault.At(fault.InvalidArgument, "/task_id", "%v", err))
		return
	}
	ok := func(r *rpcv1.GetTaskResponse) { reply(r, nil) }
	leave := func() { reply(nil, o.leaving()) }
	waits, until := req.WaitMs > 0, o.now().Mono+time.Duration(req.WaitMs)*time.Millisecond
	posted := o.postOr(ctx, func() {
		known := o.core.Get(id)
		switch {
		case !o.leased():
			reply(nil, o.unsure())
		case req.InMemory && (known == nil || replica.Undecided(o.core, id)):
			ok(&rpcv1.GetTaskResponse{})
		case known != nil && (known.State.Finished() || !waits):
			ok(visible(record.Public(known, req.Brief, o.now().MS), req.Domain))
		case known != nil:
			o.waiters.add(id, waiter{req.Domain, until, ok})
		default:
			go o.getAbsent(ctx, id, req, o.core.UnreadLevels(req.Domain), until, reply)
		}
	}, leave)
	if !posted {
		leave()
	}
}

// getAbsent looks for a task that was not in memory a moment ago.
func (o *Owner) getAbsent(ctx context.Context, id ids.TaskID, req *rpcv1.GetTaskRequest, levels replica.Levels, until time.Duration, reply func(*rpcv1.GetTaskResponse, error)) {
	finding, cancel := context.WithTimeout(ctx, findTimeout)
	found, err := o.find(finding, req.Domain, id, levels)
	cancel()
	if errors.Is(err, ErrReaderBusy) {
		reply(nil, fault.New(fault.ResourceExhausted, "%v", err))
		return
	}
	if err != nil {
		reply(nil, fault.New(fault.Unavailable, "look for the task: %v", err))
		return
	}
	answer := &rpcv1.GetTaskResponse{}
	if found != nil {
		e, err := record.NewDecoder().Entry(found)
		if err != nil {
			reply(nil, err)
			return
		}
		answer = visible(record.Public(&e.Task, req.Brief, o.now().MS), req.Domain)
	}
	if req.WaitMs <= 0 || answer.Task != nil && taskstate.State(answer.Task.State).Finished() {
		if !o.leased() {
			reply(nil, o.unsure())
			return
		}
		reply(answer, nil)
		return
	}
	leave := func() { reply(nil, o.leaving()) }
	posted := o.postOr(ctx, func() {
		// It may have come, or even ended, meanwhile.
		if known := o.core.Get(id); known != nil && known.State.Finished() {
			reply(visible(record.Public(known, false, o.now().MS), req.Domain), nil)
			return
		}
		o.waiters.add(id, waiter{req.Domain, until, func(r *rpcv1.GetTaskResponse) {
			if r.Task == nil {
				r = answer
			}
			reply(r, nil)
		}})
	}, leave)
	if !posted {
		leave()
	}
}

const (
	// findTimeout bounds how long a task is looked for.
	findTimeout = 10 * time.Second
	// askingMax is how many callers ask one store for a task at a time, waitingMax how many may wait for its answer,
	// these included. All of these ask the log at a time, which is read once for many.
	askingMax  = 32
	waitingMax = 256
)

// find looks for one task in the archive, and for one that is submitted or fired and not read yet.
func (b *base) find(ctx context.Context, domain string, id ids.TaskID, levels replica.Levels) (*logv1.Record, error) {
	archived, err := b.Reader.Archived(ctx, []replica.Search{{ID: id, Domain: domain}})
	if err != nil {
		return nil, err
	}
	ended := archived[0]
	if ended != nil && taskstate.State(ended.State) != taskstate.Dead {
		return ended, nil
	}
	if ended == nil { // a dead one may have been redriven, which the timer knows
		unread, err := b.findUnread(ctx, domain, id, 0, levels)
		if err != nil || unread != nil {
			return unread, err
		}
	}
	leave, err := b.inTimer.enter(ctx, domain)
	if err != nil {
		return nil, err
	}
	waiting, fired, err := b.Timer.Locate(ctx, id)
	leave()
	switch {
	case err != nil:
		return ended, nil // the caller asks the timer, too
	case waiting != nil:
		return waiting, nil
	case fired == 0:
		return ended, nil
	}
	unread, err := b.findUnread(ctx, domain, id, fired, levels)
	if unread == nil && err == nil {
		unread = ended
	}
	return unread, err
}

func (b *base) findUnread(ctx context.Context, domain string, id ids.TaskID, hint uint64, levels replica.Levels) (*logv1.Record, error) {
	leave, err := b.inLog.enter(ctx, domain)
	if err != nil {
		return nil, err
	}
	defer leave()
	unread, _, err := b.Reader.Unread(ctx, id, hint, levels)
	return unread, err
}

// List returns tasks in memory and finished ones, newest first, as many as fit into an answer.
func (o *Owner) List(ctx context.Context, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	if req.Next {
		return o.next(ctx, req)
	}
	limit := int(cmp.Or(req.GetFilter().GetLimit(), 100))
	before, err := ids.ParseTaskID(cmp.Or(req.GetFilter().GetCursor(), ids.Last.String()))
	if err != nil {
		return nil, fault.At(fault.InvalidArgument, "/cursor", "%v", err)
	}
	wanted := wantedBy(req, before, o.now().MS)
	var all []*yardv1.Task
	listed := make(map[string]bool)
	err = o.Look(ctx, req.Domain, func(core *replica.Replica) {
		for _, t := range core.List(limit, wanted) {
			task := record.Public(t, true, o.now().MS)
			listed[task.TaskId] = true
			all = append(all, task)
		}
	})
	if err != nil {
		return nil, err
	}
	end := "" // it has not listed all that is older
	if len(all) == limit {
		end = all[limit-1].TaskId
	}
	if states := req.GetFilter().GetStates(); len(states) == 0 || slices.ContainsFunc(states, yardv1.TaskState.Finished) {
		dec, dead := record.NewDecoder(), make(map[ids.TaskID]uint32)
		stop, err := o.Reader.Finished(ctx, req.Domain, before, limit, func(r *logv1.Record) bool {
			e, err := dec.Entry(r)
			if err != nil || !wanted(&e.Task) || listed[e.ID.String()] {
				return false
			}
			if e.State == taskstate.Dead {
				dead[e.ID] = e.Parkings
			}
			all = append(all, record.Public(&e.Task, true, o.now().MS))
			return true
		})
		switch {
		case errors.Is(err, turns.ErrBusy):
			return nil, tooMany(o.Partition)
		case err != nil:
			return nil, fault.New(fault.Unavailable, "read the archive: %v", err)
		}
		if all, err = o.backAgain(ctx, req.Domain, all, dead, wanted); err != nil {
			return nil, err
		}
		if !stop.IsZero() {
			end = max(end, stop.String())
		}
	}
	slices.SortFunc(all, func(a, b *yardv1.Task) int { return strings.Compare(b.TaskId, a.TaskId) })
	page, cut := paging.Cut(all, limit, paging.BytesMax, (*yardv1.Task).SizeVT)
	if cut {
		end = max(end, page[len(page)-1].TaskId)
	}
	return &rpcv1.ListTasksResponse{Tasks: page, More: end != "", End: end}, nil
}

// backAgain has some dead tasks, whose last stays are known, listed as they are now, or not at all, if they are in
// memory again: redriven after the end that the archive has.
func (o *Owner) backAgain(ctx context.Context, domain string, all []*yardv1.Task, dead map[ids.TaskID]uint32, wanted func(*taskstate.Task) bool) ([]*yardv1.Task, error) {
	if len(dead) == 0 {
		return all, nil
	}
	err := o.Look(ctx, domain, func(core *replica.Replica) {
		for id, stay := range dead {
			t := core.Get(id)
			if t == nil || t.Parkings <= stay {
				continue
			}
			i := slices.IndexFunc(all, func(shown *yardv1.Task) bool { return shown.TaskId == id.String() })
			if all[i] = record.Public(t, true, o.now().MS); !wanted(t) {
				all = slices.Delete(all, i, i+1)
			}
		}
	})
	return all, err
}

// wantedBy tells which tasks a list from before an id on is of, at an instant, Unix ms.
func wantedBy(req *rpcv1.ListTasksRequest, before ids.TaskID, now int64) func(t *taskstate.Task) bool {
	filter := req.GetFilter()
	return func(t *taskstate.Task) bool {
		return t.Domain == req.Domain && (filter.GetTasklist() == "" || t.Tasklist == filter.GetTasklist()) &&
			(filter.GetType() == "" || t.Type == filter.GetType()) &&
			(filter.GetGroup() == "" || t.Group() == filter.GetGroup()) && t.HasHeaders(filter.GetHeaders()) &&
			t.HasOrder(filter.GetOrderKey(), filter.GetBlocked()) && (filter.GetBatchId() == "" || t.BatchID() == filter.GetBatchId()) &&
			bytes.Compare(t.ID[:], before[:]) < 0 &&
			(len(filter.GetStates()) == 0 || slices.Contains(filter.GetStates(), record.State(t, now)))
	}
}

// Describe counts the tasks of one tasklist, or of each of a list.
func (o *Owner) Describe(ctx context.Context, req *rpcv1.DescribePartitionRequest) (*rpcv1.DescribePartitionResponse, error) {
	out := &rpcv1.DescribePartitionResponse{}
	if req.List > 0 {
		err := o.Look(ctx, req.Domain, func(core *replica.Replica) {
			for _, c := range core.Tasklists(req.Domain, req.Tasklist, int(req.List)) {
				out.Tasklists = append(out.Tasklists, &yardv1.ListedTasklist{Name: c.Tasklist, Ready: c.Ready, Running: c.Running, Backoff: c.Backoff})
			}
		})
		return out, err
	}
	err := o.Look(ctx, req.Domain, func(core *replica.Replica) {
		out.UnreadBatches, out.LaggingLanes = o.readers.unread(req.Domain), int32(core.SplitLanes(req.Domain))
		c := core.Describe(req.Domain, req.Tasklist)
		out.Ready, out.Running, out.Backoff = c.Ready, c.Running, c.Backoff
		out.Completed, out.Dead, out.Expired, out.Failed = c.Completed, c.Dead, c.Expired, c.Failed
		if c.OldestReadyAt > 0 {
			out.OldestReadyMs = max(0, o.now().MS-c.OldestReadyAt)
		}
	})
	return out, err
}

// Retrigger sends the triggers of all that is ready in partitions of one shard again: those of one domain, or of all of
// them if none is named.
func (o *Owner) Retrigger(ctx context.Context, req *rpcv1.RetriggerRequest) (*rpcv1.RetriggerResponse, error) {
	out := &rpcv1.RetriggerResponse{}
	err := o.ask(ctx, func() {
		out.Triggers = int64(o.core.Retrigger(req.Domain, int(req.Shard), o.now().MS, &o.fx.Effects))
	})
	return out, err
}

// Reconnected re-sends the triggers of all that is ready: those sent since the connection broke, which no one can tell,
// are lost.
func (o *Owner) Reconnected(ctx context.Context) {
	o.post(ctx, func() { o.core.Retrigger("", -1, o.now().MS, &o.fx.Effects) })
}

// Hungry re-sends the triggers of a tasklist that were not sent recently: its pollers have nothing to do.
func (o *Owner) Hungry(ctx context.Context, hint *rpcv1.Hungry) {
	o.post(ctx, func() { o.core.Hungry(hint.Domain, hint.Tasklist, hint.Present, o.now(), &o.fx) })
}

// next returns the ready tasks in memory in the order in which they are to start.
func (o *Owner) next(ctx context.Context, req *rpcv1.ListTasksRequest) (*rpcv1.ListTasksResponse, error) {
	after := replica.Place{Priority: req.AfterPriority, ReadyAt: req.AfterReadyAtMs}
	if len(req.AfterId) > 0 {
		var err error
		if after.ID, err = ids.TaskIDFromBytes(req.AfterId); err != nil {
			return nil, fault.At(fault.InvalidArgument, "/after_id", "%v", err)
		}
	}
	tasklist, typ, group := req.GetFilter().GetTasklist(), req.GetFilter().GetType(), req.GetFilter().GetGroup()
	out := &rpcv1.ListTasksResponse{}
	err := o.Look(ctx, req.Domain, func(core *replica.Replica) {
		tasks, more := core.Next(int(req.GetFilter().GetLimit()), func(t *taskstate.Task) bool {
			return t.Domain == req.Domain && t.Tasklist == tasklist && (typ == "" || t.Type == typ) && (group == "" || t.Group() == group) && replica.PlaceOf(t).Compare(after) > 0
		})
		for _, t := range tasks {
			out.Tasks, out.ReadyAtMs = append(out.Tasks, record.Public(t, true, o.now().MS)), append(out.ReadyAtMs, t.ReadyAt)
		}
		out.More = more
	})
	return out, err
}

// keysMax is the most order keys of one answer.
const keysMax = 1000

// Keys tells of the order keys of a domain that have tasks in memory, those that wait for longest at first. Without a
// lease another owner may have read more, and an operator acts on what is said here.
func (o *Owner) Keys(ctx context.Context, req *rpcv1.ListKeysRequest) (*rpcv1.ListKeysResponse, error) {
	q := &line.Query{
		Domain: req.Domain, Key: req.OrderKey, Blocked: req.Blocked, Waiting: req.Waiting,
		After: line.Place{Since: req.AfterSinceMs, Key: req.AfterKey}, Limit: max(1, min(int(req.Limit), keysMax)),
	}
	out := &rpcv1.ListKeysResponse{}
	err := o.Look(ctx, req.Domain, func(core *replica.Replica) {
		var found []line.Line
		found, out.More = core.OrderKeys().Find(q)
		for _, l := range found {
			out.Keys = append(out.Keys, &yardv1.OrderKey{
				OrderKey: l.Key, Head: record.Public(l.Head, true, o.now().MS), Waiting: int64(l.Waiting), SinceMs: l.Since, Reason: l.Head.Why(),
			})
		}
	})
	if err != nil {
		return nil, err
	}
	page, cut := paging.Cut(out.Keys, len(out.Keys), paging.BytesMax, (*yardv1.OrderKey).SizeVT)
	out.Keys, out.More = page, out.More || cut
	return out, nil
}

// lookRetryAfter is when to ask again if there is no place to wait.
const lookRetryAfter = time.Second

// Look runs fn, which looks at all tasks in memory for a domain, in the owner's goroutine and waits for it. One goes after the other, domains
// take turns, and after each as much time as it took is left to everything else. So however many a domain asks for, the partition
// is not held up for others, nor loses its lease (I14). Without a lease, another owner may have admitted more: the error says so (I12).
func (o *Owner) Look(ctx context.Context, domain string, fn func(r *replica.Replica)) error {
	leased := true
	err := o.looks.Run(ctx, domain, func() error {
		return o.ask(ctx, func() {
			if leased = o.leased(); leased && ctx.Err() == nil { // else no one waits for it
				fn(o.core)
			}
		})
	})
	switch {
	case err == nil && !leased:
		return o.unsure()
	case errors.Is(err, turns.ErrBusy):
		return tooMany(o.Partition)
	case err != nil && err == ctx.Err():
		return fault.New(fault.Unavailable, "the owner of partition %d is busy", o.Partition)
	}
	return err
}

func tooMany(partition int) error {
	return fault.New(fault.ResourceExhausted, "too many queries wait for partition %d", partition).After(lookRetryAfter)
}

// room bounds how many callers ask one store at a time, and by domain how many wait for that. Those who wait go in
// order.
type room struct {
	slots  chan struct{}
	places *admission.Room
}

func newRoom(slots, most int) *room {
	return &room{slots: make(chan struct{}, slots), places: admission.New(most)}
}

// enter waits for a slot until ctx ends. ErrReaderBusy: there is no place to wait. A caller that has entered calls
// leave.
func (r *room) enter(ctx context.Context, domain string) (leave func(), err error) {
	if !r.places.Enter(domain) {
		return nil, ErrReaderBusy
	}
	select {
	case r.slots <- struct{}{}:
		return func() {
			<-r.slots
			r.places.Leave(domain)
		}, nil
	case <-ctx.Done():
		r.places.Leave(domain)
		return nil, ctx.Err()
	}
}
