package telemetry_test

import (
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Metrics of the tests.
var (
	things = signals.Metric{Name: "yardmaster.test.things", Kind: signals.Counter, Unit: "{thing}", Attributes: []string{signals.Partition}, Means: "Things."}
	level  = signals.Metric{Name: "yardmaster.test.level", Kind: signals.Gauge, Means: "A\nlevel."}
	lag    = signals.Metric{Name: "yardmaster.test.lag", Kind: signals.Gauge, Unit: signals.Seconds, Means: "Lag."}
	took   = signals.Metric{
		Name: "yardmaster.test.took", Kind: signals.Histogram, Unit: signals.Seconds, Means: "How long.",
		Attributes: []string{signals.Domain, signals.Tasklist}, Buckets: []float64{.001, .1, 1},
	}
)

func newMetrics(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m, err := telemetry.NewMetrics()
	testkit.NoError(t, err)
	return m
}

// page is what a scraper reads, without what the Go runtime and the process tell.
func page(t *testing.T, m *telemetry.Metrics) (ours, all string) {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(answer.Result().Body)
	if err != nil || answer.Code != 200 {
		t.Fatal(answer.Code, err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.Contains(line, "yardmaster_") {
			ours += line
		}
	}
	return ours, string(body)
}

func TestMetricsPage(t *testing.T) {
	m := newMetrics(t)
	m.Counter(things, "1").Add(5)
	m.Counter(things, "0").Add(2)
	m.Gauge(level).Set(7)
	m.Gauge(level).Set(4)
	m.GaugeFunc(lag, func() float64 { return 0.25 })
	h := m.Histogram(took, "shop", "mail")
	h.Record(time.Millisecond, 2) // a bound belongs to its bucket
	h.Record(2*time.Second, 1)
	h.Record(-time.Second, 1)
	h.Record(time.Second, 0)
	ours, all := page(t, m)
	want := `# HELP yardmaster_test_lag_seconds Lag.
# TYPE yardmaster_test_lag_seconds gauge
yardmaster_test_lag_seconds 0.25
# HELP yardmaster_test_level A\nlevel.
# TYPE yardmaster_test_level gauge
yardmaster_test_level 4
# HELP yardmaster_test_things_total Things.
# TYPE yardmaster_test_things_total counter
yardmaster_test_things_total{partition="0"} 2
yardmaster_test_things_total{partition="1"} 5
# HELP yardmaster_test_took_seconds How long.
# TYPE yardmaster_test_took_seconds histogram
yardmaster_test_took_seconds_bucket{domain="shop",tasklist="mail",le="0.001"} 3
yardmaster_test_took_seconds_bucket{domain="shop",tasklist="mail",le="0.1"} 3
yardmaster_test_took_seconds_bucket{domain="shop",tasklist="mail",le="1"} 3
yardmaster_test_took_seconds_bucket{domain="shop",tasklist="mail",le="+Inf"} 4
yardmaster_test_took_seconds_sum{domain="shop",tasklist="mail"} 2.002
yardmaster_test_took_seconds_count{domain="shop",tasklist="mail"} 4
`
	if ours != want {
		t.Errorf("got\n%s\nwant\n%s", ours, want)
	}
	for _, name := range []string{"go_goroutines ", "process_cpu_seconds_total "} {
		if !strings.Contains(all, "\n"+name) {
			t.Errorf("no %s", name)
		}
	}
}

// TestNamesOnThePage: what METRICS.md calls each metric is what the exporter makes of it.
func TestNamesOnThePage(t *testing.T) {
	m := newMetrics(t)
	for _, s := range signals.Sections() {
		for _, of := range s.Metrics {
			values := make([]string, len(of.Attributes))
			name := of.Prometheus()
			switch of.Kind {
			case signals.Counter:
				m.Counter(of, values...)
			case signals.Gauge:
				m.Gauge(of, values...)
			case signals.Histogram:
				m.Histogram(of, values...)
			}
			if ours, _ := page(t, m); !strings.Contains(ours, fmt.Sprintf("# TYPE %s %s\n", name, of.Kind)) {
				t.Errorf("%s is not on the page as %s", of.Name, name)
			}
		}
	}
}

// TestSeriesThatAreNotReportedVanish, each with the next reading of the page.
func TestSeriesThatAreNotReportedVanish(t *testing.T) {
	m, reports := newMetrics(t), map[string]float64{"0": 1, "1": 2}
	depth := signals.Metric{Name: "yardmaster.test.depth", Kind: signals.Gauge, Attributes: []string{signals.Partition}, Means: "Depth."}
	m.GaugesFunc(func(set func(signals.Metric, float64, ...string)) {
		for partition, n := range reports {
			set(depth, n, partition)
		}
		if len(reports) > 0 {
			set(lag, 3)
		}
	}, depth, lag)
	for _, want := range []map[string]float64{
		{`yardmaster_test_depth{partition="0"}`: 1, `yardmaster_test_depth{partition="1"}`: 2, `yardmaster_test_lag_seconds`: 3},
		{`yardmaster_test_depth{partition="1"}`: 2, `yardmaster_test_lag_seconds`: 3},
		{},
	} {
		got, err := m.Values()
		testkit.NoError(t, err)
		maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.HasPrefix(name, "yardmaster_") })
		testkit.Equal(t, "series", got, want)
		delete(reports, fmt.Sprint(2-len(reports)))
	}
	var none *telemetry.Metrics
	none.GaugesFunc(nil, depth)
}

func TestInstrumentsAreShared(t *testing.T) {
	m := newMetrics(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				m.Counter(things, "1").Add(1)
				m.Histogram(took, "d", "t").Record(time.Second, 2)
			}
		})
	}
	wg.Wait()
	got, err := m.Values()
	testkit.NoError(t, err)
	want := map[string]float64{
		`yardmaster_test_things_total{partition="1"}`:                 800,
		`yardmaster_test_took_seconds_count{domain="d",tasklist="t"}`: 1600,
		`yardmaster_test_took_seconds_sum{domain="d",tasklist="t"}`:   1600,
	}
	maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.HasPrefix(name, "yardmaster_") })
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestQueuesAreBounded: whatever names tenants make up, the page stays small, and nothing is lost.
func TestQueuesAreBounded(t *testing.T) {
	m := newMetrics(t)
	queues := m.HistogramsByQueue(took)
	const domains, lists = 30, 40
	for d := range domains {
		for l := range lists {
			for range 2 {
				queues.Of(fmt.Sprint("d", d), fmt.Sprint("t", l)).Record(time.Second, 1)
			}
		}
	}
	values, err := m.Values()
	testkit.NoError(t, err)
	series, sum, first := 0, 0.0, 0
	for name, v := range values {
		if strings.HasPrefix(name, "yardmaster_test_took_seconds_count") {
			series++
			sum += v
			if strings.Contains(name, `domain="d0"`) {
				first++
			}
		}
	}
	if series != signals.SeriesMax+1 || first != signals.DomainSeriesMax+1 || sum != 2*domains*lists {
		t.Errorf("%d series, %d of the first domain, %v in all", series, first, sum)
	}
	if got := values[`yardmaster_test_took_seconds_count{domain="d0",tasklist="other"}`]; got != 2*(lists-signals.DomainSeriesMax) {
		t.Errorf("%v in the rest of the first domain", got)
	}
	if values[`yardmaster_test_took_seconds_count{domain="other",tasklist="other"}`] == 0 {
		t.Error("nothing in the rest of all")
	}
}

func TestRecordingCostsNoAllocation(t *testing.T) {
	m := newMetrics(t)
	queues := m.HistogramsByQueue(took)
	if n := testing.AllocsPerRun(100, func() { queues.Of("d", "t").Record(time.Second, 3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNilMetricsWork(t *testing.T) {
	var m *telemetry.Metrics
	c, h := m.Counter(things, "1"), m.HistogramsByQueue(took).Of("d", "t")
	c.Add(2)
	h.Record(time.Second, 3)
	if c.Value() != 2 || h.Count() != 3 {
		t.Error("instruments of nil metrics do not count")
	}
	m.GaugeFunc(lag, func() float64 { return 1 })
	if ours, _ := page(t, m); ours != "" {
		t.Error(ours)
	}
}

func TestMetricsRefuseMistakes(t *testing.T) {
	m := newMetrics(t)
	for name, mistake := range map[string]func(){
		"counter as gauge": func() { m.Gauge(things, "1") },
		"too few values":   func() { m.Counter(things) },
		"counter in a set": func() { m.GaugesFunc(nil, things) },
		"bad name in set":  func() { m.GaugesFunc(nil, signals.Metric{Name: "a b", Kind: signals.Gauge}) },
		"bad name":         func() { m.Gauge(signals.Metric{Name: "a b", Kind: signals.Gauge}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			mistake()
		}()
	}
}

func BenchmarkRecord(b *testing.B) {
	m, err := telemetry.NewMetrics()
	testkit.NoError(b, err)
	h := m.Histogram(took, "d", "t")
	b.ReportAllocs()
	for b.Loop() {
		h.Record(4*time.Millisecond, 1)
	}
}
