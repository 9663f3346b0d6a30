package telemetry

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

// Histogram counts durations by size. It is safe for concurrent use.
//
// The SDK's own one takes 0.3 to 0.4 µs for each duration, and one duration at a time; a task is
// worked off in 20 µs. This one takes a tenth of that, whatever the number of tasks that
// took the same time. The SDK's exporter shows it as it shows its own.
type Histogram struct {
	bounds []float64
	counts []atomic.Int64 // by bucket; the last one has no bound
	sum    atomic.Uint64  // seconds, the bits of a float: days times millions of tasks are too many nanoseconds
}

func newHistogram(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
}

// Record counts n things that took d each. A negative d, from clocks that differ, counts as 0.
func (h *Histogram) Record(d time.Duration, n int) {
	if n <= 0 {
		return
	}
	d = max(d, 0)
	i, _ := slices.BinarySearch(h.bounds, d.Seconds())
	h.counts[i].Add(int64(n))
	more := d.Seconds() * float64(n)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+more)) {
			return
		}
	}
}

// Count returns how many things were counted.
func (h *Histogram) Count() (n int64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// histograms gives the exporter what the SDK does not hold.
type histograms struct{ *Metrics }

// Produce implements the SDK's metric.Producer.
func (m histograms) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	m.mu.Lock()
	var families []*family
	for _, f := range m.families {
		if f.of.Kind == signals.Histogram {
			families = append(families, f)
		}
	}
	m.mu.Unlock()
	out := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	now := time.Now()
	for _, f := range families {
		data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, s := range f.all() {
			point := s.histogram.point()
			point.Attributes, point.StartTime, point.Time = s.set, m.began, now
			data.DataPoints = append(data.DataPoints, point)
		}
		out.Metrics = append(out.Metrics, metricdata.Metrics{Name: f.of.Name, Description: f.of.Means, Unit: f.of.Unit, Data: data})
	}
	return []metricdata.ScopeMetrics{out}, nil
}

func (h *Histogram) point() metricdata.HistogramDataPoint[float64] {
	p := metricdata.HistogramDataPoint[float64]{Bounds: h.bounds, BucketCounts: make([]uint64, len(h.counts))}
	p.Sum = math.Float64frombits(h.sum.Load())
	for i := range h.counts {
		n := uint64(h.counts[i].Load())
		p.BucketCounts[i] = n
		p.Count += n
	}
	return p
}
