package schedules

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/runs"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

const (
	// decisionsMax bounds the schedules that are decided at a time, decisionTimeout one decision.
	decisionsMax    = 16
	decisionTimeout = 10 * time.Second
	// tryAgainMS is how soon a schedule is tried again that could not be decided.
	tryAgainMS = 1000
	// storedMax bounds what was read of the log and waits for the keeper.
	storedMax = 256
)

// Deps is what a keeper works with. All fields are required, but for Tracing.
type Deps struct {
	// Partition is the home of its schedules.
	Partition int
	Store     Store
	History   History
	// LogVersion is the version to write.
	LogVersion func() uint32
	// Takes reports whether a task may be submitted now: the log has room, its domain exists, and nothing of it is drained.
	Takes func(task *logv1.Record) bool
	// Now is the time of the log, at most: nothing runs early by it.
	Now     func() time.Time
	Metrics Metrics
	Tracing *telemetry.Tracing
	// TraceRatio is the share of a domain's traces that are recorded; nil = the sampler of the process decides.
	TraceRatio func(domain string) *float64
	Log        *slog.Logger
}

// Metrics count the runs of a partition by their outcome, and tell how late one of the calendar started that was not missed. The funcs must be quick.
type Metrics struct {
	Started, Skipped, Missed func(n int)
	Late                     func(by time.Duration)
}

// Keeper decides schedules.
type Keeper struct {
	Deps
	agenda *agenda
}

// New makes a keeper.
func New(d Deps) *Keeper { return &Keeper{Deps: d, agenda: newAgenda()} }

type change struct {
	name Name
	Loaded
}

// decision is one that has ended.
type decision struct {
	entry *entry
	// seq is that of the message that it has left; 0 = it is not known.
	seq uint64
	// at is when to decide again, ok whether to. absent: there is no such schedule.
	at         int64
	ok, absent bool
}

// Run keeps until ctx ends. An error says that the log holds a version that this program cannot read.
func (k *Keeper) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changes, ended, failed := make(chan change, storedMax), make(chan decision), make(chan error, 1)
	go func() {
		failed <- k.Store.Follow(ctx, func(n Name, l Loaded) error {
			select {
			case changes <- change{n, l}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for open := 0; ; {
		select {
		case c := <-changes:
			k.changed(c)
		case d := <-ended:
			open--
			if d.absent {
				k.agenda.absent(d.entry, k.nowMS())
			} else {
				k.agenda.decided(d.entry, d.seq, k.nowMS(), d.at, d.ok)
			}
		case <-timer.C:
		case err := <-failed:
			if ctx.Err() != nil {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
		open += k.begin(ctx, decisionsMax-open, ended)
		wait := time.Hour
		if at, ok := k.agenda.next(); ok && open < decisionsMax {
			wait = max(time.Duration(at-k.nowMS())*time.Millisecond, time.Millisecond)
		}
		timer.Reset(wait)
	}
}

// changed takes in a schedule as it was stored.
func (k *Keeper) changed(c change) {
	if c.Home.Deleted {
		k.agenda.removed(c.name)
		return
	}
	p, err := PlanOf(c.name, c.Home)
	if err != nil {
		k.Log.Error("a schedule cannot be read, and makes no runs", "partition", k.Partition, "domain", c.name.Domain, "schedule", c.name.Schedule, "error", err)
		k.agenda.stored(c.name, c.Seq, 0, false)
		return
	}
	state := stateOf(c.Home)
	now := k.nowMS()
	at, ok := state.Wake(p.policy, p.calendar, now)
	if state.Ready(p.policy, now) {
		at, ok = now, true
	}
	k.agenda.stored(c.name, c.Seq, at, ok)
}

// begin begins decisions that are due, and returns how many.
func (k *Keeper) begin(ctx context.Context, most int, ended chan<- decision) int {
	if most <= 0 {
		return 0
	}
	all := k.agenda.take(k.nowMS(), most)
	for _, e := range all {
		go func() {
			d := k.decide(ctx, e.name)
			d.entry = e
			select {
			case ended <- d:
			case <-ctx.Done():
			}
		}()
	}
	return len(all)
}

func (k *Keeper) nowMS() int64 { return k.Now().UnixMilli() }

// decide decides a schedule once.
func (k *Keeper) decide(ctx context.Context, n Name) decision {
	ctx, cancel := context.WithTimeout(ctx, decisionTimeout)
	defer cancel()
	d, err := k.tryDecide(ctx, n)
	switch {
	case err == nil:
		return d
	case !errors.Is(err, ErrChanged) && ctx.Err() == nil:
		k.Log.Warn("a schedule could not be decided, trying again", "partition", k.Partition, "domain", n.Domain, "schedule", n.Schedule, "error", err)
	}
	again := decision{at: k.nowMS(), ok: true}
	if !errors.Is(err, ErrChanged) {
		again.at += tryAgainMS
	}
	return again
}

func (k *Keeper) tryDecide(ctx context.Context, n Name) (decision, error) {
	was, err := k.Store.Load(ctx, n)
	if err != nil {
		return decision{}, err
	}
	if was == nil || was.Home.Deleted {
		return decision{absent: true}, nil
	}
	p, err := PlanOf(n, was.Home)
	if err != nil {
		return decision{}, err
	}
	if !k.Takes(was.Home.Task) { // runs wait, and may be missed
		return decision{seq: was.Seq, at: k.nowMS() + tryAgainMS, ok: true}, nil
	}
	ended, err := k.ended(ctx, p)
	if err != nil {
		return decision{}, err
	}
	now := k.Now()
	made := p.Decide(now.UnixMilli(), ended, func() ids.TaskID { return newID(k.Partition, now) }, k.LogVersion())
	seq := was.Seq
	if made.Home != nil {
		spans := make([]trace.Span, len(made.Tasks))
		for i, task := range made.Tasks {
			spans[i], task.Trace = k.trace(task, n, now)
		}
		if seq, err = k.Store.Change(ctx, n, was.Seq, made.Home, made.Tasks); err != nil {
			return decision{}, err
		}
		for _, span := range spans {
			span.End(trace.WithTimestamp(k.Now()))
		}
		k.report(&made)
	}
	for _, id := range made.Cancel {
		if err := k.History.Cancel(n.Domain, id); err != nil {
			return decision{}, err
		}
	}
	return decision{seq: seq, at: made.WakeMS, ok: made.Wakes}, nil
}

// trace begins the trace of a run. The span is lost unless it is known that the run is stored.
func (k *Keeper) trace(t *logv1.Record, n Name, now time.Time) (trace.Span, []byte) {
	about := signals.Task{Domain: t.Domain, Tasklist: t.Tasklist, Type: t.Type, ID: ids.TaskID(t.Id).String(), Partition: k.Partition}
	return k.Tracing.Begin(k.TraceRatio(n.Domain), signals.SpanSchedule, signals.SpanKind(signals.SpanSchedule), now,
		about.Attributes(signals.SpanSchedule, signals.Attribute(signals.Schedule, n.Schedule))...)
}

// ended asks which tasks of a schedule have ended, if that matters now. The first one that has not is enough: the runs that are due do not start.
func (k *Keeper) ended(ctx context.Context, p *Plan) (map[ids.TaskID]bool, error) {
	all := map[ids.TaskID]bool{}
	for _, id := range p.Asks(k.nowMS()) {
		over, err := k.History.Ended(ctx, p.name.Domain, id)
		if err != nil {
			return nil, err
		}
		if !over {
			break
		}
		all[id] = true
	}
	return all, nil
}

func (k *Keeper) report(d *Decision) {
	for _, r := range d.started {
		if late := r.StartMS - r.AtMS; r.Reason == runs.Scheduled && late < runs.MissedAfterMS {
			k.Metrics.Late(time.Duration(late) * time.Millisecond)
		}
	}
	k.Metrics.Started(len(d.started))
	k.Metrics.Skipped(int(d.behind.Skipped - d.before.Skipped))
	k.Metrics.Missed(int(d.behind.Missed - d.before.Missed))
}
