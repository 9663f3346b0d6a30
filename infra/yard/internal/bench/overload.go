package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// overload runs W7: tasks of ten small domains, alone, and beside a domain that floods, with a quota and then without one. Before the flood
// its domain is alone, which shows what this machine can do. If all phases see the same machine, their difference is what a flood
// costs; on a machine that others use it says nothing. The clients run in this process, too, and had 8 % of its CPU in a profile, without their
// connections.
func (l *load) overload(ctx context.Context) (Result, error) {
	small := many(w7Domains)
	if err := l.target.domains(ctx, slices.Concat(small, []string{floodDomain}), topology.RetentionMin); err != nil {
		return Result{}, err
	}
	beside := max(l.tasks*w7FloodSeconds/w7Seconds, 1)
	quiet, err := (&load{target: l.target, tasks: max(l.tasks-2*beside, 1), domains: small}).latency(ctx, w7Rate)
	if err != nil {
		return Result{}, fmt.Errorf("alone: %w", err)
	}
	l.say("alone: start %s", quiet.Start)
	alone, err := (&load{target: l.target, tasks: l.tasks * w7AlonePerTask, brief: true}).drain(ctx, floodShape)
	if err != nil {
		return Result{}, fmt.Errorf("the flooding domain alone: %w", err)
	}
	l.say("the flooding domain alone: %.0f tasks/s", alone.TasksPerSecond)
	capacity := alone.TasksPerSecond / float64(l.target.slower)
	o := &Overload{Domains: w7Domains, PerDomain: w7Rate / w7Domains, QuietStart: *quiet.Start, AlonePerSecond: round(alone.TasksPerSecond)}
	flooded := func(out *Flood, quota float64) (Result, error) {
		out.Quota = int64(quota)
		r, err := l.flooded(ctx, &load{target: l.target, tasks: beside, domains: small}, capacity, out)
		if err == nil {
			out.Ratio = round(r.Start.P99 / quiet.Start.P99)
			l.say("beside the flood: start %s, %s", r.Start, out)
		}
		return r, err
	}
	r, err := flooded(&o.WithQuota, max(capacity/w7QuotaPart, 1))
	if err != nil {
		return Result{}, fmt.Errorf("beside the flood with a quota: %w", err)
	}
	if _, err := flooded(&o.WithoutQuota, 0); err != nil {
		return Result{}, fmt.Errorf("beside the flood without a quota: %w", err)
	}
	r.Tasks, r.Overload = quiet.Tasks+2*beside, o
	return r, nil
}

// flooded runs one phase: tasks of the small domains beside the flood, until both are done. The result counts the tasks of both.
func (l *load) flooded(ctx context.Context, others *load, capacity float64, out *Flood) (Result, error) {
	f, err := l.newFlooder(capacity, time.Duration(others.tasks*l.target.slower)*time.Second/w7Rate)
	if err != nil {
		return Result{}, err
	}
	if err := f.bound(ctx, out.Quota); err != nil {
		return Result{}, err
	}
	before, err := l.target.read(ctx)
	if err != nil {
		return Result{}, err
	}
	small, err := others.beside(ctx, w7Rate, f.run)
	if err != nil {
		return Result{}, err
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

// Overload is what tasks of small domains waited alone and beside a domain that floods.
type Overload struct {
	// Domains submit so many tasks per second each.
	Domains   int `json:"domains"`
	PerDomain int `json:"per_domain_per_second"`
	// QuietStart is from the submit call to the handler's start without the flood.
	QuietStart Quantiles `json:"quiet_start_latency_us"`
	// AlonePerSecond is how many tasks of the flooding domain went through in a second while no other domain had any.
	AlonePerSecond float64 `json:"flood_alone_per_second"`
	// WithQuota and WithoutQuota are the two floods.
	WithQuota    Flood `json:"with_quota"`
	WithoutQuota Flood `json:"without_quota"`
}

// Flood is what one flood was, and what it cost the others.
type Flood struct {
	// Quota is how many tasks the domain may submit per second; 0 = any number.
	Quota int64 `json:"quota_per_second,omitempty"`
	// Offered are the tasks of all tries of requests, Accepted those that were stored, and Completed those that went through during the flood.
	OfferedPerSecond   float64 `json:"offered_per_second"`
	AcceptedPerSecond  float64 `json:"accepted_per_second"`
	CompletedPerSecond float64 `json:"completed_per_second"`
	// Refused are the tries that were answered with RESOURCE_EXHAUSTED.
	Refused int64 `json:"requests_refused"`
	// Start and Submit are of the small domains; Ratio is the p99 of Start by that alone; P99s are of each second, µs.
	Start  Quantiles `json:"start_latency_us"`
	Submit Quantiles `json:"submit_latency_us"`
	Ratio  float64   `json:"start_p99_ratio"`
	P99s   []float64 `json:"start_p99_us_by_second"`
}

func (f *Flood) String() string {
	return fmt.Sprintf("%.1f times the p99; %.0f/s offered, %.0f accepted, %.0f completed, %d requests refused",
		f.Ratio, f.OfferedPerSecond, f.AcceptedPerSecond, f.CompletedPerSecond, f.Refused)
}

func (o *Overload) key() float64 { return max(o.WithQuota.Ratio, o.WithoutQuota.Ratio) }

func (o *Overload) line(Result) string {
	return fmt.Sprintf("%d domains of %d tasks/s, start %s alone; beside a domain that does %.0f/s alone: with a quota of %d/s %s: %s; "+
		"without %s: %s. Fair filing and queue splits are always on",
		o.Domains, o.PerDomain, o.QuietStart, o.AlonePerSecond, o.WithQuota.Quota, o.WithQuota.Start.both(), &o.WithQuota, o.WithoutQuota.Start.both(), &o.WithoutQuota)
}
