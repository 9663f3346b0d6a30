// Package load puts workloads W1 to W5 of `yard bench` on a task queue and measures it.
//
// Owns: the workloads, the measures and their names, and the ledger of tasks, by which each accepted task is handled.
// Producers, handlers and measurement are in this one process, for all systems alike.
//
// Never does: know which system it measures.
//
// On failure: a task that is lost, or a submit that fails, is an error, and the system has no numbers in this run.
package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Shape of the load; it is part of what the numbers mean.
const (
	bulkProducers   = 8
	bulkTasks       = 100 // per request
	singleProducers = 64
	openRate        = 500 // W3, tasks per second
	// perSecond is Waiting for each second of the duration.
	perSecond   = 2500
	waitingMin  = 500 // such tasks, if the duration is short
	drainWithin = 40 * time.Second
)

// Waiting is how many tasks wait at most in W1 and W2, and are due at one instant in W4.
func Waiting(duration time.Duration) int { return max(int(duration.Seconds()*perSecond), waitingMin) }

// Queue is a system that is running.
type Queue interface {
	// Submit submits a task and returns when it is accepted. If at is not zero, it runs then.
	Submit(ctx context.Context, payload string, at time.Time) error
	// SubmitMany submits tasks by the quickest way that the system has.
	SubmitMany(ctx context.Context, payloads []string, at time.Time) error
	// Work calls handle for each task until stop is called.
	Work(ctx context.Context, handle func(payload string)) (stop func() error, err error)
	// CPU is the CPU time that the servers have used.
	CPU() time.Duration
	// Close ends the connections and the servers.
	Close() error
}

// Metric names a measure.
type Metric struct {
	Key, Workload, Name, Unit string
	// LessIsBetter: of a latency or a cost.
	LessIsBetter bool
}

// Metrics are all measures, in the order of the report.
var Metrics = []Metric{
	{Key: "w1_per_s", Workload: "W1", Name: "W1 in bulk", Unit: "tasks/s"},
	{Key: "w1_cpu_us", Workload: "W1", Name: "W1 CPU per task", Unit: "µs", LessIsBetter: true},
	{Key: "w2_per_s", Workload: "W2", Name: "W2 one by one", Unit: "tasks/s"},
	{Key: "w2_cpu_us", Workload: "W2", Name: "W2 CPU per task", Unit: "µs", LessIsBetter: true},
	{Key: "w3_p50_ms", Workload: "W3", Name: "W3 submit to handler, p50", Unit: "ms", LessIsBetter: true},
	{Key: "w3_p99_ms", Workload: "W3", Name: "W3 submit to handler, p99", Unit: "ms", LessIsBetter: true},
	{Key: "w3_cpu_us", Workload: "W3", Name: "W3 CPU per task", Unit: "µs", LessIsBetter: true},
	{Key: "w4_per_s", Workload: "W4", Name: "W4 due at one instant", Unit: "tasks/s"},
	{Key: "w4_late_p99_ms", Workload: "W4", Name: "W4 late, p99", Unit: "ms", LessIsBetter: true},
	{Key: "w5_accepted_per_s", Workload: "W5", Name: "W5 accepted without worker", Unit: "tasks/s"},
	{Key: "w5_drained_per_s", Workload: "W5", Name: "W5 drained then", Unit: "tasks/s"},
}

// Values are the measures of one run, by key.
type Values map[string]float64

// run is one system under load.
type run struct {
	queue    Queue
	ledger   *ledger
	duration time.Duration
	// tasks is Waiting.
	tasks  int
	values Values
}

// Measure runs W1 to W5, one after the other, each for the duration and a little more.
func Measure(ctx context.Context, q Queue, duration time.Duration) (values Values, err error) {
	r := &run{queue: q, duration: duration, tasks: Waiting(duration), values: Values{}}
	r.ledger = newLedger(r.tasks)
	stop, err := q.Work(ctx, r.ledger.handle)
	if err != nil {
		return nil, fmt.Errorf("start workers: %w", err)
	}
	for _, w := range []struct {
		name string
		run  func(context.Context) error
	}{{"W1", r.bulk}, {"W2", r.single}, {"W3", r.open}, {"W4", r.due}} {
		if err := w.run(ctx); err != nil {
			_ = stop() // the first error says more
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	if err := stop(); err != nil {
		return nil, fmt.Errorf("stop workers: %w", err)
	}
	if err := r.backlog(ctx); err != nil {
		return nil, fmt.Errorf("W5: %w", err)
	}
	r.values["duplicates"] = float64(r.ledger.duplicates)
	return r.values, nil
}

// bulk is W1.
func (r *run) bulk(ctx context.Context) error {
	return r.closed(ctx, bulkProducers, bulkTasks, "w1")
}

// single is W2.
func (r *run) single(ctx context.Context) error { return r.closed(ctx, singleProducers, 1, "w2") }

// closed runs producers that wait for each answer, beside workers. After a warm-up it counts the tasks that are handled.
func (r *run) closed(ctx context.Context, producers, tasks int, key string) error {
	group, loading := errgroup.WithContext(ctx)
	producing, enough := context.WithCancel(loading)
	defer enough()
	for range producers {
		group.Go(func() error { return r.produce(loading, producing, tasks) })
	}
	group.Go(func() error {
		defer enough()
		if err := sleep(loading, r.duration/4); err != nil {
			return err
		}
		before := r.read()
		if err := sleep(loading, r.duration); err != nil {
			return err
		}
		after := r.read()
		n := float64(after.handled - before.handled)
		r.values[key+"_per_s"] = n / after.at.Sub(before.at).Seconds()
		r.values[key+"_cpu_us"] = microseconds(after.cpu-before.cpu) / max(n, 1)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return r.ledger.drained(ctx)
}

// produce submits requests until producing ends. A request that has begun is completed.
func (r *run) produce(ctx, producing context.Context, tasks int) error {
	for r.ledger.places.Acquire(producing, int64(tasks)) == nil {
		if err := r.submit(ctx, tasks, time.Time{}, true); err != nil {
			return err
		}
	}
	return nil
}

// submit submits one request.
func (r *run) submit(ctx context.Context, tasks int, due time.Time, placed bool) error {
	if tasks == 1 {
		return r.queue.Submit(ctx, r.ledger.next(due, placed), due)
	}
	payloads := make([]string, tasks)
	for i := range payloads {
		payloads[i] = r.ledger.next(due, placed)
	}
	return r.queue.SubmitMany(ctx, payloads, due)
}

// open is W3: a task is submitted when its time has come, whatever became of those before it.
func (r *run) open(ctx context.Context) error {
	r.ledger.reset()
	group, loading := errgroup.WithContext(ctx)
	before := r.read()
	n := max(int(r.duration.Seconds()*openRate), 1)
	for i := range n {
		due := before.at.Add(time.Duration(i) * time.Second / openRate)
		if err := sleep(loading, time.Until(due)); err != nil {
			break // the group has the error, or the caller
		}
		group.Go(func() error { return r.submit(loading, 1, time.Time{}, false) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.ledger.drained(ctx); err != nil {
		return err
	}
	r.values["w3_cpu_us"] = microseconds(r.read().cpu-before.cpu) / float64(n)
	r.values["w3_p50_ms"], r.values["w3_p99_ms"] = r.ledger.quantiles()
	return nil
}

// due is W4: tasks that are due at one instant. Some systems know whole seconds only.
func (r *run) due(ctx context.Context) error {
	r.ledger.reset()
	until := time.Now().Add(r.duration)
	due := until.Add(time.Second).Truncate(time.Second)
	if due.Sub(until) < time.Second/4 {
		due = due.Add(time.Second) // for the requests that are under way
	}
	submitted, err := r.produceUntil(ctx, until, r.tasks, due)
	if err != nil {
		return err
	}
	if err := r.ledger.drained(ctx); err != nil {
		return err
	}
	r.values["w4_tasks"] = float64(submitted)
	r.values["w4_per_s"] = float64(submitted) / max(time.Since(due), time.Millisecond).Seconds()
	_, r.values["w4_late_p99_ms"] = r.ledger.quantiles()
	return nil
}

// backlog is W5: no worker while tasks are accepted, then workers alone.
func (r *run) backlog(ctx context.Context) error {
	began := time.Now()
	accepted, err := r.produceUntil(ctx, began.Add(r.duration), 0, time.Time{})
	if err != nil {
		return err
	}
	r.values["w5_accepted_per_s"] = float64(accepted) / time.Since(began).Seconds()
	before := r.read()
	stop, err := r.queue.Work(ctx, r.ledger.handle)
	if err != nil {
		return fmt.Errorf("start workers: %w", err)
	}
	waiting, timeout := context.WithTimeout(ctx, r.duration)
	defer timeout()
	_ = r.ledger.drained(waiting) // a long backlog is not drained to its end
	after := r.read()
	r.values["w5_drained_per_s"] = float64(after.handled-before.handled) / after.at.Sub(before.at).Seconds()
	if err := stop(); err != nil {
		return fmt.Errorf("stop workers: %w", err)
	}
	return ctx.Err()
}

// produceUntil submits in bulk until an instant, n tasks at most if n is not 0, and returns how many.
func (r *run) produceUntil(ctx context.Context, until time.Time, n int, due time.Time) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	var submitted atomic.Int64
	for range bulkProducers {
		group.Go(func() error {
			for time.Now().Before(until) {
				if next := int(submitted.Add(bulkTasks)); n > 0 && next > n {
					submitted.Add(-bulkTasks)
					return nil
				}
				if err := r.submit(ctx, bulkTasks, due, false); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return int(submitted.Load()), err
}
