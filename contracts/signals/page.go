package signals

import (
	"fmt"
	"strings"
)

const pageHead = `<!-- Generated from contracts/signals by contracts/proto/generate.sh, or go generate. Do not edit. -->
# Metrics

What the page ` + "`/metrics`" + ` of every service shows. The names are those of Prometheus; OpenTelemetry's have dots, and neither
` + "`_seconds`" + ` nor ` + "`_total`" + `. Durations are seconds. A histogram is three: ` + "`…_bucket`, `…_sum` and `…_count`" + `, and its count is a rate too.

A metric by ` + "`domain` and `tasklist`" + ` has at most %d series in a process, %d of one domain: what comes later is counted as
` + "`other`" + `. A process's Go runtime and its use of CPU, memory and files are there as ` + "`go_…` and `process_…`" + `.
`

// The limits of series by domain and tasklist, in one process and for one metric.
const (
	SeriesMax       = 200
	DomainSeriesMax = 20
)

// Page is METRICS.md.
func Page() string {
	var page strings.Builder
	fmt.Fprintf(&page, pageHead, SeriesMax, DomainSeriesMax)
	for _, s := range Sections() {
		fmt.Fprintf(&page, "\n## %s\n\n| name | kind | unit | attributes | what it tells | when to worry |\n|---|---|---|---|---|---|\n", s.Title)
		for _, m := range s.Metrics {
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s |\n", m.Prometheus(), m.Kind, unit(m.Unit), attributes(m.Attributes), m.Tells, worry(m.Worry))
		}
	}
	return page.String()
}

func unit(code string) string { return strings.Trim(code, "{}") }

func attributes(keys []string) string {
	if len(keys) == 0 {
		return "–"
	}
	return "`" + strings.Join(keys, "`, `") + "`"
}

func worry(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// Section is the part of the page for one service.
type Section struct {
	Title   string
	Metrics []Metric
}

// Sections are all metrics.
func Sections() []Section {
	return []Section{
		{"Every service", process()},
		{"Frontend", frontend()},
		{"History", history()},
		{"Matching", matching()},
		{"Timer", timer()},
	}
}
