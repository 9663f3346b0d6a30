package firing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/due"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/batcher"
	"github.com/yardmaster-io/yardmaster/shared/turns"
)

// Deps is what an Owner needs. All fields but StorageFull and Weight are required.
type Deps struct {
	Store  Store
	Pruner Pruner
	Log    Log
	// Quarantine sets a message of the store apart that is malformed, or a part of
	// it; repeated, it does so once.
	Quarantine func(ctx context.Context, m Stored, reason string) error
	// LogVersion is the log version to write.
	LogVersion func() uint32
	// StorageFull tells why the log has no room for further tasks, "" if it has; nil = it always has.
	StorageFull func() string
	Config      Config
	Gauges      Gauges
	Logger      *slog.Logger
	// Weight is how many turns a domain that has much overdue has for each one of others like it; nil = all have as many.
	Weight func(domain string) int
	// Now is the time of the log, at most: nothing fires early by it.
	Now func() time.Time
}

// Gauges receive the state of the partition; the funcs must be quick.
type Gauges struct {
	// Waiting is how many tasks wait, and how many of them are in memory.
	Waiting func(all, near int)
	// Next is when the next task is due, Unix ms; 0 = none waits. If none is in memory, it is the minute of the next one.
	Next func(dueMS int64)
	// Loaded tells how long it took to bring buckets into memory.
	Loaded func(took time.Duration)
	// Fired counts fired tasks, and tells how late they were.
	Fired func(n int, late time.Duration)
	// Appended tells how long the log took to store due tasks, or a cursor.
	Appended func(took time.Duration)
	// Early counts tasks fired before they were due.
	Early func(n int)
	// Outdated counts tasks that are void because a replaced history owner wrote them.
	Outdated func(n int)
}

// Owner serves one partition, once: Load, then Run. A new ownership is a new Owner.
type Owner struct {
	Deps
	limits   due.Limits
	arrivals chan arrival
	asks     chan func()
	ended    chan struct{}
	// searches, locates and earlies are the callers that take turns by domain, each kind its own.
	searches, locates, earlies *turns.Line
	// ends has all who wait for the store's end share what is read of it.
	ends *batcher.Batcher[chan end]

	// Of the loop alone, and of Load before it.
	table *due.Table
	cache *cache
	// readTo: all that is in the store up to here is in the table.
	readTo uint64
	// versionRead is the newest log version of the messages read so far.
	versionRead uint32
	// cursorSeq is the sequence of the cursor that the next append builds upon.
	cursorSeq uint64
	retryAt   time.Time
	retry     *backoff.Backoff
	// cursors counts those written since the old ones were removed.
	cursors int
	// loads is the reading of buckets that come near.
	loads sync.WaitGroup
	// isWhole: all of the store was loaded; whole is closed then. Until then only what was loaded first fires, and callers wait.
	isWhole bool
	whole   chan struct{}
}

// New makes the owner of a partition.
func New(d Deps) *Owner {
	table := d.Config.Table()
	table.Weight = d.Weight
	o := &Owner{
		retry:    backoff.New(retryFirst, retryLast),
		Deps:     d,
		limits:   d.Config.Limits(),
		arrivals: make(chan arrival, arrivalsMax),
		asks:     make(chan func(), arrivalsMax),
		ended:    make(chan struct{}),
		whole:    make(chan struct{}),
		searches: turns.NewLine(turns.Config{Most: searchersMax, Rest: 1}),
		locates:  turns.NewLine(turns.Config{AtOnce: locatingMax, Most: locatersMax}),
		earlies:  turns.NewLine(turns.Config{Most: earlyMax, Rest: 1}),
		table:    due.New(table),
		cache:    newCache(d.Config.CacheBytes),
		cursors:  cursorsKept,
	}
	o.ends = batcher.New(batcher.Config{InFlight: 1, BatchMax: endsTogether, QueuedMax: endsQueued}, o.findEnd)
	return o
}

// Load reads which tasks were fired, and then the store: all of it, or what is due soon, and Run reads the rest. If another owner fires meanwhile, this one
// has an old cursor, and all that it stores is refused.
func (o *Owner) Load(ctx context.Context) error {
	began := time.Now()
	cursor, seq, err := o.Log.Cursor(ctx)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	end, err := o.Store.Last(ctx)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if covered := cursor.Seq(); covered > end {
		return fmt.Errorf("load: the firing cursor covers messages up to %d, but the timer store ends at %d: "+
			"it was created again, and its tasks would be taken for fired; remove the cursor", covered, end)
	}
	o.table.Resume(cursor, rand.Uint64(), o.Now().UnixMilli())
	rest, err := restReader{o}.loadFirst(ctx, cursor.EarlyFrom, end)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	o.table.Loaded()
	o.readTo, o.cursorSeq = end, seq
	if o.Logger.Info("tasks that are due soon are loaded", "tasks", o.table.Near(), "messages_up_to", end, "duration", time.Since(began)); !rest {
		restReader{o}.becomeWhole()
	}
	return nil
}

// Run fires what is due until ctx ends; a chunk being stored is finished first.
// It must be called once, after Load. It returns nil when ctx has ended.
func (o *Owner) Run(parent context.Context) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	var parts sync.WaitGroup
	from := o.readTo + 1
	parts.Go(func() {
		if err := o.read(ctx, from); err != nil {
			stop(err)
		}
	})
	parts.Go(func() {
		if err := (restReader{o}).loadRest(ctx, from-1); err != nil {
			stop(err)
		}
	})
	parts.Go(func() {
		if err := o.purge(ctx); err != nil {
			stop(err)
		}
	})
	stop(o.loop(ctx)) // an earlier cause, such as the reader's, stays
	close(o.ended)
	parts.Wait()
	o.loads.Wait()
	if parent.Err() != nil {
		return nil
	}
	return context.Cause(ctx)
}

// read hands the loop what is written from now on.
func (o *Owner) read(ctx context.Context, from uint64) error {
	return o.Store.Read(ctx, from, func(m Stored) error {
		a, err := o.decode(ctx, m)
		if err != nil {
			return err
		}
		if len(a.index.Early) > 0 { // of an owner that does not know that it is superseded
			select {
			case <-o.whole:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case o.arrivals <- a:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// loop is the only goroutine that touches the table.
func (o *Owner) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		farReader{o}.approach(ctx)
		if err := o.drain(ctx); err != nil {
			return err
		}
		fired, err := o.fire(ctx)
		if err != nil {
			return err
		}
		o.report()
		if ctx.Err() != nil {
			return nil
		}
		if fired {
			continue
		}
		if in, ok := o.wakeIn(); ok {
			timer.Reset(max(1, in))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case a := <-o.arrivals:
			farReader{o}.approach(ctx) // time has passed, and what is due soon need not be read from the store again
			if err := o.arrive(ctx, a); err != nil {
				return err
			}
		case do := <-o.asks:
			do()
		case <-timer.C:
		}
	}
}

// drain handles what has come meanwhile, and not more: firing must go on.
func (o *Owner) drain(ctx context.Context) error {
	for range arrivalsMax {
		select {
		case a := <-o.arrivals:
			if err := o.arrive(ctx, a); err != nil {
				return err
			}
		case do := <-o.asks:
			do()
		default:
			return nil
		}
	}
	return nil
}

// arrive takes a message into the index, and keeps what is due soon at hand. It fails if ctx ends.
func (o *Owner) arrive(ctx context.Context, a arrival) error {
	if err := (farReader{o}).bringEarly(ctx, &a.index); err != nil {
		return err
	}
	restReader{o}.reportVoid(&a.index, o.table.Load(a.index))
	o.versionRead = max(o.versionRead, a.version)
	o.readTo = max(o.readTo, a.index.Seq)
	if a.firstDueMS < o.Now().Add(cacheAhead).UnixMilli() {
		o.cache.put(a.index.Seq, a.body, a.body.Records())
	}
	return nil
}

// wakeIn is after how long something is to be done though nothing comes.
func (o *Owner) wakeIn() (time.Duration, bool) {
	dueMS, ok := o.table.Next()
	in := max(time.UnixMilli(dueMS).Sub(o.Now()), time.Until(o.retryAt))
	if o.table.Len() == o.table.Near() {
		return in, ok
	}
	approach := max(time.UnixMilli(o.table.Far().ApproachMS()).Sub(o.Now()), approachEvery)
	if !ok || in > approach {
		in = approach
	}
	return in, true
}

func (o *Owner) report() {
	if !o.isWhole {
		return
	}
	o.Gauges.Waiting(o.table.Len(), o.table.Near())
	at, ok := o.table.Next()
	if !ok {
		at, _ = o.table.Counts().FirstFarMS()
	}
	o.Gauges.Next(at)
}

// end is the store's last sequence, or why it is not known.
type end struct {
	seq uint64
	err error
}

// findEnd finds the end of the store for all who ask together.
func (o *Owner) findEnd(ctx context.Context, asking []chan end) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	seq, err := o.Store.Last(ctx)
	for _, to := range asking {
		to <- end{seq, err}
	}
}

// catchUp waits until the loop knows all that was in the store when it was called.
// Without it a task that history has just parked would seem to be nowhere. However many wait, the store is asked for one answer at a time.
func (o *Owner) catchUp(ctx context.Context) error {
	found := make(chan end, 1)
	if err := o.ends.Add("", found, 1); err != nil {
		return err
	}
	end := <-found
	if end.err != nil {
		return end.err
	}
	for wait := backoff.New(catchUpFirst, catchUpWait); ; {
		caughtUp := false
		if err := o.ask(ctx, func() { caughtUp = o.readTo >= end.seq }); err != nil || caughtUp {
			return err
		}
		if !wait.Sleep(ctx) {
			return ctx.Err()
		}
	}
}

// ErrNotServing: the owner has ended; another one will answer.
var ErrNotServing = errors.New("the owner of the timer partition has ended")

// ask has the loop call do when all of the store was loaded, and waits for it. After an error do may still be called, or run just now: what it
// sets is not to be read then.
func (o *Owner) ask(ctx context.Context, do func()) error {
	select {
	case <-o.whole:
		return restReader{o}.askNow(ctx, do)
	case <-o.ended:
		return ErrNotServing
	case <-ctx.Done():
		return ctx.Err()
	}
}
