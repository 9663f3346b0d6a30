package schedules

import (
	"bytes"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard/schedules"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli/command"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestEachCountIsInItsColumn: a real schedule seldom has three counts that differ.
func TestEachCountIsInItsColumn(t *testing.T) {
	var out bytes.Buffer
	a := &command.App{Streams: command.Streams{Out: &out}}
	testkit.NoError(t, printAll(a, []*schedules.Info{{Schedule: schedules.Schedule{Name: "nightly", Cron: []string{"@daily"}, TimeZone: "UTC"}, Runs: 11, Skipped: 22, Missed: 33}}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	testkit.MustEqual(t, "lines", len(lines), 2)
	for head, count := range map[string]string{"RUNS": "11", "SKIPPED": "22", "MISSED": "33"} {
		if at := strings.Index(lines[0], head); at < 0 || !strings.HasPrefix(strings.TrimLeft(lines[1][at:], " "), count) && !strings.HasSuffix(lines[1][:at+len(head)], count) {
			t.Errorf("%s is not %s:\n%s", head, count, out.String())
		}
	}
}
