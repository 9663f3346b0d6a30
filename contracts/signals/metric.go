package signals

import "strings"

// Kind says how to read a metric.
type Kind string

// The kinds of metrics.
const (
	// Counter only grows while a process lives: read it as a rate.
	Counter Kind = "counter"
	// Gauge rises and falls.
	Gauge Kind = "gauge"
	// Histogram counts durations by size: read it as quantiles, and as a rate.
	Histogram Kind = "histogram"
)

// Seconds is the unit of all durations. Counts have a unit in braces, which is for
// people: {task}.
const Seconds = "s"

// Units of gauges that Prometheus has in the name.
const (
	InBytes           = "By"
	Part              = "1"
	TasksPerSecond    = "{task}/s"
	AttemptsPerSecond = "{attempt}/s"
)

// Metric is one metric of the services.
type Metric struct {
	// Name is that of OpenTelemetry, with dots.
	Name string
	Kind Kind
	// Unit is a UCUM code, such as s or {task}.
	Unit string
	// Attributes are the keys that distinguish its series, in the order in which
	// shared/telemetry takes their values.
	Attributes []string
	// Buckets are the upper bounds of a histogram, in its unit.
	Buckets []float64
	// Means is what it counts, as one sentence.
	Means string
	// Worry says when an operator must look; "" = never for this alone.
	Worry string
}

// suffixes are the endings of Prometheus names, by unit.
var suffixes = map[string]string{
	Seconds: "_seconds", InBytes: "_bytes", Part: "_ratio", TasksPerSecond: "_per_second", AttemptsPerSecond: "_per_second",
}

// Prometheus is its name on the page /metrics: dots become underscores, then follow the
// unit and, for a counter, _total. A histogram is _bucket, _sum and _count of it.
func (m Metric) Prometheus() string {
	name := strings.ReplaceAll(m.Name, ".", "_") + suffixes[m.Unit]
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}

// Other stands for the domain or tasklist of the series beyond the limit.
const Other = "other"

// quick are the bounds of what takes one or a few round trips, in seconds.
func quick() []float64 {
	return []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// long are the bounds of what waits for others, in seconds.
func long() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}
}
