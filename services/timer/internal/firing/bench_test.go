package firing_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/natslog"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// BenchmarkFire measures a takeover with tasks of 256 bytes overdue: from an
// empty index to the last atomic batch stored and synced. A thousand to a message
// is what bulk submits lead to, one to a message the worst case; without a cache
// each message is fetched again when its tasks are due.
func BenchmarkFire(b *testing.B) {
	for _, c := range []struct {
		perMessage, total, cacheBytes int
	}{{1000, 50_000, 0}, {1000, 50_000, 32 << 20}, {20, 50_000, 0}, {20, 50_000, 32 << 20}, {1, 5000, 0}, {1, 5000, 32 << 20}} {
		b.Run(fmt.Sprintf("%d_to_a_message,cache=%dMiB", c.perMessage, c.cacheBytes>>20), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w := newWorld(b)
				dueAt := time.Now().Add(-time.Second)
				for range c.total / c.perMessage {
					w.park(c.perMessage, dueAt, func(_ int, r *logv1.Record) { r.Payload = make([]byte, 256) })
				}
				b.StartTimer()
				r := w.own(func(d *firing.Deps) { d.Config.CacheBytes = c.cacheBytes })
				testkit.Eventually(b, soon, func() error {
					if r.fired.Load() < int64(c.total) {
						return errors.New("not yet")
					}
					return nil
				})
				b.StopTimer()
				r.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(c.total*b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// BenchmarkFireEarly measures a storm of commands about waiting tasks, from the first call to the last task in the log: two calls of 500
// at a time, which is what history sends, and 64 calls of one.
func BenchmarkFireEarly(b *testing.B) {
	for _, c := range []struct{ perCall, callers, total int }{{500, 2, 50_000}, {1, 64, 5000}} {
		b.Run(fmt.Sprintf("%d_a_call,callers=%d", c.perCall, c.callers), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w := newWorld(b)
				var all []ids.TaskID
				for range c.total / 1000 {
					all = append(all, idsOf(w.park(1000, time.Now().Add(time.Hour)))...)
				}
				r := w.own()
				calls := make(chan []ids.TaskID, c.total/c.perCall)
				for some := range slices.Chunk(all, c.perCall) {
					calls <- some
				}
				close(calls)
				b.StartTimer()
				var callers sync.WaitGroup
				for range c.callers {
					callers.Go(func() {
						for some := range calls {
							if a, err := r.FireEarly(b.Context(), wanted(some)); err != nil || len(a.Coming) != len(some) {
								b.Error(len(a.Coming), err)
							}
						}
					})
				}
				callers.Wait()
				testkit.Eventually(b, soon, func() error {
					if r.fired.Load() < int64(c.total) {
						return errors.New("not yet")
					}
					return nil
				})
				b.StopTimer()
				r.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(c.total*b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// BenchmarkTakeover measures a takeover of a million tasks of 256 bytes that are due within 30 days, twenty to a message: how long it takes until a task
// fires that is due by then, and until all are known.
func BenchmarkTakeover(b *testing.B) {
	const tasks, perMessage, minutes = 1_000_000, 20, 30 * 24 * 60
	w := newWorld(b)
	random := rand.New(rand.NewPCG(1, 2))
	for range tasks / perMessage / 1000 {
		var some []natslog.Msg
		for range 1000 {
			dueMS := time.Now().Add(time.Hour).UnixMilli() + random.Int64N(minutes)*60_000
			m := &logv1.Batch{}
			for range perMessage {
				w.made++
				id := ids.NewTaskID(time.UnixMilli(int64(w.made)), 0, w.made)
				m.Tasks = append(m.Tasks, &logv1.Record{
					Id: id[:], Domain: "shop", Tasklist: "mail", Type: "email.send", Priority: 3, Payload: make([]byte, 256), DueAtMs: dueMS, Parkings: 1,
				})
			}
			some = append(some, natslog.Msg{Subject: topology.Timer(0, topology.TimerBucket(dueMS)), Data: testkit.Encoded(b, m)})
		}
		for _, a := range natslog.AppendEach(b.Context(), w.nc, some) {
			testkit.NoError(b, a.Err)
		}
	}
	r := w.own()
	all := w.park(1, time.Now())
	w.eachOnce(all)
	r.stop()
	for b.Loop() {
		all = append(all, w.park(1, time.Now())...)
		began := time.Now()
		r := w.own()
		testkit.Eventually(b, soon, func() error {
			if r.fired.Load() == 0 {
				return errors.New("not yet")
			}
			return nil
		})
		b.ReportMetric(time.Since(began).Seconds(), "s/first")
		n, err := r.Waiting(b.Context(), "shop", "")
		b.ReportMetric(time.Since(began).Seconds(), "s/whole")
		if err != nil || n != tasks {
			b.Fatal(n, err)
		}
		r.stop()
	}
	w.eachOnce(all)
}
