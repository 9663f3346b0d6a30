package natshistory

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var (
	archivedTasks = flag.Int("archived-tasks", 100_000, "tasks in the archive of BenchmarkArchived")
	getRate       = flag.Int("get-rate", 5000, "gets a second of BenchmarkArchived")
)

// benchTask is a task of a usual size, about 400 bytes in the archive.
func benchTask(domain string, created time.Time) *taskstate.Task {
	t := finishedTask(domain, created, rand.Uint64())
	t.Payload.Data = make([]byte, 256)
	at := created.UnixMilli()
	t.Version = 1
	t.Attempt = taskstate.Attempt{Nonce: rand.Uint64(), Worker: taskstate.NewWorker("worker-1", "", 0), StartedAt: at, DeadlineAt: at + 60_000, Ended: taskstate.Succeeded}
	t.Steps = []taskstate.Step{
		{Kind: taskstate.StepSubmitted, At: at},
		{Kind: taskstate.StepStarted, At: at + 1, Grant: 1, Worker: "worker-1"},
		{Kind: taskstate.StepCompleted, At: at + 3, Grant: 1, Worker: "worker-1"},
	}
	return t
}

func domainName(i int) string { return fmt.Sprintf("domain-%d", i%1000) }

func hour(*taskstate.Task) time.Duration { return time.Hour }

// BenchmarkFile is one write of n tasks that were created within the last seconds.
func BenchmarkFile(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 5000} {
		for _, domains := range []int{1, 1000} {
			b.Run(fmt.Sprintf("tasks=%d/domains=%d", n, domains), func(b *testing.B) {
				owner, _ := serverPorts(b)
				a := NewArchive(owner, hour)
				last, n64, used := uint64(0), float64(n), time.Duration(0)
				for b.Loop() {
					b.StopTimer()
					tasks := make([]*taskstate.Task, n)
					for i := range tasks {
						tasks[i] = benchTask(domainName(i%domains), time.Now())
					}
					b.StartTimer()
					before := cpu(b)
					var err error
					if last, err = a.File(b.Context(), tasks, last); err != nil {
						b.Fatal(err)
					}
					used += cpu(b) - before
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/n64*1e9, "ns/task")
				b.ReportMetric(float64(used.Nanoseconds())/float64(b.N)/n64, "cpu-ns/task")
				b.ReportMetric(float64(last)/float64(b.N), "msgs/op")
			})
		}
	}
}

// BenchmarkStoreDead is dead letters in a pipeline.
func BenchmarkStoreDead(b *testing.B) {
	owner, _ := serverPorts(b)
	a := NewArchive(owner, hour)
	for b.Loop() {
		tasks := make([]*taskstate.Task, 256)
		for i := range tasks {
			tasks[i] = benchTask("shop", time.Now())
		}
		testkit.NoError(b, a.StoreDead(b.Context(), tasks))
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/256*1e6, "us/task")
}

// fill files n tasks created within one minute, 5,000 at a time.
func fill(b *testing.B, owner Config, n int) (all []ids.TaskID) {
	b.Helper()
	a, began := NewArchive(owner, hour), time.Now().Add(-time.Minute)
	last := uint64(0)
	for len(all) < n {
		tasks := make([]*taskstate.Task, min(5000, n-len(all)))
		for i := range tasks {
			tasks[i] = benchTask(domainName(i), began.Add(time.Minute*time.Duration(len(all))/time.Duration(n)))
			all = append(all, tasks[i].ID)
		}
		var err error
		if last, err = a.File(b.Context(), tasks, last); err != nil {
			b.Fatal(err)
		}
	}
	return all
}

// BenchmarkArchived gets tasks at random, one per call, at a given rate.
func BenchmarkArchived(b *testing.B) {
	for _, absent := range []bool{false, true} {
		b.Run(fmt.Sprintf("absent=%v", absent), func(b *testing.B) {
			owner, reader := serverPorts(b)
			all := fill(b, owner, *archivedTasks)
			began := time.Now()
			testkit.NoError(b, testkit.Err(reader.Archived(b.Context(), searches(domainName(0), all[0]))))
			cold := time.Since(began)
			for i := range all[:min(1000, len(all))] { // every domain is read once
				testkit.NoError(b, testkit.Err(reader.Archived(b.Context(), searches(domainName(i), all[i]))))
			}
			took := make([]time.Duration, b.N)
			var failed atomic.Pointer[error]
			done := make(chan int, b.N)
			every := time.Second / time.Duration(*getRate)
			used := cpu(b)
			b.ResetTimer()
			start := time.Now()
			for i := range b.N {
				due := start.Add(time.Duration(i) * every)
				if wait := time.Until(due); wait > 0 {
					<-time.After(wait)
				}
				go func() {
					nth := rand.IntN(len(all))
					id := all[nth]
					if absent {
						id = ids.NewTaskID(id.Time(), 0, rand.Uint64())
					}
					found, err := reader.Archived(context.WithoutCancel(b.Context()), searches(domainName(nth), id))
					if err == nil && (found[0] == nil) != absent {
						err = fmt.Errorf("%v is %v", id, found[0])
					}
					if err != nil {
						failed.Store(&err)
					}
					took[i] = time.Since(due)
					done <- i
				}()
			}
			for range b.N {
				<-done
			}
			if err := failed.Load(); err != nil {
				b.Fatal(*err)
			}
			b.ReportMetric(float64((cpu(b)-used).Microseconds())/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(cold.Microseconds()), "cold-us") // ResetTimer would forget it
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
		})
	}
}

// BenchmarkFinished lists 50 tasks of one of 1,000 domains.
func BenchmarkFinished(b *testing.B) {
	owner, reader := serverPorts(b)
	fill(b, owner, *archivedTasks)
	used := cpu(b)
	for i := 0; b.Loop(); i++ {
		n := 0
		if _, err := reader.Finished(b.Context(), domainName(i), ids.Last, 50, func(*logv1.Record) bool { n++; return true }); err != nil || n != 50 {
			b.Fatalf("%d tasks, %v", n, err)
		}
	}
	b.ReportMetric(float64((cpu(b)-used).Microseconds())/float64(b.N), "cpu-us/op")
}

// cpu is what this process has used, the server in it included.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	testkit.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
