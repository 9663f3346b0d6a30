package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

const (
	// pollDefault is how often a relay looks for rows that no kick has announced.
	pollDefault = time.Second
	// firstTry bounds the first try of a request, repeatTry any other: the engine answers those after up to 10 s.
	firstTry, repeatTry = 5 * time.Second, 12 * time.Second
	// turnWithin bounds a call of the database.
	turnWithin = 10 * time.Second
	// Waits after trouble double from the first to the last, and are spread over their upper half.
	waitFirst, waitLast = 100 * time.Millisecond, 5 * time.Second
	// rowsFirst is how many rows the first request of a lane reads.
	rowsFirst = 64
)

// Options change the defaults of a relay.
type Options struct {
	// Every is how often the relay looks for rows that no kick has announced. Default 1 s.
	Every time.Duration
	// Log gets a line if a relay waits, goes on, or sets rows aside. Default: slog.Default().
	Log *slog.Logger
}

// Relay carries the rows of a domain to the engine. Any number of relays may run, in any number of processes.
type Relay struct {
	store  store
	submit func(ctx context.Context, req *yardv1.SubmitRequest) (*yardv1.SubmitResponse, error)
	// subscribe calls kicked for each kick, until stop is called.
	subscribe func(kicked func()) (stop func(), err error)
	every     time.Duration
	log       *slog.Logger
	// bytesMax is how large a request may become on this connection.
	bytesMax func() int
	// clock is how far the engine's clock is ahead of ours, ns.
	clock atomic.Int64
	// waiting counts lanes in trouble.
	waiting atomic.Int32
}

// NewRelay makes a relay of an outbox. The client is of the same domain, else the error is INVALID_ARGUMENT.
func NewRelay(o *Outbox, db *sql.DB, client *yard.Client, opts Options) (*Relay, error) {
	if client.Domain() != o.domain {
		return nil, fault.At(fault.InvalidArgument, "/domain", "the client is of %q, the outbox of %q", client.Domain(), o.domain)
	}
	r := &Relay{
		store:    &sqlStore{Outbox: o, db: db, owner: ids.NewRequestID(time.Now()).String()},
		submit:   client.Wire().SubmitOnce,
		bytesMax: func() int { return fitting(yard.Conn(client).MaxPayload()) },
		subscribe: func(kicked func()) (func(), error) {
			sub, err := yard.Conn(client).Subscribe(topology.OutboxHint(o.domain), func(*nats.Msg) { kicked() })
			if err != nil {
				return nil, err
			}
			return func() { _ = sub.Unsubscribe() }, nil // an error means that the connection is closed
		},
		every: cmp.Or(opts.Every, pollDefault),
		log:   cmp.Or(opts.Log, slog.Default()).With("domain", o.domain),
	}
	return r, nil
}

// Run carries rows until ctx ends. It waits for what is under way, at most 12 s. It returns nil.
func (r *Relay) Run(ctx context.Context) error {
	wake := make(chan struct{}, 1)
	kick := func() {
		select {
		case wake <- struct{}{}:
		default: // one is enough
		}
	}
	if stop, err := r.subscribe(kick); err != nil {
		r.log.Warn("kicks are not heard, rows wait for the poll", "error", err)
	} else {
		defer stop()
	}
	poll := time.NewTicker(r.every)
	defer poll.Stop()
	var busy laneSet
	defer busy.wait()
	trouble := newTrouble()
	prepared := false
	for {
		lanes, err := r.lanes(ctx, &prepared)
		for _, lane := range lanes {
			busy.start(lane, func() {
				if err := r.carry(ctx, lane, false); err != nil {
					r.log.Warn("a lane was left", "lane", lane, "error", err)
					return // the next poll tries again
				}
				kick() // rows may have come meanwhile
			})
		}
		if err != nil && ctx.Err() == nil {
			wait := trouble.next()
			r.log.Warn("the database does not answer", "error", err, "retry_in", wait)
			sleep(ctx, wait)
		} else {
			trouble = newTrouble()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-poll.C:
		}
	}
}

// Once carries the rows that wait, and returns when none is left that this relay may take. It returns the first error, and
// leaves the rows of that lane to a later call.
func (r *Relay) Once(ctx context.Context) error {
	prepared := false
	for {
		lanes, err := r.lanes(ctx, &prepared)
		if err != nil || len(lanes) == 0 {
			return err
		}
		errs := make([]error, len(lanes))
		var all sync.WaitGroup
		for i, lane := range lanes {
			all.Go(func() { errs[i] = r.carry(ctx, lane, true) })
		}
		all.Wait()
		if err := cmp.Or(errors.Join(errs...), ctx.Err()); err != nil {
			return err
		}
	}
}

// lanes are those with work, after the first call has made them.
func (r *Relay) lanes(ctx context.Context, prepared *bool) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, turnWithin)
	defer cancel()
	if !*prepared {
		if err := r.store.prepare(ctx); err != nil {
			return nil, err
		}
		*prepared = true
	}
	return r.store.ready(ctx)
}

// carry carries the rows of a lane until it is empty, another relay has it, or ctx ends. If once is set, the first trouble ends it, too.
func (r *Relay) carry(ctx context.Context, lane int, once bool) error {
	var last *outcome
	rowsMax, wait := rowsFirst, newTrouble()
	for ctx.Err() == nil {
		req, err := r.turn(ctx, lane, last, rowsMax)
		if err != nil || req == nil {
			r.goesOn(wait)
			if errors.Is(err, errTaken) {
				return nil
			}
			return err
		}
		v := r.send(ctx, req)
		r.report(v)
		last = v.outcome
		if rowsMax = min(2*len(req.rows), tasksMax); v.smaller {
			rowsMax = len(req.rows) / 2
		}
		switch {
		case v.trouble == nil:
			r.goesOn(wait)
			wait = newTrouble()
		case once:
			return errors.Join(v.trouble, r.finish(ctx, lane, last))
		default:
			r.waits(ctx, lane, wait, v.trouble)
		}
	}
	r.goesOn(wait)
	return r.finish(ctx, lane, last)
}

// turn is a turn of a lane, which ends with it and not with ctx.
func (r *Relay) turn(ctx context.Context, lane int, last *outcome, rowsMax int) (*request, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnWithin)
	defer cancel()
	return r.store.turn(ctx, lane, last, limits{rowsMax, r.bytesMax()}, func() string {
		return ids.NewRequestID(r.now()).String()
	})
}

// send sends a request once. It goes on when ctx ends: the answer spares the next relay a repeat.
func (r *Relay) send(ctx context.Context, req *request) verdict {
	tries, within := int32(1), firstTry
	if req.again {
		tries, within = 2, repeatTry
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	tasks := req.allTasks()
	due(tasks, r.now())
	resp, err := r.submit(ctx, &yardv1.SubmitRequest{RequestId: req.id, Tries: tries, Tasks: tasks})
	v := decide(req, r.now(), resp, err)
	if v.nowMs > 0 {
		r.clock.Store(int64(time.Until(time.UnixMilli(v.nowMs))))
	}
	return v
}

// now is the time of the engine.
func (r *Relay) now() time.Time { return time.Now().Add(time.Duration(r.clock.Load())) }

// report logs rows that are set aside.
func (r *Relay) report(v verdict) {
	if v.outcome == nil {
		return
	}
	for _, a := range v.outcome.aside {
		r.log.Error("a row was set aside", "key", a.row, "state", a.state.String(), "reason", a.reason)
	}
}

// finish writes the last outcome of a lane when the relay stops, and leaves the lane to others.
func (r *Relay) finish(ctx context.Context, lane int, last *outcome) error {
	var err error
	if last != nil {
		_, err = r.turn(ctx, lane, last, 0)
	}
	return errors.Join(err, r.leave(ctx, lane))
}

func (r *Relay) leave(ctx context.Context, lane int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), turnWithin)
	defer cancel()
	return r.store.leave(ctx, lane)
}

// waits waits after trouble. The first lane in trouble logs it.
func (r *Relay) waits(ctx context.Context, lane int, t *troubles, err error) {
	if t.tries == 0 && r.waiting.Add(1) == 1 {
		r.log.Warn("the engine takes no tasks now: the relay tries again", "lane", lane, "error", err)
	}
	sleep(ctx, max(t.next(), min(fault.From(err).RetryAfter, waitLast)))
}

// goesOn ends the trouble of a lane. The last lane logs it.
func (r *Relay) goesOn(t *troubles) {
	if t.tries > 0 && r.waiting.Add(-1) == 0 {
		r.log.Info("the relay goes on")
	}
}

// troubles counts failures in a row.
type troubles struct{ tries int }

func newTrouble() *troubles { return &troubles{} }

// next is the wait after one more failure.
func (t *troubles) next() time.Duration {
	d := min(waitFirst<<min(t.tries, 10), waitLast)
	t.tries++
	return d/2 + rand.N(d/2+1)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// laneSet is the lanes that are carried now.
type laneSet struct {
	mu   sync.Mutex
	busy [lanes]bool
	all  sync.WaitGroup
}

// start runs do for a lane, unless it runs.
func (s *laneSet) start(lane int, do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[lane] {
		return
	}
	s.busy[lane] = true
	s.all.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.busy[lane] = false
		}()
		do()
	})
}

func (s *laneSet) wait() { s.all.Wait() }
