package operations

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The owners are put together from what each process reports: a partition may have none, or two while it moves.
func TestStatusShowsWhoServesWhat(t *testing.T) {
	at := func(minute int) int64 { return time.Date(2026, 11, 30, 12, minute, 0, 0, time.Local).UnixMilli() }
	history := func(node string, serves ...process.Served) process.Answer {
		return process.Answer{Service: "history", Node: node, Partitions: 14, Serves: serves}
	}
	answers := []process.Answer{
		{Service: "frontend", Node: "f"},
		history("a", process.Served{Partition: 0, SinceMs: at(1), Snapshot: &process.Snapshot{AtMs: at(7), LogBytes: 3 << 20}}, process.Served{Partition: 1, SinceMs: at(2)}),
		history("b", process.Served{Partition: 1, SinceMs: at(9), Snapshot: &process.Snapshot{LogBytes: 512}}),
		{Service: "history", Node: "new"},
		{Service: "timer", Node: "a", Partitions: 1, Serves: []process.Served{{Partition: 0, SinceMs: at(3)}}},
	}
	zone := time.UnixMilli(at(1)).Format("-07:00")
	summary := `
SERVICE  SERVED   LAST MOVED                     TO  WITHOUT AN OWNER
history  2 of 14  2026-11-30 12:09:00.000` + zone + `  b   2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more, see --all
timer    1 of 1   2026-11-30 12:03:00.000` + zone + `  a   -
`
	printed := func(all bool) string {
		var out strings.Builder
		var table command.Table
		printPartitions(&table, answers, all)
		testkit.NoError(t, table.Write(&out))
		return out.String()
	}
	testkit.Equal(t, "in short", printed(false), summary)
	rest, ok := strings.CutPrefix(printed(true), summary)
	if !ok || strings.Count(rest, "none") != 12 || !strings.Contains(strings.Join(strings.Fields(rest), " "), strings.NewReplacer("Z", zone).Replace(
		"history 0 a 2026-11-30 12:01:00.000Z 2026-11-30 12:07:00.000Z 3.0 MiB history 1 a 2026-11-30 12:02:00.000Z - - "+
			"history 1 b 2026-11-30 12:09:00.000Z not by this owner 512 B history 2 none - - -")) {
		t.Errorf("in full:\n%s", rest)
	}
}
