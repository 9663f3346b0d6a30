package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/deadline"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/window"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// ErrTakenOver ends Run: another owner has written the checkpoint.
var ErrTakenOver = errors.New("another owner has taken the partition over")

// Config bounds an owner.
type Config struct {
	// WindowTasks is how many unfinished tasks of one submit lane are held in memory;
	// the rest of the backlog stays on disk. Default 20000, 1..1000000. Too low
	// starves workers, too high costs about 1 KB and the payload per task.
	WindowTasks int `koanf:"window_tasks" usage:"unfinished tasks of one lane of one partition held in memory"`
	// CheckpointEvery is how often the cursors are saved; a takeover replays what came
	// after. Default 1s, 100ms..1m.
	CheckpointEvery time.Duration `koanf:"checkpoint_every" usage:"how often the cursors are saved"`
	// PurgeEvery is how often the log forgets what is finished. Default 10s, 1s..1h.
	PurgeEvery time.Duration `koanf:"purge_every" usage:"how often the log forgets what is finished"`
	// CarryAfter is how many log messages a task may stay active before its state is
	// rewritten at the tail, so that takeovers stay quick. Default 100000, 1000...
	CarryAfter uint64 `koanf:"carry_after" usage:"log messages after which an active task is carried forward"`
	// DrainTimeout bounds how long a leaving owner waits for its writes. Default 3s.
	DrainTimeout time.Duration `koanf:"drain_timeout" usage:"how long a leaving owner waits for its writes"`
}

// DefaultConfig is the defaults given at the fields.
func DefaultConfig() Config {
	return Config{
		WindowTasks: 20_000, CheckpointEvery: time.Second, PurgeEvery: 10 * time.Second,
		CarryAfter: 100_000, DrainTimeout: 3 * time.Second,
	}
}

// Deps is what an owner works with.
type Deps struct {
	Partition int
	// Shards is M, the number of matching shards.
	Shards      int
	Node        string
	Config      Config
	Log         Log
	Store       Store
	Timer       Timer
	Finder      Finder
	Checkpoints Checkpoints
	Wire        Wire
	Tokens      *ids.Tokens
	Logger      *slog.Logger
	Tracing     *telemetry.Tracing
	Metrics     *Metrics
}

// Owner applies the log of one partition. Its fields belong to the goroutine in
// Run; others reach it by post.
type Owner struct {
	Deps
	in    chan func()
	ready chan struct{}

	// State, all of it a result of the log.
	tasks   map[ids.TaskID]*entry
	lanes   [ids.Lanes]*window.Lane
	lists   map[tasklistKey]*tasklist
	recent  *recent
	wake    deadline.Heap[*entry]
	eventAt uint64 // last event applied
	// marks are cancels of tasks not in memory, until it is known what to do with them.
	marks map[ids.TaskID]*mark
	// wanted are the marks whose tasks are to be looked for next.
	wanted   []ids.TaskID
	searches int
	// unread are events of tasks that their lane has not read yet.
	unread map[ids.TaskID][]waitingVerdict
	// carried are the active tasks that pin the log by a carried record.
	carried map[ids.TaskID]*entry

	replaying bool
	leaving   bool
	gates     [ids.Lanes]*gate
	pending   [ids.Lanes]atomic.Int64 // log messages not read yet, as last told
	outbox    outbox
	parked    parkedLevels
	waiters   waiters

	checkpoint *logv1.Checkpoint // the last one saved
	revision   uint64
	saving     bool
	purging    bool
	nextPurge  time.Time
	nextHeal   time.Time
	fatal      error
	encoder    record.Encoder
}

// New makes an owner; Run starts it.
func New(d Deps) *Owner {
	o := &Owner{
		Deps: d, in: make(chan func(), 1024), ready: make(chan struct{}),
		tasks: make(map[ids.TaskID]*entry), lists: make(map[tasklistKey]*tasklist), recent: newRecent(),
		wake:  deadline.Heap[*entry]{Entry: func(e *entry) *deadline.Entry { return &e.lease }},
		marks: make(map[ids.TaskID]*mark), unread: make(map[ids.TaskID][]waitingVerdict),
		carried: make(map[ids.TaskID]*entry), waiters: newWaiters(),
	}
	o.encoder.Tokens = d.Tokens
	o.outbox = newOutbox()
	for lane := range o.gates {
		limit := d.Config.WindowTasks
		if ids.Lane(lane) == ids.LaneLater {
			limit = 0 // parking holds no state
		}
		o.gates[lane] = newGate(limit)
	}
	return o
}

// Ready is closed when the owner has taken over and serves.
func (o *Owner) Ready() <-chan struct{} { return o.ready }

// Run takes the partition over and serves it until ctx ends, then drains: what
// is queued is applied, writes under way are waited for, the checkpoint saved.
func (o *Owner) Run(ctx context.Context) error {
	began := time.Now()
	next, err := o.takeOver(ctx)
	if err != nil {
		return fmt.Errorf("take over history partition %d: %w", o.Partition, err)
	}
	o.Logger.Info("history partition taken over", "partition", o.Partition, "epoch", o.checkpoint.Epoch,
		"tasks", len(o.tasks), "took", time.Since(began).Round(time.Millisecond))
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	o.outbox.start(work, o)
	readers := o.startReaders(ctx, next)
	close(o.ready)
	err = o.serve(ctx, readers)
	if err == nil {
		err = o.drain()
	}
	stop()
	return err
}

// post hands fn to the owner's goroutine. It is for other goroutines.
func (o *Owner) post(ctx context.Context, fn func()) bool {
	select {
	case o.in <- fn:
		return true
	case <-ctx.Done():
		return false
	}
}

// turnMax is how many queued inputs are applied before their effects are flushed.
const turnMax = 256

// serve is the loop: apply all that is queued, then flush.
func (o *Owner) serve(ctx context.Context, readers <-chan error) error {
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-readers:
			return err
		case fn := <-o.in:
			fn()
			o.applyQueued()
		case <-timer.C:
		case now := <-beat.C:
			o.beat(now)
		}
		now := time.Now()
		o.wakeDue(now.UnixMilli())
		o.flush()
		if o.fatal != nil {
			return o.fatal
		}
		wait := time.Hour
		if at, ok := o.wake.Next(); ok {
			wait = time.Until(time.UnixMilli(at))
		}
		timer.Reset(max(0, wait))
	}
}

func (o *Owner) applyQueued() {
	for range turnMax {
		select {
		case fn := <-o.in:
			fn()
		default:
			return
		}
	}
}

// drain finishes what was begun when the owner leaves.
func (o *Owner) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), o.Config.DrainTimeout)
	defer cancel()
	o.leaving = true
	for {
		o.applyQueued()
		o.flush()
		if o.outbox.idle() && !o.saving {
			break
		}
		select {
		case fn := <-o.in:
			fn()
		case <-ctx.Done():
			o.Logger.Warn("history partition left with writes under way; the next owner repeats them", "partition", o.Partition)
			return nil
		}
	}
	o.waiters.endAll(o)
	if _, err := o.Checkpoints.Save(ctx, o.makeCheckpoint(time.Now()), o.revision); err != nil && !errors.Is(err, ErrTakenOver) {
		o.Logger.Warn("last checkpoint not saved; the next owner replays more", "partition", o.Partition, "error", err)
	}
	return nil
}

// wakeDue looks at the tasks whose lease or wait is over.
func (o *Owner) wakeDue(now int64) {
	for {
		e, ok := o.wake.PopDue(now)
		if !ok {
			return
		}
		if e.State == taskstate.Running {
			// The log decides whether the lease is over; if the record is lost on the way,
			// look again later.
			o.outbox.own(expiredEvent(&e.Task))
			o.wake.Set(e, now+expireRetryMS)
			continue
		}
		if taskstate.Wake(&e.Task, now).Trigger {
			o.trigger(e)
		}
	}
}

const (
	expireRetryMS = 2000
	// beatEvery paces load reports, waiters' time-outs and the check whether it is
	// time for a checkpoint.
	beatEvery = 250 * time.Millisecond
)

func expiredEvent(t *taskstate.Task) *logv1.Event {
	return ownEvent(logv1.EventKind_EVENT_KIND_EXPIRED, t.ID, t.Token())
}

func ownEvent(kind logv1.EventKind, id ids.TaskID, fence ids.Token) *logv1.Event {
	return &logv1.Event{
		Kind: kind, TaskId: id[:], Position: uint64(fence.Position), Version: fence.Version, Nonce: fence.Nonce,
	}
}
