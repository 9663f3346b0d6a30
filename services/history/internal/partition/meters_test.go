package partition_test

import (
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/gen/logv1"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// TestTheOldestReadyTaskIsReported as long as no worker takes it, and not when it runs.
func TestTheOldestReadyTaskIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		d := s.deps("a")
		var oldest atomic.Int64
		d.Report = func(r *gauges.Report) { oldest.Store(int64(r.OldestReady)) }
		s.serves(d)
		waited := func(least, most time.Duration) {
			t.Helper()
			synctest.Wait()
			if age := time.Duration(oldest.Load()); age < least || age > most {
				t.Errorf("the oldest has waited for %v, want %v to %v", age, least, most)
			}
		}
		time.Sleep(5 * time.Second)
		waited(0, 0)
		r := task(newID(1), "shop")
		seq := s.submit(3, r)
		began := time.Now()
		for _, after := range []time.Duration{5 * time.Second, 20 * time.Minute} {
			time.Sleep(after)
			waited(time.Since(began)-time.Second, time.Since(began))
		}
		s.event(outcome(ids.Trigger{ID: ids.TaskID(r.Id), Version: 1, Position: ids.NewPosition(seq, 3)}, logv1.EventKind_EVENT_KIND_STARTED))
		time.Sleep(3 * time.Second)
		waited(0, 0)
	})
}

// shown are the series of a metric that are not 0, by their labels.
func shown(t *testing.T, m *telemetry.Metrics, of signals.Metric) map[string]float64 {
	t.Helper()
	values, err := m.Values()
	testkit.NoError(t, err)
	all := map[string]float64{}
	for series, v := range values {
		if labels, found := strings.CutPrefix(series, of.Prometheus()); found && v != 0 {
			all[labels] = v
		}
	}
	return all
}

// TestWhatEndsBadlyIsCounted: attempts of which no worker said the end, by reason, and the tasks that are dead, of silence or
// of a failure; a task that is completed is not. The next owner does not count them again.
func TestWhatEndsBadlyIsCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shell) {
		metrics := signalkit.Metrics(t)
		late, silent, failed, done := task(newID(1), "shop"), task(newID(2), "shop"), task(newID(3), "bank"), task(newID(4), "bank")
		late.Policy.StartToCloseMs = 5_000
		silent.Tasklist, silent.Policy.HeartbeatTimeoutMs = "sms", 1_000
		says := map[ids.TaskID]logv1.EventKind{
			ids.TaskID(failed.Id): logv1.EventKind_EVENT_KIND_FAILED, ids.TaskID(done.Id): logv1.EventKind_EVENT_KIND_COMPLETED,
		}
		s.worker = func(tr ids.Trigger) {
			s.event(outcome(tr, logv1.EventKind_EVENT_KIND_STARTED))
			if kind, ends := says[tr.ID]; ends {
				s.event(outcome(tr, kind))
			}
		}
		d := s.deps("a")
		d.Metrics = partition.NewMetrics(metrics)
		_, stop := ready(d)
		s.submit(3, late, silent, failed, done)
		time.Sleep(5 * time.Minute) // one deadline passes, and twenty workers in a row fall silent
		for _, what := range []string{"at the end", "after a takeover"} {
			synctest.Wait()
			want := map[string]float64{`{reason="deadline"}`: 1, `{reason="silent"}`: 20}
			if got := shown(t, metrics, signals.AttemptsExpired); !maps.Equal(got, want) {
				t.Errorf("%s: attempts without a word: %v, want %v", what, got, want)
			}
			want = map[string]float64{
				`{domain="shop",tasklist="mail"}`: 1, `{domain="shop",tasklist="sms"}`: 1, `{domain="bank",tasklist="mail"}`: 1,
			}
			if got := shown(t, metrics, signals.TasksDead); !maps.Equal(got, want) {
				t.Errorf("%s: dead tasks: %v, want %v", what, got, want)
			}
			testkit.Check(t, stop())
			_, stop = ready(d)
			time.Sleep(time.Minute)
		}
		testkit.Check(t, stop())
	})
}

// TestAFloodIsOnThePage: the queue that is split off, what it has in memory and on disk, and the domain beside the one that does all the work. When a worker
// has done it all, the queue leaves the page, and so does the domain.
func TestAFloodIsOnThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, metrics := newTenants(t), signalkit.Metrics(t)
		board := gauges.New(metrics, func(domain string) int { return map[string]int{"shop": 3}[domain] }, 20)
		d := s.deps("n")
		d.Config.WindowTasks, d.Config.PurgeEvery = 10, time.Second
		d.Report = func(r *gauges.Report) { board.Report(7, r) }
		o, stop := ready(d)
		s.serve("shop")
		flood := s.submit("flood", 12)
		for range 30 {
			flood = append(flood, s.submit("flood", 10)...)
		}
		for range 60 {
			s.submit("shop", 5)
			time.Sleep(time.Second)
		}
		split := `{lane="p3",partition="7",queue="split_off"}`
		testkit.Equal(t, "split off", shown(t, metrics, signals.QueuesSplitOff), map[string]float64{`{partition="7",queue="domain"}`: 1})
		tasks, most, unread := shown(t, metrics, signals.QueueTasks)[split], shown(t, metrics, signals.QueueTasksMax)[split], shown(t, metrics, signals.QueueUnread)[split]
		if tasks != 12 || most != 10 || unread != 30 {
			t.Errorf("%v of %v tasks, %v messages are unread", tasks, most, unread)
		}
		testkit.Equal(t, "waits on disk", shown(t, metrics, signals.DomainUnread), map[string]float64{`{domain="flood"}`: 30})
		if rate := shown(t, metrics, signals.DomainCompleted); len(rate) != 1 || rate[`{domain="shop"}`] < 4 || rate[`{domain="shop"}`] > 6 {
			t.Errorf("completed in a second: %v", rate)
		}
		testkit.Equal(t, "had", shown(t, metrics, signals.DomainHad), map[string]float64{`{domain="shop"}`: 1})
		testkit.Equal(t, "shares", shown(t, metrics, signals.DomainShare), map[string]float64{`{domain="shop"}`: 0.75, `{domain="flood"}`: 0.25})
		testkit.Equal(t, "tasks", shown(t, metrics, signals.DomainTasks)[`{domain="flood",state="ready"}`], 12)
		if age := shown(t, metrics, signals.DomainOldestReady)[`{domain="flood"}`]; age < 55 || age > 61 {
			t.Errorf("the oldest of the flood waits for %v s", age)
		}
		s.serve("flood")
		o.Reconnected(t.Context()) // what is ready is triggered again
		s.end("the flood", flood)
		time.Sleep(time.Minute)
		testkit.Equal(t, "split off at the end", len(shown(t, metrics, signals.QueuesSplitOff)), 0)
		values, err := metrics.Values()
		testkit.NoError(t, err)
		for name := range values {
			if strings.Contains(name, "split_off\"") || strings.Contains(name, "flood") {
				t.Errorf("%s is still on the page", name)
			}
		}
		testkit.Check(t, stop())
	})
}
