package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/chaos/audit"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// controlLasts is how long the traffic of the control is observed in its short form.
const controlLasts = 3 * time.Second

// violationsMax is how many violations a failed round prints; a file has them all.
const violationsMax = 10

// TestI4_I12_HistoryPausedUnderLoad pauses history processes for about 10 s each,
// now and then both at once. A resumed owner must not speak for what it has lost
// (R10, R11, R24), nor archive anything again in another form (R27).
func TestI4_I12_HistoryPausedUnderLoad(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	runRounds(t, settingsOf(t), pauseHistory)
}

// TestI1_I4_I8_AnythingKilledUnderLoad ends processes at random: a grant that no
// worker received must not burn an attempt (R41), and no task ends twice (R27).
func TestI1_I4_I8_AnythingKilledUnderLoad(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	runRounds(t, settingsOf(t), killAnything)
}

// TestI8_MatchingKilledUnderLoad kills matching processes with SIGKILL, one every 6 s. What
// they had under way burns no attempt that no worker received (R41), and no limit is exceeded.
func TestI8_MatchingKilledUnderLoad(t *testing.T) {
	longOnly(t)
	runRounds(t, settingsOf(t), killMatching)
}

// TestI4_I8_MatchingPausedUnderLoad pauses matching processes, one every 6 s: others take its
// shards over (R42), and what it does when it goes on is void.
func TestI4_I8_MatchingPausedUnderLoad(t *testing.T) {
	longOnly(t)
	runRounds(t, settingsOf(t), pauseMatching)
}

// TestI5_I8_RedisLostUnderLoad kills a redis-server that writes snapshots, or empties it. No limit
// is exceeded by what an old snapshot says (R32), and nothing is lost.
func TestI5_I8_RedisLostUnderLoad(t *testing.T) {
	longOnly(t)
	s := settingsOf(t)
	s.fullLimit = true
	runRounds(t, s, loseRedis, cluster.WithRedis("--save", "2 1"))
}

// longOnly skips a test in the suite: its faults take long, and others have a share of them.
func longOnly(t *testing.T) {
	t.Helper()
	if !settingsOf(t).long {
		t.Skipf("the long form only: set %s", roundsEnv)
	}
}

// TestNothingDisturbedUnderLoad is the control: without faults the audit has nothing
// to say of the same traffic, so what it says elsewhere is the faults' doing.
func TestNothingDisturbedUnderLoad(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	s := settingsOf(t)
	if s.long {
		s.passOver = nil
	} else {
		// On a busy machine an outcome may take longer than the audit calls in time.
		t.Parallel()
		s.lasts = controlLasts
	}
	r, l := runRound(t, s, func(t *testing.T, _ *cluster.Cluster, _ *rand.Rand, lasts time.Duration) {
		t.Helper()
		wait(t.Context(), lasts)
	})
	t.Logf("violations:\n%s", table([]row{{1, r, l}}))
}

// row is one round in the table.
type row struct {
	round  int
	report audit.Report
	ledger audit.Ledger
}

// runRounds runs each round on a cluster of its own and prints a table of them.
func runRounds(t *testing.T, s settings, disturb faults, opts ...cluster.Option) {
	t.Helper()
	if !s.long {
		t.Parallel()
		s.passOver = append(s.passOver, audit.DeadUnheld, audit.BurnedUnheld)
	}
	var rows []row
	for n := range s.rounds {
		t.Run(fmt.Sprintf("round %d", n+1), func(t *testing.T) {
			r, l := runRound(t, s, disturb, opts...)
			rows = append(rows, row{n + 1, r, l})
		})
	}
	t.Logf("violations by round:\n%s", table(rows))
}

// runRound disturbs one cluster under load and prints what it did wrong.
func runRound(t *testing.T, s settings, disturb faults, opts ...cluster.Option) (audit.Report, audit.Ledger) {
	t.Helper()
	seed := testkit.Seed(t)
	c := cluster.Start(t, binaries, instances, opts...)
	a := openArchive(t, c)
	tr := startTraffic(t, c, s, fork(seed))
	tr.awaitDone(s.rate / 2)
	tr.pace.reset()
	if c.Instances(cluster.NATS) > 1 {
		tr.watchLeaders()
	}
	disturb(t, c, seed, s.lasts)
	t.Log(tr.pace.String())
	report := tr.finish(a)
	c.CheckAll()
	for _, key := range report.Open[:min(len(report.Open), violationsMax)] {
		t.Logf("what the engine says of a task without an end: %s", tr.ask(key))
	}
	failing := slices.DeleteFunc(slices.Clone(report.Violations), func(v audit.Violation) bool { return slices.Contains(s.passOver, v.Kind) })
	for _, v := range failing[:min(len(failing), violationsMax)] {
		t.Error(v)
	}
	if n := len(failing); n > 0 {
		var all strings.Builder
		for _, v := range failing {
			fmt.Fprintln(&all, v)
		}
		t.Errorf("%d violations, all of them in %s", n, c.Keep("violations.txt", all.String()))
	}
	return report, tr.ledger
}

// table has a line for each round: how much was done, and the violations of each rule.
func table(rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprint(w, "round\taccepted\tunsure\trefused\tgrants\tended\tarchived again\t") // a strings.Builder takes everything
	for _, k := range audit.Kinds() {
		_, _ = fmt.Fprintf(w, "%s\t", k)
	}
	_, _ = fmt.Fprintln(w, "all\t")
	for _, r := range rows {
		fates, grants := map[audit.Fate]int{}, 0
		for _, task := range r.ledger.Tasks {
			fates[task.Fate]++
			grants += len(task.Grants)
		}
		_, _ = fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t", r.round, fates[audit.Accepted], fates[audit.Unsure], fates[audit.Refused], grants, r.report.Ended, r.report.Repeated)
		counts := r.report.Count()
		for _, k := range audit.Kinds() {
			_, _ = fmt.Fprintf(w, "%d\t", counts[k])
		}
		_, _ = fmt.Fprintf(w, "%d\t\n", len(r.report.Violations))
	}
	_ = w.Flush()
	return b.String()
}
