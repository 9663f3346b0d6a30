package telemetry_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/telemetry"
)

func TestMetricsPage(t *testing.T) {
	var m telemetry.Metrics
	m.Counter(`yard_history_records_total{partition="1"}`, "Records applied.").Add(5)
	m.Counter(`yard_history_records_total{partition="0"}`, "Records applied.").Add(2)
	m.Gauge("yard_history_active_tasks", "Active\ntasks.").Set(7)
	m.Gauge("yard_history_active_tasks", "").Add(-3)
	m.GaugeFunc("yard_history_lag_seconds", "Lag.", func() float64 { return 0.25 })
	var page strings.Builder
	if err := m.WritePrometheus(&page); err != nil {
		t.Fatal(err)
	}
	want := `# HELP yard_history_active_tasks Active\ntasks.
# TYPE yard_history_active_tasks gauge
yard_history_active_tasks 4
# HELP yard_history_lag_seconds Lag.
# TYPE yard_history_lag_seconds gauge
yard_history_lag_seconds 0.25
# HELP yard_history_records_total Records applied.
# TYPE yard_history_records_total counter
yard_history_records_total{partition="0"} 2
yard_history_records_total{partition="1"} 5
`
	if got := page.String(); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMetricsAreSharedByName(t *testing.T) {
	var m telemetry.Metrics
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				m.Counter("yard_x_total", "X.").Add(1)
			}
		})
	}
	wg.Wait()
	if got := m.Counter("yard_x_total", "X.").Value(); got != 800 {
		t.Fatalf("got %d, want 800", got)
	}
}

func TestNilMetricsWork(t *testing.T) {
	var m *telemetry.Metrics
	c := m.Counter("yard_x_total", "X.")
	c.Add(2)
	if c.Value() != 2 {
		t.Fatal("a counter of nil metrics does not count")
	}
	m.GaugeFunc("yard_y", "Y.", func() float64 { return 1 })
}

func TestMetricsRefuseMistakes(t *testing.T) {
	var m telemetry.Metrics
	m.Counter("yard_x_total", "")
	m.Gauge("yard_y", "")
	for name, mistake := range map[string]func(){
		"bad name":          func() { m.Counter("Yard x", "") },
		"bad label":         func() { m.Counter(`yard_z{a=b}`, "") },
		"counter as gauge":  func() { m.Gauge("yard_x_total", "") },
		"gauge as function": func() { m.GaugeFunc("yard_y", "", nil) },
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
