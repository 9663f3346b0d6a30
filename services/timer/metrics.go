package timer

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/schedules"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// counted counts the messages that setApart puts into quarantine.
func counted(m *telemetry.Metrics, p int, setApart func(context.Context, firing.Stored, string) error) func(context.Context, firing.Stored, string) error {
	n := m.Counter(signals.TimerMessagesMalformed, strconv.Itoa(p))
	return func(ctx context.Context, stored firing.Stored, reason string) error {
		err := setApart(ctx, stored, reason)
		if err == nil {
			n.Add(1)
		}
		return err
	}
}

// gauges are a partition's numbers. Done clears those that tell a state, since
// the partition is then another node's to tell of.
func gauges(m *telemetry.Metrics, p int, next *atomic.Int64) (g firing.Gauges, done func()) {
	partition := strconv.Itoa(p)
	waiting, near := m.Gauge(signals.TimersWaiting, partition), m.Gauge(signals.TimersNear, partition)
	loaded := m.Histogram(signals.TimerLoad, partition)
	fired := m.Counter(signals.TimersFired, partition)
	lateness := m.Histogram(signals.TimerLateness, partition)
	early := m.Counter(signals.TimersEarly, partition)
	void := m.Counter(signals.TimersVoid, partition)
	g.Waiting = func(all, inMemory int) {
		waiting.Set(int64(all))
		near.Set(int64(inMemory))
	}
	g.Next = next.Store
	g.Loaded = func(took time.Duration) { loaded.Record(took, 1) }
	g.Fired = func(n int, late time.Duration) {
		fired.Add(int64(n))
		lateness.Record(late, n)
	}
	appended := m.Histogram(signals.AppendDuration, "timer", "fire")
	g.Appended = func(took time.Duration) { appended.Record(took, 1) }
	g.Early = func(n int) { early.Add(int64(n)) }
	g.Outdated = func(n int) { void.Add(int64(n)) }
	return g, func() {
		g.Waiting(0, 0)
		g.Next(0)
	}
}

// reportNext has the page of metrics say in how long the next task of each partition is due, and which domains are late; of a partition where none waits it says
// nothing.
func (s *Service) reportNext() {
	s.Metrics.GaugesFunc(func(set func(of signals.Metric, value float64, values ...string)) {
		for p := range s.next {
			if at := s.next[p].Load(); at != 0 {
				set(signals.TimerNext, time.UnixMilli(at).Sub(s.Clock.Now()).Seconds(), strconv.Itoa(p))
			}
		}
	}, signals.TimerNext)
	s.Metrics.GaugesFunc(s.late.show, signals.TimerDomainLate)
}

// scheduleMetrics count the runs of a partition's schedules.
func scheduleMetrics(m *telemetry.Metrics, p int) schedules.Metrics {
	partition := strconv.Itoa(p)
	started, skipped, missed := m.Counter(signals.ScheduleRuns, partition), m.Counter(signals.ScheduleRunsSkipped, partition), m.Counter(signals.ScheduleRunsMissed, partition)
	lateness := m.Histogram(signals.ScheduleLateness, partition)
	return schedules.Metrics{
		Started: func(n int) { started.Add(int64(n)) },
		Late:    func(by time.Duration) { lateness.Record(by, 1) },
		Skipped: func(n int) { skipped.Add(int64(n)) },
		Missed:  func(n int) { missed.Add(int64(n)) },
	}
}
