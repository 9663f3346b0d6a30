package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// The groups of W11.
const (
	smallGroup = "small"
	floodGroup = "flood"
)

// weights are those of the groups that share a worker, in W11.
var weights = [...]float64{1, 2, 4, 0}

func weightGroup(i int) string { return fmt.Sprint("weight-", weights[i]) }

// fairness runs W11: a few tasks of a small group, alone, beside a flood of another group, and beside a flood of another
// domain; then groups of several weights that are all ready. All phases see the same machine, so their difference is what a
// flood costs.
func (l *load) fairness(ctx context.Context) (report.Result, error) {
	if err := l.target.domains(ctx, []string{floodDomain}, topology.RetentionMin); err != nil {
		return report.Result{}, err
	}
	clients, err := l.target.clients([]string{domain, floodDomain})
	if err != nil {
		return report.Result{}, err
	}
	own, other := clients[0], clients[1]
	for i, w := range weights { // they count for tasks that are ready a second later
		if _, err := own.PutGroup(ctx, yard.Group{Name: weightGroup(i), Description: "yard bench", Weight: w, Idle: w == 0}); err != nil {
			return report.Result{}, fmt.Errorf("group %s: %w", weightGroup(i), err)
		}
	}
	quiet, err := l.small(ctx, own, nil)
	if err != nil {
		return report.Result{}, fmt.Errorf("alone: %w", err)
	}
	r, err := l.small(ctx, own, own)
	if err != nil {
		return report.Result{}, fmt.Errorf("beside a group: %w", err)
	}
	beside, err := l.small(ctx, own, other)
	if err != nil {
		return report.Result{}, fmt.Errorf("beside a domain: %w", err)
	}
	f := &report.Fairness{
		Small: w11Rate, FloodPerSecond: r.TasksPerSecond, QuietStart: *quiet.Start, DomainStart: *beside.Start,
		GroupRatio: report.Round(r.Start.P99 / quiet.Start.P99), DomainRatio: report.Round(beside.Start.P99 / quiet.Start.P99),
	}
	if f.Shares, f.ZeroEarly, err = l.shares(ctx, own); err != nil {
		return report.Result{}, fmt.Errorf("weights: %w", err)
	}
	r.Tasks, r.Fairness = l.tasks, f
	return r, nil
}

// small runs one phase: tasks of the small group in an open loop, while the flood lasts where there is one, else as long as it would.
// Workers are slow, so that the flood waits: each task takes its time, and a domain has one worker.
func (l *load) small(ctx context.Context, own, flood *yard.Client) (r report.Result, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &load{target: l.target}
	seen, floodLeft := newStarts(max(l.tasks/w11PerSmall, w11SmallMin)), new(atomic.Int64)
	handle := func(ctx context.Context, a *yard.Attempt) (yard.Payload, error) {
		if a.Group == smallGroup {
			seen.begin(time.Now(), a.Payload.Data)
		} else {
			floodLeft.Add(-1)
		}
		sleepUntil(ctx, time.Now().Add(w11Takes))
		p.completed.add([]string{a.TaskID})
		return yard.Payload{}, nil
	}
	working := []*sync.WaitGroup{slowWorker(ctx, cancel, own, handle)}
	if flood != nil && flood != own {
		working = append(working, slowWorker(ctx, cancel, flood, handle))
	}
	before, err := l.target.read(ctx)
	if err != nil {
		return r, err
	}
	if flood != nil {
		floodLeft.Store(int64(l.tasks))
		if err := p.hand(ctx, flood, l.tasks, func(int) string { return floodGroup }); err != nil {
			return r, err
		}
	}
	var over func() bool
	if flood != nil {
		over = func() bool { return floodLeft.Load() <= 0 }
	}
	sent := p.target.openLoop(ctx, len(seen.called), w11Rate, over, func(i int, _ time.Time) {
		p.submit(ctx, cancel, own, seen, i, yard.Task{Type: typeName(0), Tasklist: tasklist, Group: smallGroup})
	})
	p.tasks = int(p.accepted.n.Load())
	p.await(ctx, cancel)
	r, err = l.target.since(ctx, before, p.tasks, time.Now())
	failed := context.Cause(ctx)
	cancel(errDone)
	for _, w := range working {
		w.Wait()
	}
	if err = errors.Join(failed, err, seen.err(), p.proof()); err != nil {
		return r, err
	}
	seen.began, seen.answered = seen.began[:sent], seen.answered[:sent]
	start, submit := seen.quantiles()
	r.Start, r.Submit = &start, &submit
	return r, nil
}

// hand submits n tasks of one type, each of the group that is named for it.
func (l *load) hand(ctx context.Context, c *yard.Client, n int, group func(i int) string) error {
	tasks := make([]yard.Task, n)
	for i := range tasks {
		tasks[i] = yard.Task{Type: typeName(0), Tasklist: tasklist, Group: group(i), Payload: filler}
	}
	ids, err := c.SubmitMany(ctx, tasks)
	l.accepted.add(ids)
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	return nil
}

// slowWorker runs a worker that handles few tasks at once.
func slowWorker(ctx context.Context, cancel context.CancelCauseFunc, c *yard.Client, handle yard.HandlerFunc) *sync.WaitGroup {
	return runWorker(ctx, cancel, c, tasklist, w11Concurrency, 1, handle)
}

// shares has as many tasks of each weight ready before the first one starts, and tells what each group had of the starts until one of a
// weight was done, and how many tasks of weight 0 started before all others had.
func (l *load) shares(ctx context.Context, c *yard.Client) (all []report.Share, zeroEarly int, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &load{target: l.target, tasks: l.tasks - l.tasks%len(weights)}
	if err := p.hand(ctx, c, p.tasks, func(i int) string { return weightGroup(i % len(weights)) }); err != nil {
		return nil, 0, err
	}
	if err := p.ready(ctx, c); err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex
	order := make([]string, 0, p.tasks)
	working := slowWorker(ctx, cancel, c, func(_ context.Context, a *yard.Attempt) (yard.Payload, error) {
		mu.Lock()
		order = append(order, a.Group)
		mu.Unlock()
		p.completed.add([]string{a.TaskID})
		return yard.Payload{}, nil
	})
	p.await(ctx, cancel)
	failed := context.Cause(ctx)
	cancel(errDone)
	working.Wait()
	if err := errors.Join(failed, p.proof()); err != nil {
		return nil, 0, err
	}
	all, zeroEarly = sharesOf(order, p.tasks/len(weights))
	return all, zeroEarly, nil
}

// ready waits until all tasks may start.
func (l *load) ready(ctx context.Context, c *yard.Client) error {
	return waitFor(ctx, stallAfter, 10*time.Millisecond, func() (bool, string, error) {
		d, err := describe(ctx, c)
		return int(d.GetReady()) >= l.tasks, fmt.Sprintf("%d of %d tasks are ready", d.GetReady(), l.tasks), err
	})
}

// sharesOf counts starts in their order, of each tasks for each group.
func sharesOf(order []string, each int) (all []report.Share, zeroEarly int) {
	counts, sum, total, left := map[string]int{}, 0.0, 0, each*(len(weights)-1)
	for _, w := range weights {
		sum += w
	}
	zero := weightGroup(len(weights) - 1)
	for _, group := range order {
		switch {
		case group == zero && left > 0:
			zeroEarly++
		case group != zero:
			left--
		}
		if all != nil || group == zero {
			continue
		}
		counts[group]++
		if total++; counts[group] < each {
			continue
		}
		for i, w := range weights[:len(weights)-1] {
			all = append(all, report.Share{Weight: w, Share: report.Round3(float64(counts[weightGroup(i)]) / float64(total)), Fair: report.Round3(w / sum)})
		}
	}
	return all, zeroEarly
}
