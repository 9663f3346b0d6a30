package acceptance_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/backoff"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// pollers have one slot each, submitters share the rate, and each process is a client of the one that the bus chooses.
	pollers, submitters = 8, 4
	// pollAgain is the pause after a poll that brought nothing, if polls do not wait.
	pollAgain = 10 * time.Millisecond
	// together is how many tasks that are to wait go in one request.
	together = 100
)

// run is one run of a scenario. It fails the test if a task is not delivered, or twice.
func (s scenario) run(t *testing.T, c *cluster.Cluster, round int) row {
	t.Helper()
	w := &work{scenario: s, t: t, client: c.Client(domain), list: fmt.Sprint(s.name, "-", round), submitted: map[string]time.Time{}, started: map[string][]time.Time{}}
	before := w.prepare(c)
	waiting := len(w.submitted)
	ctx, stop := context.WithCancel(t.Context())
	began := time.Now()
	var polls, submits sync.WaitGroup
	for range pollers {
		polls.Go(func() { w.poll(ctx) })
	}
	for range submitters {
		submits.Go(func() { w.submitAtRate(ctx) })
	}
	submits.Wait()
	testkit.Eventually(t, within, w.delivered)
	stop()
	polls.Wait()
	after := counts(t, c)
	r := row{Scenario: s.name, Setting: s.setting, Expected: s.expect, Tasks: len(w.submitted), Delivered: len(w.started), Verdict: "differs"}
	r.Forwards, r.Stored = after.forwards-before.forwards, after.stored-before.stored
	var waits []time.Duration
	for id, at := range w.submitted {
		if start := w.started[id][0]; at.After(began) {
			waits = append(waits, start.Sub(at))
		} else {
			r.DrainSeconds = max(r.DrainSeconds, start.Sub(began).Seconds())
		}
	}
	slices.Sort(waits)
	r.P50, r.P99 = milliseconds(waits[len(waits)/2]), milliseconds(waits[len(waits)*99/100])
	t.Logf("%s, round %d: %d tasks, of which %d waited, were delivered; p50 %.1f ms, p99 %.1f ms", s.name, round, r.Tasks, waiting, r.P50, r.P99)
	return r
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// work is the tasks of a run.
type work struct {
	scenario
	t      *testing.T
	client *yard.Client
	list   string

	mu sync.Mutex
	// submitted is when the submit of a task was called, started when its attempts began.
	submitted map[string]time.Time
	started   map[string][]time.Time
}

// prepare makes the tasklist, and what waits in it, and returns the counts of then.
func (w *work) prepare(c *cluster.Cluster) count {
	w.t.Helper()
	spread := func(partitions int) {
		testkit.Eventually(w.t, within, func() error {
			return testkit.Err(w.client.PutTasklist(w.t.Context(), yard.Tasklist{Name: w.list, Partitions: partitions}))
		})
	}
	ready := int64(0)
	for _, n := range w.waiting {
		for range n / together {
			w.submit(w.t.Context(), together)
		}
		ready += int64(n)
		testkit.Eventually(w.t, within, func() error {
			d, err := w.client.DescribeTasklist(w.t.Context(), w.list)
			if err == nil && d.Ready < ready {
				err = fmt.Errorf("%d of %d tasks are ready", d.Ready, ready)
			}
			return err
		})
		spread(w.partitions)
	}
	spread(w.partitions)
	return counts(w.t, c)
}

// submit submits n tasks in one request.
func (w *work) submit(ctx context.Context, n int) {
	began := time.Now()
	ids, err := w.client.SubmitMany(ctx, slices.Repeat([]yard.Task{{Tasklist: w.list, Type: "x"}}, n))
	if err != nil {
		w.t.Errorf("submit: %v", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.submitted[id] = began
	}
}

// submitAtRate submits one submitter's part of the tasks, each when it is due.
func (w *work) submitAtRate(ctx context.Context) {
	every := time.NewTicker(time.Second * submitters / time.Duration(w.rate))
	defer every.Stop()
	for range w.rate * w.seconds / submitters {
		<-every.C
		w.submit(ctx, 1)
	}
}

// poll runs tasks until ctx ends.
func (w *work) poll(ctx context.Context) {
	for ctx.Err() == nil {
		tasks, err := w.client.Wire().Poll(ctx, &yardv1.PollRequest{Tasklist: w.list, MaxTasks: 1, WaitMs: w.pollFor.Milliseconds(), Worker: "acceptance"})
		if err != nil || len(tasks) == 0 {
			backoff.Sleep(ctx, pollAgain)
		}
		for _, task := range tasks {
			w.mu.Lock()
			w.started[task.TaskId] = append(w.started[task.TaskId], time.Now())
			w.mu.Unlock()
			backoff.Sleep(ctx, w.takes)
			w.complete(task)
		}
	}
}

// complete reports an attempt until it has a verdict.
func (w *work) complete(task *yardv1.PolledTask) {
	for {
		verdicts, err := w.client.Wire().Complete(w.t.Context(), []*yardv1.Completion{{TaskId: task.TaskId, Token: task.Token}})
		switch {
		case err != nil:
			w.t.Errorf("complete: %v", err)
			return
		case verdicts[0].Code != string(fault.Unknown):
			return
		}
	}
}

// delivered is an error until each task has started once.
func (w *work) delivered() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.submitted {
		if n := len(w.started[id]); n > 1 {
			w.t.Fatalf("%s was started %d times", id, n)
		}
	}
	if missing := len(w.submitted) - len(w.started); missing > 0 {
		return fmt.Errorf("%d of %d tasks have not started", missing, len(w.submitted))
	}
	return nil
}

// count is what matching has counted, in all processes together.
type count struct{ forwards, stored int }

func counts(t *testing.T, c *cluster.Cluster) (all count) {
	t.Helper()
	for i := range c.Instances(cluster.Matching) {
		page, err := c.Metrics(cluster.Matching, i)
		testkit.NoError(t, err)
		all.forwards += value(t, page, signals.PollsSentUp) + value(t, page, signals.PollsSentDown)
		all.stored += value(t, page, signals.MatchesFromTable)
	}
	return all
}

// value is the sum of the series of a metric.
func value(t *testing.T, page string, m signals.Metric) (sum int) {
	t.Helper()
	for line := range strings.Lines(page) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if series, _, _ := strings.Cut(name, "{"); series == m.Prometheus() {
			n, err := strconv.ParseFloat(number, 64)
			testkit.NoError(t, err)
			sum += int(n)
		}
	}
	return sum
}
