package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// instant runs W4: delayed tasks that are all due at one instant, with workers that wait for them.
func (l *load) instant(ctx context.Context) (report.Result, error) {
	t := l.newTimers(domain, time.Now().Add(w4Lead+time.Duration(l.tasks)*w4LeadPerTask), 0)
	before, err := l.target.read(ctx)
	if err != nil {
		return report.Result{}, err
	}
	if err := t.run(ctx); err != nil {
		return report.Result{}, err
	}
	r, err := l.target.since(ctx, before, l.tasks, time.Now())
	r.Timers = t.report()
	r.TasksPerSecond = r.Timers.DonePerSecond
	return r, err
}

// timers runs W6: delayed tasks of one domain that are due in equal distances, beside tasks of another domain that are due at once. First the
// other domain is alone.
func (l *load) timers(ctx context.Context) (report.Result, error) {
	if err := l.target.domains(ctx, []string{floodDomain}, topology.RetentionMin); err != nil {
		return report.Result{}, err
	}
	window, lead := time.Duration(l.tasks)*time.Second/w6Rate, w4Lead+time.Duration(l.tasks)*w6LeadPerTask
	quiet, err := (&load{target: l.target, tasks: max(l.tasks*w6QuietSeconds/w6Seconds*w6OthersRate/w6Rate, 10)}).latency(ctx, w6OthersRate)
	if err != nil {
		return report.Result{}, fmt.Errorf("alone: %w", err)
	}
	l.say("alone: start %s", quiet.Start)
	before, err := l.target.read(ctx)
	if err != nil {
		return report.Result{}, err
	}
	t := l.newTimers(floodDomain, time.Now().Add(lead), window)
	others := &load{target: l.target, tasks: max(int((lead+window).Seconds()*w6OthersRate), 10)}
	beside, err := others.beside(ctx, w6OthersRate, t.run)
	if err != nil {
		return report.Result{}, err
	}
	r, err := l.target.since(ctx, before, l.tasks, time.Now())
	r.Start, r.Submit, r.Timers = beside.Start, beside.Submit, t.report()
	r.Timers.QuietStart, r.Timers.OthersP99s = quiet.Start, others.p99s[min(int(lead.Seconds()), len(others.p99s)):]
	r.TasksPerSecond = r.Timers.DonePerSecond
	return r, err
}

// timers are delayed tasks, the polls that take them, and how late each was.
type timers struct {
	load   *load
	domain string
	from   time.Time
	window time.Duration
	stored atomic.Int64 // Unix ns of the last answer of a submit
	began  time.Time

	mu    sync.Mutex
	late  []time.Duration
	fired [][]time.Duration // how late, by the second in which a task was due
	early int
}

// newTimers makes as many as the load has tasks, due from an instant on within a window.
func (l *load) newTimers(domain string, from time.Time, window time.Duration) *timers {
	t := &timers{
		load:   &load{target: l.target, tasks: l.tasks, progress: l.progress, brief: true},
		domain: domain, from: from.Truncate(time.Millisecond), window: window, began: time.Now(),
		fired: make([][]time.Duration, max(1, int(window.Round(time.Second)/time.Second))),
	}
	t.load.polled = t.take
	return t
}

// run submits all, and returns when all are completed.
func (t *timers) run(ctx context.Context) error {
	clients, err := t.load.target.clients([]string{t.domain})
	if err != nil {
		return err
	}
	workers, err := t.load.target.clients([]string{t.domain})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var polling, producing sync.WaitGroup
	t.load.poll(ctx, cancel, &polling, workers)
	requests := new(atomic.Int64)
	for i := range bulk.producers {
		producing.Go(func() {
			for from := range t.load.requests(requests) {
				ids, err := clients[i%len(clients)].SubmitMany(ctx, t.some(from))
				t.load.accepted.add(ids)
				if err != nil {
					cancel(fmt.Errorf("submit: %w", err))
					return
				}
			}
		})
	}
	producing.Wait()
	t.stored.Store(time.Now().UnixNano())
	t.load.say("%d delayed tasks are stored after %.1f s", t.load.accepted.n.Load(), time.Since(t.began).Seconds())
	if context.Cause(ctx) == nil && time.Now().After(t.from) {
		cancel(fmt.Errorf("the submits took until %v after the first task was due", time.Since(t.from).Round(time.Millisecond)))
	}
	sleepUntil(ctx, t.from)
	t.load.await(ctx, cancel)
	failed := context.Cause(ctx)
	t.load.over.Store(true)
	polling.Wait()
	if t.early > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d tasks came before they were due", t.early))
	}
	if failed != nil {
		return failed
	}
	return t.load.proof()
}

// requests are the numbers of the first tasks of requests, which producers share.
func (l *load) requests(next *atomic.Int64) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for {
			from := int(next.Add(int64(bulk.request))) - bulk.request
			if from >= l.tasks || !yield(from) {
				return
			}
		}
	}
}

// some are the tasks of a request. The instant of a task is at the end of its payload.
func (t *timers) some(from int) []yard.Task {
	tasks := t.load.target.some(from, min(bulk.request, t.load.tasks-from))
	for i := range tasks {
		due := t.from.Add(t.window * time.Duration(from+i) / time.Duration(t.load.tasks)).Truncate(time.Millisecond)
		tasks[i].RunAt = due
		tasks[i].Payload = binary.BigEndian.AppendUint64(slices.Clone(filler[8:]), uint64(due.UnixMilli()))
	}
	return tasks
}

// take notes how late tasks came.
func (t *timers) take(tasks []*yardv1.PolledTask) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, task := range tasks {
		data := task.Payload.GetData()
		due := time.UnixMilli(int64(binary.BigEndian.Uint64(data[len(data)-8:])))
		late := now.Sub(due)
		if late < 0 {
			t.early++
		}
		t.late = append(t.late, late)
		second := min(max(int(due.Sub(t.from)/time.Second), 0), len(t.fired)-1)
		t.fired[second] = append(t.fired[second], late)
	}
}

// report says what they were.
func (t *timers) report() *report.Timers {
	last := time.Unix(0, t.load.last.Load())
	out := &report.Timers{
		Tasks: t.load.tasks, WindowSeconds: t.window.Seconds(),
		StoredPerSecond: report.Round(float64(t.load.tasks) / time.Unix(0, t.stored.Load()).Sub(t.began).Seconds()),
		DonePerSecond:   report.Round(float64(t.load.tasks) / max(last.Sub(t.from), time.Millisecond).Seconds()),
		Late:            report.QuantilesOf(t.late),
	}
	for _, second := range t.fired {
		p99 := 0.0
		if len(second) > 0 {
			p99 = report.QuantilesOf(second).P99
		}
		out.Fired, out.LateP99s = append(out.Fired, len(second)), append(out.LateP99s, p99)
	}
	return out
}
