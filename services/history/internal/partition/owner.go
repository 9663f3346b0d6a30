package partition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/pace"
	"github.com/yardmaster-io/yardmaster/services/history/internal/batches"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/backlog"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/events"
	"github.com/yardmaster-io/yardmaster/services/history/internal/hearing"
	"github.com/yardmaster-io/yardmaster/services/history/internal/record"
	"github.com/yardmaster-io/yardmaster/services/history/internal/spans"
	"github.com/yardmaster-io/yardmaster/services/history/internal/turn"
	"github.com/yardmaster-io/yardmaster/shared/terms"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// ErrUnreadable ends Run: the log holds a record of a version or kind that this program does not know. It must not be
// skipped.
var ErrUnreadable = turn.ErrUnreadable

// Owner serves one partition, once. Its fields belong to the goroutine in Run; others reach it by post.
type Owner struct {
	*base
	writers writers
	ready   chan struct{}

	core *replica.Replica
	fx   replica.Effects
	// readAt is the latest time of a submit that was read, Unix ms: no turn behind it is dated before, unless the clocks are further apart.
	readAt int64
	// offered is a record that the replica did not take, since its lease does not hold.
	offered  *input
	readers  *readers
	turns    *turn.Appender
	saver    saver
	searches searches
	waiters  waiters
	spans    spans.Maker
	// ended are the batches of which tasks have ended since the last beat.
	ended batches.Ended
	// events go to clients that listen.
	events  *events.Publisher
	encoder record.Encoder
	unread  backlog.Counter
	// storedNext is when what domains with a quota have waiting is reported next.
	storedNext time.Duration
	reported   []byte // the last load report
	omitted    bool   // one was left out since
	// hurry is there while a tasklist has a cap.
	hurry *time.Ticker
	// recovered: the takeover is over.
	recovered bool
	fatal     error
}

// New makes an owner; Run starts it.
func New(d Deps) *Owner {
	if d.Weight == nil {
		d.Weight = func(string) int { return 1 }
	}
	b := &base{
		Deps: d, calls: make(chan call, 1024), origin: time.Now(),
		inArchive: turns.NewLine(turns.Config{AtOnce: findingMax, Most: waitingMax, Weight: d.Weight}),
		inLog:     turns.NewLine(turns.Config{AtOnce: absentMax, Rest: absentRest, Most: waitingMax, Weight: d.Weight}),
		inTimer:   turns.NewLine(turns.Config{AtOnce: absentMax, Rest: absentRest, Most: waitingMax, Weight: d.Weight}),
		looks:     turns.NewLine(turns.Config{Most: lookingMax, Rest: 1, Weight: d.Weight}),
	}
	if b.FullWeight == nil {
		b.FullWeight = func(string) (int64, bool) { return 0, false }
	}
	b.Workers = cmp.Or(b.Workers, hearing.New())
	b.work, b.stop = context.WithCancel(context.Background())
	w := writers{b}
	o := &Owner{
		base: b, writers: w, ready: make(chan struct{}), readers: newReaders(w), searches: newSearches(w),
		waiters: newWaiters(), encoder: record.Encoder{Tokens: d.Tokens}, saver: saver{base: b},
		spans:  spans.Maker{Partition: d.Partition, Tracing: d.Tracing, Clock: d.Clock},
		events: events.New(d.Events, d.Metrics.EventsPublished, d.Metrics.EventsDropped),
	}
	b.give = o.step
	o.turns = turn.New(d.Log, ofTurns{o}, d.LogVersion, d.Logger)
	return o
}

// Ready is closed when the owner has taken over and serves.
func (o *Owner) Ready() <-chan struct{} { return o.ready }

// Run takes the partition over and serves it until ctx ends, then drains: writes under way are waited for, the
// checkpoint saved. However it ends, those who wait for a task, or for the loop, are answered: they ask the next owner.
func (o *Owner) Run(ctx context.Context) error {
	defer o.endCalls()
	defer o.stop()
	if err := o.takeOver(ctx); err != nil {
		return fmt.Errorf("take over history partition %d: %w", o.Partition, err)
	}
	defer func() { o.waiters.endAll(o.core, o.now()) }()
	defer o.Workers.Watch(func() { o.post(o.work, o.endSilent) })()
	listening := make(chan error, 1)
	go func() { listening <- o.turns.Listen(ctx, o.Workers.SignsEvery, o.dropped) }()
	close(o.ready)
	if err := o.serve(ctx, listening); err != nil {
		return err
	}
	return o.drain()
}

const (
	// lookingMax is how many looks of a domain at what is in memory may wait, beside the one that looks.
	lookingMax = 48
	// clocksApartMS is how much our clock and the log's may differ.
	clocksApartMS = 1500
	// beatEvery paces ticks, load reports and waiters' time-outs. In the time before the end of a lease it has to be seen that the log moves.
	beatEvery, leaseWatched = 250 * time.Millisecond, 12 * time.Second
	// turnMax is how many inputs are stepped through before their effects are flushed, turnTasksMax after how many tasks no more
	// are: what has come in meanwhile of other domains waits for the flush.
	turnMax      = 256
	turnTasksMax = 1000
)

// dropped reports a batch of events that cannot be read.
func (b *base) dropped(err error) {
	b.Metrics.Poison.Add(1)
	b.Logger.Error("a batch of events cannot be read and was dropped", "partition", b.Partition, "error", err)
}

// ofTurns is the owner as its turns see it.
type ofTurns struct{ o *Owner }

func (t ofTurns) Persist(write func(context.Context) error) error {
	return t.o.writers.persist(t.o.work, writeEvents, write)
}
func (t ofTurns) Post(do func())             { t.o.post(t.o.work, do) }
func (t ofTurns) Take(in replica.Input) bool { return t.o.taken(in) }

// Early implements turn.Owner: a task that starts with its submit may end before that is read.
func (t ofTurns) Early(in *replica.Events) bool {
	read := t.o.core.ReadLevels()[ids.LaneFirst]
	return slices.ContainsFunc(in.Events, func(e taskstate.Event) bool {
		return e.Kind.OfAttempt() && e.Fence.Position.Seq() > read && e.Fence.Position.Lane() == ids.LaneFirst && e.Fence.Position.Shared()
	})
}

// Terms implements turn.Owner: the settings of types, where those of a task are older.
func (t ofTurns) Terms(next []*replica.Events) (all []*logv1.TypeTerms) {
	if t.o.Type == nil {
		return nil
	}
	revision := func(of taskstate.TypeName) int64 { return t.o.Type(of.Domain, of.Type).GetRevision() }
	for _, of := range replica.OutOfDate(t.o.core, next, revision) {
		all = append(all, &logv1.TypeTerms{Domain: of.Domain, Type: of.Type, Policy: terms.Policy(nil, t.o.Type(of.Domain, of.Type))})
	}
	return all
}

func (t ofTurns) Admitted() []replica.Admission { return t.o.core.BeginTurn() }
func (t ofTurns) Fail(err error)                { t.o.fatal = err }
func (t ofTurns) NowMS() int64                  { return max(t.o.now().MS, min(t.o.readAt, t.o.now().MS+clocksApartMS)) }

// serve is the loop: step through what is queued, then flush.
func (o *Owner) serve(ctx context.Context, listening <-chan error) error {
	wake, beats, usual, idle, was := time.NewTimer(beatEvery), pace.NewBeats(beatEvery), true, false, false
	defer wake.Stop()
	for {
		was, idle = idle, false
		select {
		case <-ctx.Done():
			return nil
		case r := <-o.turns.Arrived():
			o.turns.Add(r)
		case err := <-listening:
			if ctx.Err() == nil {
				return fmt.Errorf("listen to events: %w", err)
			}
			return nil
		case <-o.readers.woken:
		case c := <-o.calls:
			c.do()
		case err := <-o.readers.failed:
			return err
		case <-wake.C:
			if o.step(replica.Tick{}); beats.Due(usual) {
				o.beat()
				was = true // nothing has come since
			}
			idle = was
		case <-o.early():
			o.tellEarly()
		}
		o.takeQueued()
		o.flush()
		if o.fatal != nil {
			return o.fatal
		}
		wait := time.Hour
		if at, ok := o.core.NextWake(); ok {
			wait = time.Duration(at-o.now().MS) * time.Millisecond
		}
		usual = !idle || wait < leaseWatched || len(o.waiters.byID) > 0
		wake.Reset(max(1, min(wait, beats.In(usual))))
	}
}

// takeQueued steps through what is there already.
func (o *Owner) takeQueued() {
	for inputs, tasks := 0, 0; inputs < turnMax && tasks < turnTasksMax; inputs++ {
		if n, taken := o.takeOne(); taken {
			tasks += n
			continue
		}
		select {
		case c := <-o.calls:
			c.do()
		default:
			return
		}
	}
	o.readers.wake() // there may be more
}

// takeOffered steps through the record that was not taken, if it may be now: there is a lease, and no turn is being stored.
func (o *Owner) takeOffered() (taken bool) {
	in := o.offered
	if in == nil || !o.core.MayAdmit() || !o.leased() {
		return false
	}
	o.offered = nil
	o.take(*in)
	return o.offered == nil
}

// takeOne steps through one message of the log, of the queue whose turn it is. It returns how many tasks that has.
func (o *Owner) takeOne() (tasks int, taken bool) {
	switch {
	case o.offered != nil:
		tasks = o.offered.tasks()
		return tasks, o.takeOffered()
	case !o.core.MayAdmit():
		return 0, false
	}
	at, ok := o.core.NextQueue(o.comes, o.Weight)
	if !ok {
		return 0, false
	}
	in := o.readers.pop(at)
	o.take(in)
	return in.tasks(), true
}

// comes tells whether a message of a queue is there, and room for it.
func (o *Owner) comes(at replica.Queue) bool {
	if at.Place == "" {
		return o.core.Room(at.Lane) && o.readers.peek(at) != nil
	}
	in := o.readers.peek(at)
	return in != nil && (in.err != nil || o.core.QueueRoom(at, in.seq))
}

// take steps through a record of the log.
func (o *Owner) take(in input) {
	if s, ok := in.what.(*replica.Submits); ok {
		o.readAt = max(o.readAt, s.At)
		at := replica.Queue{Lane: s.Lane, Place: s.Place}
		if in.passed && !o.core.IsSplit(at) {
			o.readQueues()
			o.readers.again(o.work, s.Lane, in.seq) // it lags no more, so this has to be decoded
			return
		}
		if s.By == "" {
			o.readers.note(in)
		}
	}
	if in.err != nil {
		o.fatal = fmt.Errorf("%w: %w", ErrUnreadable, in.err)
		return
	}
	split := o.core.Splits()
	if !o.taken(in.what) {
		o.offered = &in // what is looked at above may be otherwise by then
	}
	if o.core.Splits() != split {
		o.readQueues() // a domain is over its rate, and its next messages are passed over from now on
	}
}

// step steps the replica through what is no record of the log.
func (o *Owner) step(in replica.Input) { o.taken(in) }

// taken steps the replica. A record that it does not take is offered again when a checkpoint is saved.
func (o *Owner) taken(in replica.Input) bool {
	if o.fatal != nil {
		return true
	}
	ok := o.core.Step(in, o.now(), &o.fx)
	switch {
	case o.fx.Halt != nil:
		o.fatal = fmt.Errorf("%w: %w", ErrUnreadable, o.fx.Halt)
	case o.fx.TakenOver:
		o.fatal = turn.ErrTakenOver
	}
	return ok
}

// beat does what is due now and then.
func (o *Owner) beat() {
	o.endSilent()
	o.waiters.expire(o.core, o.now())
	subject, load := o.loadReport()
	if o.omitted = !o.omitted && bytes.Equal(load, o.reported); !o.omitted { // of those that say the same every second one is left out
		o.reported = load
		o.Wire.Publish(subject, load)
	}
	o.reportStored()
	o.ended.Hint(o.Partitioning, o.Wire.Publish)
	o.readQueues()
	if o.Report != nil {
		o.Report(o.standing())
	}
	o.countCapped()
	for lane := range ids.Lane(ids.Lanes) {
		if !o.core.Room(lane) {
			o.readers.count(lane, o.core.ReadLevels()[lane])
		}
	}
}

// drain finishes what was begun when the owner leaves. It keeps the lease, without which nothing is written.
func (o *Owner) drain() error {
	ctx, cancel := context.WithTimeout(context.Background(), o.Config.DrainTimeout)
	defer cancel()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	o.step(replica.Draining{})
	for !o.core.Idle() || !o.turns.Idle() {
		o.flush()
		if o.fatal != nil {
			return o.fatal
		}
		select {
		case c := <-o.calls:
			c.do()
		case <-beat.C:
			o.step(replica.Tick{})
		case <-ctx.Done():
			o.Logger.Warn("the history partition stopped with pending writes; the next owner repeats them", "partition", o.Partition)
			return nil
		}
	}
	o.flush()
	cp := o.core.Checkpoint()
	if _, err := o.saver.save(ctx, &cp); err != nil && !errors.Is(err, ErrTakenOver) {
		o.Logger.Warn("the last checkpoint was not saved; the next owner replays more", "partition", o.Partition, "error", err)
	}
	return nil
}
