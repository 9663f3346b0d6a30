package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
)

// overload runs W7: tasks of ten small domains, alone, and beside a domain that floods, with a quota and then without one. Before the flood
// its domain is alone, which shows what this machine can do. If all phases see the same machine, their difference is what a flood
// costs; on a machine that others use it says nothing. The clients run in this process, too, and had 8 % of its CPU in a profile, without their
// connections.
func (l *load) overload(ctx context.Context) (report.Result, error) {
	small := many(w7Domains)
	if err := l.target.domains(ctx, slices.Concat(small, []string{floodDomain}), topology.RetentionMin); err != nil {
		return report.Result{}, err
	}
	beside := max(l.tasks*w7FloodSeconds/w7Seconds, 1)
	quiet, err := (&load{target: l.target, tasks: max(l.tasks-2*beside, 1), domains: small}).latency(ctx, w7Rate)
	if err != nil {
		return report.Result{}, fmt.Errorf("alone: %w", err)
	}
	l.say("alone: start %s", quiet.Start)
	alone, err := (&load{target: l.target, tasks: l.tasks * w7AlonePerTask, brief: true}).drain(ctx, floodShape)
	if err != nil {
		return report.Result{}, fmt.Errorf("the flooding domain alone: %w", err)
	}
	l.say("the flooding domain alone: %.0f tasks/s", alone.TasksPerSecond)
	capacity := alone.TasksPerSecond / float64(l.target.slower)
	o := &report.Overload{Domains: w7Domains, PerDomain: w7Rate / w7Domains, QuietStart: *quiet.Start, AlonePerSecond: report.Round(alone.TasksPerSecond)}
	flooded := func(out *report.Flood, quota float64) (report.Result, error) {
		out.Quota = int64(quota)
		r, err := l.flooded(ctx, &load{target: l.target, tasks: beside, domains: small}, capacity, out)
		if err == nil {
			out.Ratio = report.Round(r.Start.P99 / quiet.Start.P99)
			l.say("beside the flood: start %s, %s", r.Start, out)
		}
		return r, err
	}
	r, err := flooded(&o.WithQuota, max(capacity/w7QuotaPart, 1))
	if err != nil {
		return report.Result{}, fmt.Errorf("beside the flood with a quota: %w", err)
	}
	if _, err := flooded(&o.WithoutQuota, 0); err != nil {
		return report.Result{}, fmt.Errorf("beside the flood without a quota: %w", err)
	}
	r.Tasks, r.Overload = quiet.Tasks+2*beside, o
	return r, nil
}

// flooded runs one phase: tasks of the small domains beside the flood, until both are done. The result counts the tasks of both.
func (l *load) flooded(ctx context.Context, others *load, capacity float64, out *report.Flood) (report.Result, error) {
	f, err := l.newFlooder(capacity, time.Duration(others.tasks*l.target.slower)*time.Second/w7Rate)
	if err != nil {
		return report.Result{}, err
	}
	if err := f.bound(ctx, out.Quota); err != nil {
		return report.Result{}, err
	}
	before, err := l.target.read(ctx)
	if err != nil {
		return report.Result{}, err
	}
	small, err := others.beside(ctx, w7Rate, f.run)
	if err != nil {
		return report.Result{}, err
	}
	f.report(out)
	out.Start, out.Submit, out.P99s = *small.Start, *small.Submit, others.p99s
	r, err := l.target.since(ctx, before, others.tasks+f.load.tasks, time.Now())
	r.Start, r.Submit = small.Start, small.Submit
	return r, err
}

// say shows how a run goes on.
func (l *load) say(format string, args ...any) {
	if l.progress != nil {
		fmt.Fprintf(l.progress, "   "+format+"\n", args...)
	}
}
