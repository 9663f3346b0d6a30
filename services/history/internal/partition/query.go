package partition

import (
	"context"
	"errors"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// Ask runs fn in the owner's goroutine and waits for it.
func (o *Owner) Ask(ctx context.Context, fn func(r *replica.Replica)) error {
	done := make(chan error, 1)
	if !o.postOr(ctx, func() { fn(o.core); done <- nil }, func() { done <- o.leaving() }) {
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

// NowMS is the time of the log, Unix ms.
func (b *base) NowMS() int64 { return b.now().MS }

// UnreadBatches is how many messages with tasks of a domain are not read yet. It is for the owner's goroutine.
func (o *Owner) UnreadBatches(domain string) int64 { return o.readers.unread(domain) }

// Unread is how many messages of a lane, or of a place that is split off it, are not read yet, as last counted, and since when it is split off, as
// this owner knows, Unix ms. It is for the owner's goroutine.
func (o *Owner) Unread(at replica.Queue) (messages, splitAt int64) {
	if at.Place == "" {
		return o.readers.pending[at.Lane].Load(), 0
	}
	return o.readers.queues.unread[at], o.readers.queues.splitAt(at)
}

// Get answers by reply, at once or when the task has ended or the wait is over. A task that is not in memory is looked for in the archive and in what is not
// read yet, unless the request is only about memory. Without a lease there may be another owner, which has read more: that one answers.
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
		known, ahead := o.core.Get(id), replica.AheadOf(o.core, id)
		if len(ahead) > 0 {
			known = nil // of a task that is elsewhere
		}
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
			go o.getAbsent(ctx, id, req, absent{o.core.UnreadLevels(req.Domain), ahead}, until, reply)
		}
	}, leave)
	if !posted {
		leave()
	}
}

// absent is what the owner knew of a task that was not in memory.
type absent struct {
	// levels are how far the lanes were read.
	levels replica.Levels
	// ahead are the commands that waited for it.
	ahead replica.Ahead
}

// getAbsent looks for a task that was not in memory a moment ago.
func (o *Owner) getAbsent(ctx context.Context, id ids.TaskID, req *rpcv1.GetTaskRequest, as absent, until time.Duration, reply func(*rpcv1.GetTaskResponse, error)) {
	finding, cancel := context.WithTimeout(ctx, findTimeout)
	found, at, err := o.find(finding, req.Domain, id, as)
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
		if at != 0 { // it lies unread
			e.Before, e.Position = e.Position, at
		}
		if !as.ahead.Foresee(&e.Task, at == 0) {
			reply(nil, fault.New(fault.Unavailable, "commands about the task are being decided"))
			return
		}
		answer = visible(record.Public(&e.Task, req.Brief, o.now().MS), req.Domain)
		answer.Lane = at.Lane().String()
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
	// findingMax is how many callers look for a task in the archive at a time; waitingMax how many more of one domain may wait for their turn.
	// Few at a time: what they cost does not wait in queues behind them, where domains have no turns.
	findingMax = 8
	waitingMax = 256
	// absentMax callers together look in the log for a task that is not there, and as many ask the timer. Both cost several times as much, most of
	// it in the stores, so they leave absentRest times as long as they took to everything else.
	absentMax  = 16
	absentRest = 3
	// locateTimeout bounds how long the timer is asked, with the wait for the turn: it may be silent, and the task lie in the log.
	locateTimeout = time.Second
)

// find looks for one task in the archive, in the timer store and in what is not read yet, at a position; 0 = it is elsewhere. The levels are those of when
// the task was not in memory. The log comes last: it takes longest to say that a task is not there. A task that moves meanwhile may be missed, if its submit is
// purged, too: so a frontend asks history, the timer, and history again before it says that a task does not exist.
func (b *base) find(ctx context.Context, domain string, id ids.TaskID, as absent) (r *logv1.Record, at ids.Position, err error) {
	wanted := replica.Search{ID: id, Domain: domain}
	var ended *logv1.Record
	err = b.inTurn(ctx, b.inArchive, domain, func() error {
		archived, err := b.Reader.Archived(ctx, []replica.Search{wanted})
		if err == nil {
			ended = archived[0]
		}
		return err
	})
	if err != nil || ended != nil && taskstate.State(ended.State) != taskstate.Dead {
		return ended, 0, err
	}
	var waiting *logv1.Record
	var fired uint64
	locating, cancel := context.WithTimeout(ctx, locateTimeout)
	silent := b.inTurn(locating, b.inTimer, domain, func() (err error) {
		waiting, fired, err = b.Timer.Locate(locating, id)
		return err
	})
	cancel()
	switch {
	case waiting != nil:
		return waiting, 0, nil
	case errors.Is(silent, ErrReaderBusy), ctx.Err() != nil, ended != nil && fired == 0: // without a hint the search would find an earlier submit
		return ended, 0, silent
	}
	err = b.inTurn(ctx, b.inLog, domain, func() (err error) {
		r, at, err = b.Reader.Unread(ctx, wanted, fired, as.levels)
		return err
	})
	if r == nil && err == nil {
		return ended, 0, silent
	}
	return r, at, err
}

// Searching runs fn, which reads tasks of a domain that are stored, when the turn of a caller of the domain has come.
func Searching(ctx context.Context, o *Owner, domain string, fn func() error) error {
	err := o.inTurn(ctx, o.inArchive, domain, fn)
	if errors.Is(err, ErrReaderBusy) {
		return TooMany(o.Partition)
	}
	return err
}

// inTurn runs fn when the turn of a caller of a domain has come. ErrReaderBusy: too many of the domain wait.
func (b *base) inTurn(ctx context.Context, line *turns.Line, domain string, fn func() error) error {
	err := line.Run(ctx, domain, fn)
	if errors.Is(err, turns.ErrBusy) {
		return ErrReaderBusy
	}
	return err
}

// Retrigger sends the triggers of all that is ready in partitions of one shard again: those of one domain, or of all of
// them if none is named.
func (o *Owner) Retrigger(ctx context.Context, req *rpcv1.RetriggerRequest) (*rpcv1.RetriggerResponse, error) {
	out := &rpcv1.RetriggerResponse{}
	err := o.Ask(ctx, func(core *replica.Replica) {
		out.Triggers = int64(core.Retrigger(req.Domain, int(req.Shard), o.now().MS, &o.fx.Effects))
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

// lookRetryAfter is when to ask again if there is no place to wait.
const lookRetryAfter = time.Second

// Look runs fn, which looks at what is in memory for a domain, in the owner's goroutine and waits for it. One goes after the other, domains
// take turns, and after each as much time as it took is left to everything else. So however many a domain asks for, the partition
// is not held up for others, nor loses its lease (I14). Without a lease, another owner may have admitted more: the error says so (I12).
func (o *Owner) Look(ctx context.Context, domain string, fn func(r *replica.Replica)) error {
	return o.LookInSteps(ctx, domain, func(core *replica.Replica) bool { fn(core); return true })
}

// LookInSteps is Look for what looks at many tasks: each step has a turn of its own, until one is the last.
func (o *Owner) LookInSteps(ctx context.Context, domain string, step func(r *replica.Replica) (last bool)) error {
	leased := true
	err := o.looks.Steps(ctx, domain, func() (last bool, err error) {
		err = o.Ask(ctx, func(core *replica.Replica) {
			if leased = o.leased(); leased && ctx.Err() == nil { // else no one waits for it
				last = step(core)
			}
		})
		return last || !leased, err
	})
	switch {
	case err == nil && !leased:
		return o.unsure()
	case errors.Is(err, turns.ErrBusy):
		return TooMany(o.Partition)
	case err != nil && err == ctx.Err():
		return fault.New(fault.Unavailable, "the owner of partition %d is busy", o.Partition)
	}
	return err
}

// TooMany is what callers get when as many wait as may.
func TooMany(partition int) error {
	return fault.New(fault.ResourceExhausted, "too many queries wait for partition %d", partition).After(lookRetryAfter)
}
