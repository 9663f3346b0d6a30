package curves

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/chart"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/bench/report"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A curve has a proven run for each value, a picture, and where tables are in Redis what that did.
func TestACurveIsMeasuredAndDrawn(t *testing.T) {
	testkit.Slow(t, "runs a workload several times")
	t.Chdir(t.TempDir())
	tables := stack.TablesMemory
	if _, err := exec.LookPath("redis-server"); err == nil {
		tables = stack.TablesRedis
	}
	var progress bytes.Buffer
	all, err := Run(t.Context(), bench.Options{
		Tasks: 300, LoadOptions: report.LoadOptions{Runs: 1}, Tables: string(tables), Syncs: []string{"2m"}, Progress: &progress, Partitions: topology.Partitioning{History: 1, Matching: 1},
	}, []string{"levels"})
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	if len(all.Curves) != 1 || all.Curves[0].Name != "levels" || len(all.Curves[0].Points) != 5 || all.Settings.HistoryPartitions != 1 {
		t.Fatalf("%+v", all)
	}
	for i, p := range all.Curves[0].Points {
		if p.X != i || p.Result.Tasks != 300 || p.Result.TasksPerSecond <= 0 {
			t.Errorf("%+v", p)
		}
		switch use := p.Result.Redis; {
		case (use != nil) != (tables == stack.TablesRedis):
			t.Errorf("tables in %s, and what Redis did is %+v", tables, use)
		case use != nil && (use.CPUPerTask <= 0 || i > 0 && (use.ScriptsPerTask <= 0 || use.CommandsPerTask <= 0)): // slots are its own
			t.Errorf("at %d Redis did %+v", p.X, *use)
		}
	}
	picture, err := all.Curves[0].PNG()
	testkit.NoError(t, err)
	if drawn, err := png.DecodeConfig(bytes.NewReader(picture)); err != nil || drawn.Width != chart.Width || drawn.Height != chart.Height {
		t.Errorf("%+v, %v", drawn, err)
	}
	var table, file bytes.Buffer
	if err := all.WriteTable(&table); err != nil || strings.Count(table.String(), "\n") != 6 || strings.Count(table.String(), "levels") != 5 {
		t.Errorf("%v\n%s", err, &table)
	}
	var back Curves
	testkit.NoError(t, all.WriteJSON(&file))
	if err := json.Unmarshal(file.Bytes(), &back); err != nil || len(back.Curves) != 1 || back.Curves[0].Points[4].X != 4 || back.Machine.Cores < 1 {
		t.Errorf("%v\n%s", err, &file)
	}
}

// Each value of each curve is a measurement that can be made, and differs from its neighbours in what the curve is of.
func TestEveryPointCanBeMeasured(t *testing.T) {
	if names := Names(); !slices.Equal(names, []string{"levels", "saturation", "types", "groups", "order-keys", "partitions", "domains", "pollers"}) {
		t.Fatalf("%v", names)
	}
	for _, c := range curves() {
		seen := map[[9]int]bool{}
		for _, x := range c.at {
			o := bench.Options{Tasks: curveTasks}
			c.set(&o, x)
			if err := o.Fill(); err != nil {
				t.Errorf("%s at %d: %v", c.name, x, err)
			}
			limited := o.Levels
			if o.Limit == 0 {
				limited = 0
			}
			seen[[9]int{limited, o.Limit, o.LimitAll, o.Types, o.Groups, o.Spread, o.Polls, o.OrderKeys, o.Domains + o.IdleDomains}] = true
			if o.Tasks < o.Groups {
				t.Errorf("%s at %d: %d tasks cannot be of %d groups", c.name, x, o.Tasks, o.Groups)
			}
		}
		if len(seen) != len(c.at) {
			t.Errorf("%s: %d different measurements for %d values", c.name, len(seen), len(c.at))
		}
	}
}

func TestWrongCurvesAreRefused(t *testing.T) {
	for _, o := range []bench.Options{
		{Syncs: []string{"always", "1s"}},
		{LoadOptions: report.LoadOptions{Runs: -1}},
		{LoadOptions: report.LoadOptions{Types: 1001}},
		{LoadOptions: report.LoadOptions{Polls: -1}},
		{LoadOptions: report.LoadOptions{Polls: 10_001}},
	} {
		if _, err := Run(t.Context(), o, []string{"levels"}); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
	if _, err := Run(t.Context(), bench.Options{}, []string{"levels", "colours"}); err == nil || !strings.Contains(err.Error(), "colours") {
		t.Errorf("got %v", err)
	}
}

// Of many domains 1,000 have tasks, and the others are there.
func TestTheCurveOfDomains(t *testing.T) {
	chosen, err := chooseCurves([]string{"domains"})
	testkit.NoError(t, err)
	for x, want := range map[int][2]int{1: {1, 0}, 1000: {1000, 0}, 100_000: {1000, 99_000}} {
		var o bench.Options
		chosen[0].set(&o, x)
		if got := [2]int{o.Domains, o.IdleDomains}; got != want || !slices.Equal(o.Workloads, []string{"W8"}) {
			t.Errorf("at %d: %v, %v", x, got, o.Workloads)
		}
	}
}
