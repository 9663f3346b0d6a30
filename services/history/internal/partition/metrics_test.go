package partition

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/internal/core/replica"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// TestWaitsAreCountedOncePerAttempt: by domain and tasklist, however the answer mixes them; what was granted
// before, and what was not, is left out.
func TestWaitsAreCountedOncePerAttempt(t *testing.T) {
	grant := func(tasklist string, wait time.Duration, first bool) replica.Verdict {
		task := &taskstate.Task{ReadyAt: 1000}
		task.Domain, task.Tasklist = "shop", tasklist
		task.Attempt.StartedAt = task.ReadyAt + wait.Milliseconds()
		return replica.Verdict{Grant: replica.Grant{Task: task, First: first}}
	}
	m := NewMetrics(signalkit.Metrics(t))
	m.started([]replica.Verdict{
		grant("mail", time.Second, true), grant("mail", time.Second, true),
		{},
		grant("mail", 2*time.Second, true),
		grant("sms", 2*time.Second, true), grant("sms", time.Second, false), grant("mail", 2*time.Second, true),
	})
	m.started(nil)
	for tasklist, want := range map[string]int64{"mail": 4, "sms": 1} {
		if n := m.waits.Of("shop", tasklist).Count(); n != want {
			t.Errorf("%s: %d, want %d", tasklist, n, want)
		}
	}
	m.appended(writeArchive, time.Second)
	m.appended("search of tasks", time.Second)
	testkit.Equal(t, "writes", m.writes[writeArchive].Count(), 1)
}
