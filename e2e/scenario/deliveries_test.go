package scenario_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
)

// deliveries is what handlers see: which tasks they run, how often, and how long after they were due.
type deliveries struct {
	mu     sync.Mutex
	runs   map[string]int
	waited []time.Duration
	last   time.Time
	began  time.Time
}

func newDeliveries() *deliveries { return &deliveries{runs: map[string]int{}, began: time.Now()} }

// note counts a run of a task that was due that long after it was accepted. Only the first run of a task tells how long it waited.
func (d *deliveries) note(a yard.Attempt, delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last = time.Now(); d.runs[a.TaskID] == 0 {
		d.waited = append(d.waited, d.last.Sub(a.CreatedAt)-delay)
	}
	d.runs[a.TaskID]++
}

// of is how often a task has run.
func (d *deliveries) of(id string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id]
}

// print tells what was delivered, how fast, and how long tasks waited after they were due. Nothing is decided by these.
func (d *deliveries) print(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.waited)
	all, n := 0, len(d.waited)
	for _, runs := range d.runs {
		all += runs
	}
	if n == 0 {
		t.Log("nothing was delivered")
		return
	}
	of := func(percent int) time.Duration {
		return d.waited[min(n-1, n*percent/100)].Round(100 * time.Microsecond)
	}
	t.Logf("%d tasks delivered in %d runs within %v; from due to the first run: p50 %v, p90 %v, p99 %v, max %v",
		n, all, d.last.Sub(d.began).Round(time.Millisecond), of(50), of(90), of(99), of(100))
}

// emptied waits until the tasklist holds no task.
func (w *world) emptied() {
	w.t.Helper()
	w.eventually(func() error {
		l, err := w.client.DescribeTasklist(w.soon(), list)
		if left := l.Ready + l.Running + l.Backoff + l.Waiting + l.UnreadBatches; err == nil && left > 0 {
			err = fmt.Errorf("the tasklist holds %d tasks that have not ended", left)
		}
		return err
	})
}
