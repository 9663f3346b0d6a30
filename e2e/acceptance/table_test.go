package acceptance_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// domain is that of all runs; each has a tasklist of its own.
	domain = "acceptance"
	// within bounds what happens soon in a healthy run.
	within = 90 * time.Second

	roundsEnv, outEnv = "YARD_ACCEPTANCE_ROUNDS", "YARD_ACCEPTANCE_OUT"
)

// scenario is one run of the table.
type scenario struct {
	// name is that of the earlier system, setting what it is here.
	name, setting string
	// expect is what the run is there to show. shows reports whether it does, beside the run before it; nil: it is delivered.
	expect string
	shows  func(r, before row) bool
	// absent: there is no such setting, and no run.
	absent bool
	// balancer is the setting poll_balancer of the frontends.
	balancer   string
	partitions int
	// waiting tasks are submitted before there are pollers, the first ones while the tasklist has one partition.
	waiting []int
	// rate tasks per second are submitted for some seconds. An attempt takes takes.
	rate, seconds int
	takes         time.Duration
	// pollFor is how long a poll may wait.
	pollFor time.Duration
}

func scenarios() []scenario {
	const long, work, weighted, inTurn = 20 * time.Second, 13 * time.Millisecond, "weighted", "round_robin"
	return []scenario{
		{
			name: "default", setting: "4 partitions", expect: "reference",
			balancer: weighted, partitions: 4, rate: 160, seconds: 3, pollFor: long,
		},
		{
			name: "no_forwarding", setting: "4 partitions, polls do not wait", expect: "0 forwards, more stored, higher p99",
			shows:    func(r, before row) bool { return r.Forwards == 0 && r.Stored > before.Stored && r.P99 > before.P99 },
			balancer: weighted, partitions: 4, rate: 160, seconds: 3,
		},
		{
			name: "no_wait_time_for_both", setting: "none: a submit waits for no poll", expect: "more forwards", absent: true,
		},
		{
			name: "round_robin", setting: "2 partitions, " + inTurn, expect: "reference",
			balancer: inTurn, partitions: 2, rate: 300, seconds: 4, takes: work, pollFor: long,
		},
		{
			name: "weighted", setting: "2 partitions, " + weighted, expect: "delivered",
			balancer: weighted, partitions: 2, rate: 300, seconds: 4, takes: work, pollFor: long,
		},
		{
			name: "with_backlog", setting: "2000 and 1000 wait, " + inTurn, expect: "reference",
			balancer: inTurn, partitions: 2, waiting: []int{1000, 2000}, rate: 300, seconds: 3, takes: work, pollFor: long,
		},
		{
			name: "weighted_with_backlog", setting: "2000 and 1000 wait, " + weighted, expect: "drains sooner",
			shows:    func(r, before row) bool { return r.DrainSeconds < before.DrainSeconds },
			balancer: weighted, partitions: 2, waiting: []int{1000, 2000}, rate: 300, seconds: 3, takes: work, pollFor: long,
		},
	}
}

// row is the median run of a scenario.
type row struct {
	Scenario  string `json:"scenario"`
	Setting   string `json:"setting"`
	Tasks     int    `json:"tasks"`
	Delivered int    `json:"delivered"`
	// P50 and P99 are from the submit call to the start, of the tasks that are submitted beside pollers.
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	// DrainSeconds is from the first poll to the start of the last task that waited before it.
	DrainSeconds float64 `json:"drain_seconds,omitempty"`
	// Forwards are polls that went to another partition, Stored triggers that waited in a table.
	Forwards int    `json:"forwards"`
	Stored   int    `json:"stored"`
	Expected string `json:"expected"`
	// Verdict is "OK", "differs", or "no run".
	Verdict string `json:"verdict"`
}

// TestEveryScenarioDeliversAll runs all of them, and prints the table.
func TestEveryScenarioDeliversAll(t *testing.T) {
	testkit.Slow(t, "starts clusters of processes")
	clusters := map[string]*cluster.Cluster{}
	var rows []row
	for _, s := range scenarios() {
		if s.absent {
			rows = append(rows, row{Scenario: s.name, Setting: s.setting, Expected: s.expect, Verdict: "no run"})
			continue
		}
		if clusters[s.balancer] == nil {
			clusters[s.balancer] = start(t, s.balancer)
		}
		var runs []row
		for i := range rounds(t) {
			runs = append(runs, s.run(t, clusters[s.balancer], i))
		}
		slices.SortFunc(runs, func(a, b row) int { return cmp.Compare(a.P99, b.P99) })
		r := runs[(len(runs)-1)/2]
		if s.shows == nil || s.shows(r, rows[len(rows)-1]) {
			r.Verdict = "OK"
		}
		rows = append(rows, r)
	}
	t.Log("\n" + table(rows))
	if file := os.Getenv(outEnv); file != "" {
		data, err := json.MarshalIndent(rows, "", "  ")
		testkit.NoError(t, err)
		testkit.NoError(t, os.WriteFile(file, append(data, '\n'), 0o600))
	}
}

// rounds is how often each run is repeated.
func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(roundsEnv), "1"))
	if err != nil || n < 1 {
		t.Fatalf("%s: want a whole number above 0", roundsEnv)
	}
	return n
}

// start starts two processes of each service, and has them at work once before anything is measured.
func start(t *testing.T, balancer string) *cluster.Cluster {
	t.Helper()
	c := cluster.Start(t, binaries, 2, cluster.WithFlagsOf(cluster.Frontend, "--gateway.poll-balancer", balancer))
	testkit.Eventually(t, within, func() error { return testkit.Err(c.Admin().PutDomain(t.Context(), yard.Domain{Name: domain})) })
	scenario{name: "warm-up", partitions: 4, rate: 160, seconds: 1, pollFor: time.Second}.run(t, c, 0)
	return c
}

// table is the rows for people.
func table(rows []row) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCENARIO\tSETTING\tDELIVERED\tP50 MS\tP99 MS\tDRAIN S\tFORWARDS\tSTORED\tEXPECTED\tVERDICT")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%.1f\t%.1f\t%.1f\t%d\t%d\t%s\t%s\n",
			r.Scenario, r.Setting, r.Delivered, r.Tasks, r.P50, r.P99, r.DrainSeconds, r.Forwards, r.Stored, r.Expected, r.Verdict)
	}
	_ = w.Flush() // a string takes all
	return out.String()
}
