// Package curves measures how a workload follows one setting.
//
// Owns: the settings and their values, and the pictures. Never does: measure by itself; each point is a run of package bench.
package curves

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/go-analyze/charts"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/chart"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/usage"
)

const (
	// roomy is a limit that is never full here.
	roomy = 100_000
	// curveTasks are those of a point, unless it has more groups than that.
	curveTasks = 20_000
)

// curve is how W1 follows one setting, or W8 the domains: a point for each value, all else as it is by default.
type curve struct {
	name string
	// of says what the values are.
	of  string
	at  []int
	set func(o *bench.Options, x int)
}

// curves are all of them, in order.
func curves() []curve {
	return []curve{
		{"levels", "limits that a task needs a slot of, none of them full", []int{0, 1, 2, 3, 4}, func(o *bench.Options, x int) {
			if x > 0 {
				o.Levels, o.Limit, o.LimitAll = x, roomy, roomy
			}
		}},
		{"saturation", "tasks that the polls take at once, in % of the limit of their only type", []int{25, 50, 100, 200, 400, 800, 1600, 3200}, func(o *bench.Options, x int) {
			o.Types, o.Limit = 1, bench.PolledAtOnce*100/x
		}},
		{"types", "types that the tasks are of", []int{1, 3, 10, 30, 100, 300, 1000}, func(o *bench.Options, x int) { o.Types = x }},
		{"groups", "groups that the tasks are of", []int{1, 10, 100, 1000, 10_000, 100_000}, func(o *bench.Options, x int) {
			o.Groups, o.Tasks = x, max(o.Tasks, x)
		}},
		{"order-keys", "order keys that the tasks are of, 0 = none", []int{0, 100, 1000, 10_000, 100_000}, func(o *bench.Options, x int) {
			o.OrderKeys, o.Tasks = x, max(o.Tasks, x)
		}},
		{"partitions", "partitions of the tasklist", []int{1, 2, 4, 8, 16}, func(o *bench.Options, x int) { o.Spread = x }},
		{"domains", "domains, of which 1,000 have tasks at most; W8", []int{1, 10, 100, 1000, 10_000, 100_000}, func(o *bench.Options, x int) {
			o.Workloads, o.Domains = []string{"W8"}, min(x, bench.W8Domains)
			o.IdleDomains = x - o.Domains
		}},
		{"pollers", "polls that wait for tasks at once", []int{1, 10, 100, 1000, 10_000}, func(o *bench.Options, x int) { o.Polls = x }},
	}
}

// Names are those of all curves, in order.
func Names() (names []string) {
	for _, c := range curves() {
		names = append(names, c.name)
	}
	return names
}

// Curves is a measurement of several curves, as it is written to the JSON file.
type Curves struct {
	At       time.Time       `json:"at"`
	Machine  usage.Machine   `json:"machine"`
	Settings report.Settings `json:"settings"`
	Curves   []Curve         `json:"curves"`
}

// Curve is how throughput and cost follow one setting, all else as it is by default.
type Curve struct {
	Name string `json:"name"`
	// Of says what the values of X are.
	Of     string  `json:"of"`
	Points []Point `json:"points"`
}

// Point is the median run for one value.
type Point struct {
	X      int           `json:"x"`
	Result report.Result `json:"result"`
}

// Run measures the named curves, all of them where there is no name. Of the options, Workloads and the settings that a curve sets
// are not used; Tasks is 20,000 by default. An error means that no number is to be trusted.
func Run(ctx context.Context, o bench.Options, names []string) (*Curves, error) {
	chosen, err := chooseCurves(names)
	if err != nil {
		return nil, err
	}
	o.Workloads, o.Tasks = []string{"W1"}, cmp.Or(o.Tasks, curveTasks)
	if len(o.Syncs) > 1 {
		return nil, fmt.Errorf("sync %v: a curve is measured with one", o.Syncs)
	}
	var all *Curves
	for _, c := range chosen {
		measured := Curve{Name: c.name, Of: c.of}
		for _, x := range c.at {
			one := o
			c.set(&one, x)
			if one.Progress != nil {
				fmt.Fprintf(one.Progress, "%s %d: ", c.name, x)
			}
			report, err := bench.Run(ctx, one)
			if err != nil {
				return nil, fmt.Errorf("curve %s at %d: %w", c.name, x, err)
			}
			if all == nil {
				all = &Curves{At: report.At, Machine: report.Machine, Settings: report.Settings}
			}
			measured.Points = append(measured.Points, Point{X: x, Result: report.Results[0]})
		}
		all.Curves = append(all.Curves, measured)
	}
	return all, nil
}

func chooseCurves(names []string) (chosen []curve, err error) {
	for _, c := range curves() {
		if len(names) == 0 || slices.Contains(names, c.name) {
			chosen = append(chosen, c)
		}
	}
	for _, name := range names {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("curve %q: want some of %v", name, Names())
		}
	}
	return chosen, nil
}

// WriteJSON writes the curves for programs.
func (c *Curves) WriteJSON(w io.Writer) error { return report.WriteJSON(w, c) }

// WriteTable writes the curves for people.
func (c *Curves) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "CURVE\tX\tTASKS\tTASKS/S\tCPU µS/TASK\tREDIS CPU µS/TASK\tSCRIPTS/1000 TASKS\tCOMMANDS/TASK\tRUNS\t")
	for _, curve := range c.Curves {
		for _, p := range curve.Points {
			redis := "-\t-\t-"
			if r := p.Result.Redis; r != nil {
				redis = fmt.Sprintf("%.2f\t%.1f\t%.2f", r.CPUPerTask, r.ScriptsPerTask*1000, r.CommandsPerTask)
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%.0f\t%.1f\t%s\t%.0f\t\n",
				curve.Name, strconv.Itoa(p.X), p.Result.Tasks, p.Result.TasksPerSecond, p.Result.Cost.PerTask(), redis, p.Result.Runs)
		}
	}
	return t.Flush()
}

// PNG is a picture of the curve: throughput on the left axis; on the right the CPU time of Redis, or of all processes that are measured where
// no Redis is. Values are in equal distances, since they grow by factors.
func (c Curve) PNG() ([]byte, error) {
	perSecond, cpu := make([]float64, len(c.Points)), make([]float64, len(c.Points))
	labels, of := make([]string, len(c.Points)), "CPU µs per task (right)"
	for i, p := range c.Points {
		labels[i], perSecond[i], cpu[i] = strconv.Itoa(p.X), p.Result.TasksPerSecond, p.Result.Cost.PerTask()
		if p.Result.Redis != nil {
			of, cpu[i] = "Redis CPU µs per task (right)", p.Result.Redis.CPUPerTask
		}
	}
	opt := chart.Lines(c.Name+": "+c.Of, labels, []string{"tasks/s", of}, perSecond, cpu)
	opt.SeriesList[1].YAxisIndex = 1
	opt.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Title: "tasks/s"}, {Min: charts.Ptr(0.0), Title: "µs per task"}}
	return chart.Paint(c.Name, opt)
}
