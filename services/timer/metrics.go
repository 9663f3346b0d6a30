package timer

import (
	"context"
	"fmt"
	"time"

	"github.com/yardmaster-io/yardmaster/services/timer/internal/firing"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

// counted counts the messages that setApart puts into quarantine.
func counted(m *telemetry.Metrics, p int, setApart func(context.Context, firing.Stored, string) error) func(context.Context, firing.Stored, string) error {
	n := m.Counter(fmt.Sprintf(`yard_timer_quarantined_total{partition="%d"}`, p), "Messages of the store that were malformed and put into quarantine.")
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
func gauges(m *telemetry.Metrics, p int) (g firing.Gauges, done func()) {
	name := func(what string) string { return fmt.Sprintf(`yard_timer_%s{partition="%d"}`, what, p) }
	waiting := m.Gauge(name("waiting"), "Tasks that wait for their due time.")
	fired := m.Counter(name("fired_total"), "Tasks fired.")
	late := m.Gauge(name("late_milliseconds"), "How late the oldest task of the last firing was.")
	cancelled := m.Counter(name("cancelled_total"), "Waiting tasks taken out by a cancel.")
	outdated := m.Counter(name("outdated_total"), "Parked tasks that are void: the history owner that wrote them had been replaced.")
	g.Waiting = func(n int) { waiting.Set(int64(n)) }
	g.Fired = func(n int, lateness time.Duration) {
		fired.Add(int64(n))
		late.Set(lateness.Milliseconds())
	}
	g.Cancelled = func(n int) { cancelled.Add(int64(n)) }
	g.Outdated = func(n int) { outdated.Add(int64(n)) }
	return g, func() {
		waiting.Set(0)
		late.Set(0)
	}
}
