package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

// Metrics makes the instruments of one process, by OpenTelemetry's SDK, and shows them as a
// Prometheus page. Nil is one that is not read: it hands out instruments that work and
// are shown nowhere. The list of instruments is in contracts/signals.
//
// An instrument is bound to the values of its attributes once, and is then an atomic number: the SDK
// reads it when the page is asked for. So it may be used for every task. Making or finding one takes
// a lock and a map: that is for the start, and for a batch at most.
type Metrics struct {
	meter    metric.Meter
	registry *prometheus.Registry
	began    time.Time

	mu       sync.Mutex
	families map[string]*family
}

// family is all instruments of one metric.
type family struct {
	of     signals.Metric
	mu     sync.Mutex
	series map[string]*series // by the values of the attributes
	order  []*series
}

// series is one instrument.
type series struct {
	set    attribute.Set
	option metric.ObserveOption
	// One of these is set.
	counter   *Counter
	gauge     *Gauge
	function  func() float64
	histogram *Histogram
}

// Counter is a number that only grows. It is safe for concurrent use.
type Counter struct{ n atomic.Int64 }

// Add adds n, which is not negative.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Value returns the count since the process started.
func (c *Counter) Value() int64 { return c.n.Load() }

// Gauge is a number that goes up and down. It is safe for concurrent use.
type Gauge struct{ n atomic.Int64 }

// Set replaces the number.
func (g *Gauge) Set(n int64) { g.n.Store(n) }

// Value returns the number.
func (g *Gauge) Value() int64 { return g.n.Load() }

// NewMetrics makes metrics with those of the Go runtime and of the process included. It
// fails only where the exporter refuses its own options.
func NewMetrics() (*Metrics, error) {
	m := &Metrics{registry: prometheus.NewRegistry(), families: map[string]*family{}, began: time.Now()}
	exporter, err := otelprom.New(
		otelprom.WithRegisterer(m.registry),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprom.WithoutScopeInfo(),
		otelprom.WithoutTargetInfo(), // a scraper knows the target that it reads
		otelprom.WithProducer(histograms{m}),
	)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	m.meter = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithCardinalityLimit(0)).Meter(scope)
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m, nil
}

// Counter returns the counter with these values of its attributes, and makes it at the
// first call. A metric of another kind, or another number of values, panics: it is a
// mistake in the program. So it is with the other kinds.
func (m *Metrics) Counter(of signals.Metric, values ...string) *Counter {
	return m.instrument(of, signals.Counter, values, func() *series { return &series{counter: new(Counter)} }).counter
}

// Gauge returns the gauge with these values of its attributes.
func (m *Metrics) Gauge(of signals.Metric, values ...string) *Gauge {
	return m.instrument(of, signals.Gauge, values, func() *series { return &series{gauge: new(Gauge)} }).gauge
}

// GaugeFunc adds a gauge whose value is asked for when the page is read. The
// function must be quick and safe for concurrent use; the first one stays.
func (m *Metrics) GaugeFunc(of signals.Metric, value func() float64, values ...string) {
	m.instrument(of, signals.Gauge, values, func() *series { return &series{function: value} })
}

// GaugesFunc adds gauges whose series are asked for when the page is read: those that report sets are on it, and no others.
// Report must be quick and safe for concurrent use.
func (m *Metrics) GaugesFunc(report func(set func(of signals.Metric, value float64, values ...string)), all ...signals.Metric) {
	if m == nil {
		return
	}
	gauges, asked := map[string]metric.Float64ObservableGauge{}, []metric.Observable(nil)
	for _, of := range all {
		mustFit(of, signals.Gauge, of.Attributes)
		g, err := m.meter.Float64ObservableGauge(of.Name, metric.WithDescription(of.Means), metric.WithUnit(of.Unit))
		if err != nil {
			panic(fmt.Sprintf("telemetry: %s: %v", of.Name, err)) // a malformed name
		}
		gauges[of.Name], asked = g, append(asked, g)
	}
	_, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		report(func(of signals.Metric, value float64, values ...string) {
			mustFit(of, signals.Gauge, values)
			o.ObserveFloat64(gauges[of.Name], value, metric.WithAttributeSet(attributesOf(of, values)))
		})
		return nil
	}, asked...)
	if err != nil {
		panic(fmt.Sprintf("telemetry: %v", err)) // a gauge of another meter
	}
}

// Histogram returns the histogram with these values of its attributes.
func (m *Metrics) Histogram(of signals.Metric, values ...string) *Histogram {
	return m.instrument(of, signals.Histogram, values, func() *series { return &series{histogram: newHistogram(of.Buckets)} }).histogram
}

func (m *Metrics) instrument(of signals.Metric, kind signals.Kind, values []string, fresh func() *series) *series {
	mustFit(of, kind, values)
	if m == nil {
		return fresh()
	}
	return m.family(of).find(values, fresh)
}

// mustFit panics if a metric is of another kind, or has another number of attributes.
func mustFit(of signals.Metric, kind signals.Kind, values []string) {
	if of.Kind != kind || len(of.Attributes) != len(values) {
		panic(fmt.Sprintf("telemetry: %s is a %s by %q, it was used as a %s of %q", of.Name, of.Kind, of.Attributes, kind, values))
	}
}

// attributesOf are the values of the attributes of a metric.
func attributesOf(of signals.Metric, values []string) attribute.Set {
	attrs := make([]attribute.KeyValue, len(values))
	for i, v := range values {
		attrs[i] = attribute.String(of.Attributes[i], v)
	}
	return attribute.NewSet(attrs...)
}

// family registers a metric at its first use.
func (m *Metrics) family(of signals.Metric) *family {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.families[of.Name]
	if f == nil {
		f = &family{of: of, series: map[string]*series{}}
		m.families[of.Name] = f
		if err := m.register(f); err != nil {
			panic(fmt.Sprintf("telemetry: %s: %v", of.Name, err)) // a malformed name
		}
	}
	return f
}

// register has the SDK ask the family when the page is read. Histograms have a way of their own.
func (m *Metrics) register(f *family) (err error) {
	description, unit := metric.WithDescription(f.of.Means), metric.WithUnit(f.of.Unit)
	switch f.of.Kind {
	case signals.Counter:
		_, err = m.meter.Int64ObservableCounter(f.of.Name, description, unit, metric.WithInt64Callback(f.observeCounters))
	case signals.Gauge:
		_, err = m.meter.Float64ObservableGauge(f.of.Name, description, unit, metric.WithFloat64Callback(f.observeGauges))
	}
	return err
}

func (f *family) find(values []string, fresh func() *series) *series {
	key := strings.Join(values, "\x00")
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.series[key]
	if s == nil {
		s = fresh()
		s.set = attributesOf(f.of, values)
		s.option = metric.WithAttributeSet(s.set)
		f.series[key] = s
		f.order = append(f.order, s)
	}
	return s
}

// all are the series as they are now.
func (f *family) all() []*series {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clip(f.order)
}

func (f *family) observeCounters(_ context.Context, o metric.Int64Observer) error {
	for _, s := range f.all() {
		o.Observe(s.counter.Value(), s.option)
	}
	return nil
}

func (f *family) observeGauges(_ context.Context, o metric.Float64Observer) error {
	for _, s := range f.all() {
		if s.function != nil {
			o.Observe(s.function(), s.option)
		} else {
			o.Observe(float64(s.gauge.Value()), s.option)
		}
	}
	return nil
}

// Handler serves the page.
func (m *Metrics) Handler() http.Handler {
	if m == nil {
		return promhttp.HandlerFor(prometheus.NewRegistry(), promhttp.HandlerOpts{})
	}
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Values are the numbers of our own metrics as the page shows them, by name and labels: `x_total` or
// `x_total{partition="1"}`. A histogram is its _count and its _sum. Only tests and people use it, so it need not be
// fast.
func (m *Metrics) Values() (map[string]float64, error) {
	all := map[string]float64{}
	if m == nil {
		return all, nil
	}
	families, err := m.registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	for _, f := range families {
		for _, one := range f.GetMetric() {
			labels := make([]string, 0, len(one.GetLabel()))
			for _, l := range one.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			text := ""
			if len(labels) > 0 {
				text = "{" + strings.Join(labels, ",") + "}"
			}
			if h := one.GetHistogram(); h != nil {
				all[f.GetName()+"_count"+text], all[f.GetName()+"_sum"+text] = float64(h.GetSampleCount()), h.GetSampleSum()
				continue
			}
			all[f.GetName()+text] = one.GetCounter().GetValue() + one.GetGauge().GetValue()
		}
	}
	return all, nil
}
