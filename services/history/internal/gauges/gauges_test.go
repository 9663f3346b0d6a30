package gauges_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/admission"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/nottaken"
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// bench is the gauges of a host, and its page.
type bench struct {
	*gauges.Gauges
	t       *testing.T
	metrics *telemetry.Metrics
}

func newBench(t *testing.T, most int) *bench {
	t.Helper()
	m, err := telemetry.NewMetrics()
	testkit.NoError(t, err)
	weight := func(domain string) int { return map[string]int{"heavy": 3}[domain] }
	return &bench{gauges.New(m, weight, most), t, m}
}

// reported are the domains of a partition, each with what it has completed, seconds after its owner began.
func (b *bench) reported(partition int, seconds int, completed map[string]int64) {
	r := &gauges.Report{CountedAt: time.Duration(seconds) * time.Second}
	for name, n := range completed {
		r.Domains = append(r.Domains, dispatch.DomainCensus{Domain: name, Census: dispatch.Census{Completed: n}})
	}
	b.Report(partition, r)
}

// page is what the page has of some metrics, by what follows their common prefix.
func (b *bench) page(prefix string) map[string]float64 {
	b.t.Helper()
	values, err := b.metrics.Values()
	testkit.NoError(b.t, err)
	all := map[string]float64{}
	for name, v := range values {
		if rest, ok := strings.CutPrefix(name, "yardmaster_history_"+prefix); ok {
			all[rest] = v
		}
	}
	return all
}

// completed is the rate of each domain on the page.
func (b *bench) completed() map[string]float64 {
	b.t.Helper()
	all := map[string]float64{}
	for labels, v := range b.page("domain_completed_per_second") {
		all[strings.TrimSuffix(strings.TrimPrefix(labels, `{domain="`), `"}`)] = v
	}
	return all
}

func TestQueuesAreOnThePage(t *testing.T) {
	b := newBench(t, 20)
	var r gauges.Report
	lane := func(tasks int) admission.Fill {
		return admission.Fill{Tasks: tasks, TasksMax: 10, Bytes: 20, BytesMax: 30}
	}
	for n := range r.Lanes {
		r.Lanes[n].Lane = lane(n)
	}
	split := &r.Lanes[ids.LaneKeyed]
	split.SplitOff, split.Domains, split.Tasklists, split.Unread, split.SplitOffUnread = admission.Fill{Tasks: 90, TasksMax: 80, Bytes: 70, BytesMax: 60}, 2, 3, 5, 50
	r.OldestReady = 1500 * time.Millisecond
	b.Report(4, &r)
	tasks := map[string]float64{`{lane="keyed",partition="4",queue="split_off"}`: 90}
	for n := range r.Lanes {
		tasks[fmt.Sprintf(`{lane="%s",partition="4",queue="lane"}`, ids.Lane(n))] = float64(n)
	}
	testkit.Equal(t, "tasks", b.page("queue_tasks{"), keysWithout(tasks, "{"))
	for metric, want := range map[string][2]float64{
		"queue_tasks_max": {10, 80}, "queue_memory_bytes": {20, 70}, "queue_memory_max_bytes": {30, 60}, "queue_unread": {5, 50},
	} {
		got := b.page(metric + `{lane="keyed",partition="4",queue=`)
		testkit.Equal(t, metric, got, map[string]float64{`"lane"}`: want[0], `"split_off"}`: want[1]})
	}
	testkit.Equal(t, "queues", b.page("queues_split_off"), map[string]float64{`{partition="4",queue="domain"}`: 2, `{partition="4",queue="tasklist"}`: 3})
	values, err := b.metrics.Values()
	testkit.NoError(t, err)
	testkit.Equal(t, "oldest", values[`yardmaster_task_oldest_ready_age_seconds{partition="4"}`], 1.5)

	b.Report(4, &gauges.Report{})
	testkit.Equal(t, "of a queue that is merged", len(b.page(`queue_tasks{lane="keyed",partition="4",queue="split_off"`)), 0)
	b.Leave(4)
	testkit.Equal(t, "of a partition that left", len(b.page("queue")), 0)
}

// The tasklists whose tasks wait longest have a series, whichever partition has the oldest task. One that waits for less than 10 s has none.
func TestTasklistsThatNoOneTakesAreOnThePage(t *testing.T) {
	b := newBench(t, 2)
	report := func(number int, waits map[string]int64) {
		r := gauges.Report{NowMS: 1_000_000}
		for tasklist, seconds := range waits {
			r.NotTaken = append(r.NotTaken, nottaken.Tasklist{Domain: "shop", Name: tasklist, ReadyAt: r.NowMS - 1000*seconds})
		}
		b.Report(number, &r)
	}
	report(1, map[string]int64{"mail": 60, "sms": 20})
	report(2, map[string]int64{"mail": 900, "push": 9, "fax": 30})
	shown := func(tasklist string) string { return `{domain="shop",tasklist="` + tasklist + `"}` }
	testkit.Equal(t, "the two that wait longest", b.page("tasklist_oldest_ready_seconds"), map[string]float64{shown("mail"): 900, shown("fax"): 30})
	report(2, nil)
	testkit.Equal(t, "when they were taken", b.page("tasklist_oldest_ready_seconds"), map[string]float64{shown("mail"): 60, shown("sms"): 20})
}

// keysWithout is all without a prefix of the keys.
func keysWithout(all map[string]float64, prefix string) map[string]float64 {
	cut := map[string]float64{}
	for name, v := range all {
		cut[strings.TrimPrefix(name, prefix)] = v
	}
	return cut
}

// The busiest domains of all partitions have series of their own, the others one, and a domain that falls behind leaves the page.
func TestOnlyTheBusiestDomainsAreOnThePage(t *testing.T) {
	b := newBench(t, 2)
	b.reported(0, 0, nil)
	b.reported(1, 5, nil)
	b.reported(0, 10, map[string]int64{"a": 100, "b": 30, "c": 20})
	b.reported(1, 15, map[string]int64{"c": 20, "d": 10})
	testkit.Equal(t, "at first", b.completed(), map[string]float64{"a": 10, "c": 4, "other": 4})
	for n := 2; n <= 4; n++ { // a is idle from here on, and b is busy
		b.reported(0, 10*n, map[string]int64{"a": 100, "b": int64(200 * n), "c": int64(20 * n)})
		b.reported(1, 10*n+5, map[string]int64{"c": 20, "d": int64(10 * n)})
	}
	testkit.Equal(t, "when a is idle", b.completed(), map[string]float64{"b": 20, "c": 2, "other": 1})
	b.Leave(0)
	testkit.Equal(t, "with one partition", b.completed(), map[string]float64{"d": 1, "other": 0})
}

// A rate is over 10 to 20 s, whenever reports come, and a domain that was forgotten meanwhile begins again at 0.
func TestRatesAreOverTheLastSeconds(t *testing.T) {
	b := newBench(t, 20)
	rate := func(seconds int, completed int64) float64 {
		b.reported(0, seconds, map[string]int64{"a": completed})
		return b.completed()["a"]
	}
	testkit.Equal(t, "before anything is known", rate(100, 5000), 0)
	testkit.Equal(t, "soon", rate(101, 5008), 8)
	testkit.Equal(t, "the same report", rate(101, 5008), 8)
	for s := range 20 {
		rate(102+s, 5008)
	}
	testkit.Equal(t, "what was long ago does not count", rate(131, 5008), 0)
	testkit.Equal(t, "forgotten", rate(141, 40), 4)
}

func TestDomainsAreOnThePage(t *testing.T) {
	b := newBench(t, 20)
	report := func(seconds int, n int64) {
		r := &gauges.Report{CountedAt: time.Duration(seconds) * time.Second, NowMS: 60_000, Unread: map[string]int64{"light": 3 * n, "disk": 2 * n}}
		for _, name := range []string{"heavy", "light"} {
			c := dispatch.Census{Ready: 1, Running: 2, Backoff: 3, Admitted: 60 * n, Started: 50 * n, Completed: 40 * n, Failed: 10 * n, OldestReadyAt: 50_000}
			r.Domains = append(r.Domains, dispatch.DomainCensus{Domain: name, Census: c})
		}
		r.Domains = append(r.Domains, dispatch.DomainCensus{Domain: "resting", Census: dispatch.Census{Completed: 7}})
		b.Report(0, r)
	}
	report(0, 0)
	report(10, 1)
	of := func(domain string) map[string]float64 {
		all := map[string]float64{}
		for name, v := range b.page("domain_") {
			if metric, labels, _ := strings.Cut(name, "{"); strings.Contains(labels, `"`+domain+`"`) {
				_, state, _ := strings.Cut(labels, "state=")
				all[metric+strings.Trim(state, `"}`)] = v
			}
		}
		return all
	}
	want := map[string]float64{
		"admitted_per_second": 6, "started_per_second": 5, "completed_per_second": 4, "failed_per_second": 1, "share_ratio": 0.6, "had_ratio": 0.5, "tasksready": 1, "tasksrunning": 2, "tasksbackoff": 3,
		"unread": 0, "oldest_ready_seconds": 10,
	}
	testkit.Equal(t, "heavy", of("heavy"), want)
	want["share_ratio"], want["unread"] = 0.2, 3
	testkit.Equal(t, "light", of("light"), want)
	for name := range want {
		want[name] = 0
	}
	testkit.Equal(t, "the others", of("other"), want)
	want["share_ratio"], want["unread"] = 0.2, 2
	testkit.Equal(t, "only on disk", of("disk"), want)
	testkit.Equal(t, "without work", of("resting"), map[string]float64{})
}

// A domain that only waits is on the page if it has most of what is ready.
func TestADomainThatWaitsIsOnThePage(t *testing.T) {
	b := newBench(t, 2)
	report := func(seconds int, completed int64) {
		r := &gauges.Report{CountedAt: time.Duration(seconds) * time.Second}
		for n := range int64(10) {
			c := dispatch.Census{Ready: 1, Completed: completed * (100 + n)}
			r.Domains = append(r.Domains, dispatch.DomainCensus{Domain: fmt.Sprint("busy", n), Census: c})
		}
		r.Domains = append(r.Domains, dispatch.DomainCensus{Domain: "waits", Census: dispatch.Census{Ready: 500}})
		b.Report(0, r)
	}
	report(0, 0)
	report(10, 10)
	testkit.Equal(t, "rates", b.completed(), map[string]float64{"waits": 0, "busy9": 109, "other": 936})
}

// A domain with the name of the others is one of them.
func TestADomainNamedOther(t *testing.T) {
	b := newBench(t, 1)
	b.reported(0, 0, nil)
	b.reported(0, 10, map[string]int64{"other": 100, "a": 50, "b": 10})
	testkit.Equal(t, "rates", b.completed(), map[string]float64{"a": 5, "other": 11})
}

// However many domains there are, the page has so many series.
func TestThePageIsBounded(t *testing.T) {
	b := newBench(t, 20)
	names := map[string]int64{}
	for n := range 5000 {
		names[fmt.Sprint("d", n)] = int64(n)
	}
	b.reported(0, 0, nil)
	b.reported(0, 10, names)
	shown := b.completed()
	testkit.Equal(t, "series", len(b.page("domain_")), 11*21)
	testkit.Equal(t, "the last of the busiest", shown["d4980"], 498)
	total := 0.0
	for v := range maps.Values(shown) {
		total += v
	}
	testkit.Equal(t, "in all", int(total+0.5), 5000*4999/2/10)
}

// The domains of one partition are all there: rates since an earlier report, counts of the last one. A domain that rests is left out.
func TestWhatTheDomainsOfAPartitionDo(t *testing.T) {
	b := newBench(t, 1)
	report := func(seconds int, n int64) {
		b.Report(3, &gauges.Report{NowMS: 5000, CountedAt: time.Duration(seconds) * time.Second, Unread: map[string]int64{"flood": 8}, Domains: []dispatch.DomainCensus{
			{Domain: "shop", Census: dispatch.Census{Admitted: 40 * n, Started: 30 * n, Completed: 20 * n, Failed: 10 * n, Ready: 5, Running: 6, Backoff: 7, OldestReadyAt: 2000}},
			{Domain: "rests", Census: dispatch.Census{Admitted: 9, Started: 9, Completed: 9}},
		}})
	}
	report(0, 0)
	report(10, 1)
	testkit.Equal(t, "the partition", b.Domains(3), map[string]gauges.Work{
		"shop":  {Admitted: 4, Started: 3, Completed: 2, Failed: 1, Ready: 5, Running: 6, Backoff: 7, OldestMS: 3000},
		"flood": {Unread: 8},
	})
	testkit.Equal(t, "another partition", len(b.Domains(4)), 0)
	b.Leave(3)
	testkit.Equal(t, "after it left", len(b.Domains(3)), 0)
}
