package telemetry

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Metrics is a registry of numbers, written as a Prometheus text page. The zero
// value is empty and ready for use. Nil is one that nobody reads: it hands out
// numbers that work and are not written anywhere.
//
// A name is yard_<service>_<what>, with _total for counters and the unit before
// it (_bytes, _seconds), and may end in labels:
//
//	m.Counter(`yard_history_records_total{partition="3"}`, "Records applied.")
//
// A rate or a mean is left to the reader: count events and sum their sizes in two
// counters.
type Metrics struct {
	mu       sync.Mutex
	families map[string]*family // by name without labels
}

// family is all the series of one name.
type family struct {
	kind   string // counter or gauge
	help   string
	series map[string]series // by full name
}

type series interface{ text() string }

// Counter is a number that only grows. It is safe for concurrent use.
type Counter struct{ n atomic.Int64 }

// Add adds n, which is not negative.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Value returns the count since the process started.
func (c *Counter) Value() int64 { return c.n.Load() }

func (c *Counter) text() string { return fmt.Sprint(c.Value()) }

// Gauge is a number that goes up and down. It is safe for concurrent use.
type Gauge struct{ n atomic.Int64 }

// Set replaces the number.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Value returns the number.
func (g *Gauge) Value() int64 { return g.n.Load() }

func (g *Gauge) text() string { return fmt.Sprint(g.Value()) }

type gaugeFunc func() float64

func (f gaugeFunc) text() string { return fmt.Sprint(f()) }

// Counter returns the counter of that name, and makes it at the first call. A
// malformed name, or one already used for a gauge, panics: it is a mistake in the
// program.
func (m *Metrics) Counter(name, help string) *Counter {
	return register(m, "counter", name, help, new(Counter))
}

// Gauge returns the gauge of that name, under the same rules as Counter.
func (m *Metrics) Gauge(name, help string) *Gauge {
	return register(m, "gauge", name, help, new(Gauge))
}

// GaugeFunc adds a gauge whose value is asked for when the page is read. The
// function must be quick and safe for concurrent use; the first one of a name
// stays.
func (m *Metrics) GaugeFunc(name, help string, value func() float64) {
	register(m, "gauge", name, help, gaugeFunc(value))
}

var seriesName = regexp.MustCompile(`^([a-z_][a-z0-9_]*)(\{[a-z_][a-z0-9_]*="[^"\\\n]*"(,[a-z_][a-z0-9_]*="[^"\\\n]*")*\})?$`)

func register[S series](m *Metrics, kind, name, help string, fresh S) S {
	parts := seriesName.FindStringSubmatch(name)
	if parts == nil {
		panic(fmt.Sprintf("telemetry: malformed metric name %q", name))
	}
	if m == nil {
		return fresh
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.families[parts[1]]
	if f == nil {
		f = &family{kind: kind, help: help, series: map[string]series{}}
		if m.families == nil {
			m.families = map[string]*family{}
		}
		m.families[parts[1]] = f
	}
	if f.kind != kind {
		panic(fmt.Sprintf("telemetry: metric %q is a %s already", name, f.kind))
	}
	if f.series[name] == nil {
		f.series[name] = fresh
	}
	known, ok := f.series[name].(S)
	if !ok {
		panic(fmt.Sprintf("telemetry: metric %q is made both by Gauge and by GaugeFunc", name))
	}
	return known
}

// WritePrometheus writes all numbers in the Prometheus text format, sorted by
// name.
func (m *Metrics) WritePrometheus(w io.Writer) error {
	_, err := io.WriteString(w, m.page())
	return err
}

func (m *Metrics) page() string {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var page strings.Builder
	for _, name := range sortedKeys(m.families) {
		f := m.families[name]
		fmt.Fprintf(&page, "# HELP %s %s\n# TYPE %s %s\n", name, helpEscaper.Replace(f.help), name, f.kind)
		for _, full := range sortedKeys(f.series) {
			fmt.Fprintf(&page, "%s %s\n", full, f.series[full].text())
		}
	}
	return page.String()
}

var helpEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
