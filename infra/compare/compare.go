package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/child"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/report"
	"github.com/yardmaster-io/yardmaster/infra/compare/internal/system"
)

// syncsPerRun is how many syncs are measured before each run.
const syncsPerRun = 200

// comparison is what goes on.
type comparison struct {
	options
	progress io.Writer
	report   report.Report
	systems  []system.System
	syncs    []time.Duration
	others   []float64 // cores, of each measurement
}

// compare measures, prints the page to out, and writes the report.
func compare(ctx context.Context, o options, out, progress io.Writer) error {
	yard, err := filepath.Abs(o.yard)
	if err != nil {
		return err
	}
	c := &comparison{options: o, progress: progress, report: report.Report{
		At: time.Now().UTC(), Machine: report.ThisMachine(), Command: o.command, Runs: o.runs, DurationSeconds: o.duration.Seconds(),
	}}
	if err := c.choose(system.All(yard)); err != nil {
		return err
	}
	began := time.Now()
	for run := range o.runs {
		if err := c.run(ctx, run); err != nil {
			return err
		}
		took := time.Since(began)
		fmt.Fprintf(progress, "run %d of %d done after %v; about %v are left\n", run+1, o.runs, took.Round(time.Second),
			(took / time.Duration(run+1) * time.Duration(o.runs-run-1)).Round(time.Second))
	}
	c.report.SyncMS = report.SyncCost{P50: load.Quantile(c.syncs, 0.5), P99: load.Quantile(c.syncs, 0.99)}
	c.report.OtherCores = report.Median(c.others)
	c.report.Summarize()
	fmt.Fprint(out, c.report.Markdown())
	if err := c.report.Write(o.out); err != nil {
		return err
	}
	if n := len(c.report.Failures); n > 0 {
		return fmt.Errorf("%d measurements failed; the report names them", n)
	}
	return nil
}

// choose takes the systems that are wanted and on this machine.
func (c *comparison) choose(all []system.System) error {
	var names []string
	for _, s := range all {
		names = append(names, s.Name())
		if len(c.only) > 0 && !slices.Contains(c.only, s.Name()) {
			continue
		}
		if missing := s.Missing(); missing != "" {
			line := s.Name() + ": " + missing
			fmt.Fprintln(c.progress, "left out:", line)
			c.report.Skipped = append(c.report.Skipped, line)
			continue
		}
		c.systems = append(c.systems, s)
	}
	for _, name := range c.only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("system %q: want some of %s", name, strings.Join(names, ","))
		}
	}
	if len(c.systems) == 0 {
		return errors.New("no system is on this machine")
	}
	for _, sync := range system.Syncs() {
		for _, s := range c.systems {
			c.report.Settings = append(c.report.Settings, report.Setting{
				System: s.Name(), Version: s.Version(), Sync: string(sync), Settings: s.Settings(), Runs: make([]load.Values, c.runs),
			})
		}
	}
	return nil
}

// run measures each system once at each setting of durability. The next run begins with the next one.
func (c *comparison) run(ctx context.Context, run int) error {
	took, err := child.MeasureSync(c.dir, syncsPerRun)
	if err != nil {
		return err
	}
	c.syncs = append(c.syncs, took...)
	for i := range c.report.Settings {
		at := (i + run) % len(c.report.Settings)
		setting := &c.report.Settings[at]
		fmt.Fprintf(c.progress, "run %d of %d: %s, sync %s\n", run+1, c.runs, setting.System, setting.Sync)
		values, err := c.measure(ctx, c.systems[at%len(c.systems)], system.Sync(setting.Sync))
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted, no report is written: %w", cmp.Or(err, ctx.Err()))
		}
		if err != nil {
			failure := fmt.Sprintf("%s, sync %s, run %d: %v", setting.System, setting.Sync, run+1, err)
			fmt.Fprintln(c.progress, "  ", failure)
			c.report.Failures = append(c.report.Failures, failure)
			continue
		}
		setting.Runs[run] = values
		fmt.Fprintln(c.progress, "  ", report.Line(values))
	}
	return nil
}

// measure measures a system with new servers.
func (c *comparison) measure(ctx context.Context, s system.System, sync system.Sync) (values load.Values, err error) {
	dir, err := os.MkdirTemp(c.dir, ".yard-compare-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	runtime.GC()
	queue, err := s.Open(ctx, dir, sync)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	defer func() { err = errors.Join(err, queue.Close()) }()
	began, busy, used := time.Now(), child.Busy(), queue.CPU()+child.Own()
	values, err = load.Measure(ctx, queue, c.duration)
	used = queue.CPU() + child.Own() - used
	c.others = append(c.others, max((child.Busy()-busy-used).Seconds(), 0)/time.Since(began).Seconds())
	return values, err
}
