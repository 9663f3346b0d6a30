package chaos_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestRollingRestart stops each process with SIGTERM under load and starts it
// again, as an upgrade does. Clients get no errors, and no attempt is burned: none
// is lost, and none fails but on purpose.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	l := startLoad(t, c, longLeases)
	l.works()
	for _, s := range cluster.Services() {
		for i := range c.Instances(s) {
			t.Logf("%s-%d drained in %v", s, i, c.Term(s, i).Round(time.Millisecond))
			c.Restart(s, i)
			c.AwaitProcess(s, i)
			l.works()
		}
	}
	tasks := l.verify()
	if n, m := l.count(refused), l.count(unsure); n+m > 0 {
		t.Errorf("%d submits were refused and %d unsure", n, m)
	}
	for key, task := range tasks {
		for _, e := range task.Events {
			if e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_LOST || e.Kind == yardv1.TaskEventKind_TASK_EVENT_KIND_TIMED_OUT {
				t.Errorf("an attempt of %s (%s) was burned: %v", key, task.TaskId, task.Events)
			}
		}
		wanted := map[kind]int32{flaky: 1, doomed: 2}[l.orders[key].kind]
		if task.Failures != wanted {
			t.Errorf("%s (%s) failed %d times, want %d: %v", key, task.TaskId, task.Failures, wanted, task.Events)
		}
	}
}
