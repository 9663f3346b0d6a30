package signals

import (
	"fmt"
	"strings"

	"github.com/yardmaster-io/yardmaster/contracts/internal/columns"
)

const pageHead = `<!-- Generated from contracts/signals by contracts/proto/generate.sh, or go generate. Do not edit. -->
# Metrics

Every service shows these on its page ` + "`/metrics`" + `. The names are those of Prometheus; the names of OpenTelemetry have
dots, and neither ` + "`_seconds`" + ` nor ` + "`_total`" + `. Durations are in seconds. A histogram is three series: ` + "`…_bucket`, `…_sum`" + `
and ` + "`…_count`" + `.

A metric by ` + "`domain` and `tasklist`" + ` has at most %d series in a process, and %d of one domain. Further ones are counted
as ` + "`other`" + `. The Go runtime and the use of CPU, memory and files are ` + "`go_…` and `process_…`" + `.
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
		fmt.Fprintf(&page, "\n## %s\n\n", s.Title)
		for _, m := range s.Metrics {
			text := fmt.Sprintf("- `%s` (%s%s%s): %s", m.Prometheus(), m.Kind, unit(m.Unit), attributes(m.Attributes), m.Means)
			if m.Worry != "" {
				text += " **Worry if** " + m.Worry + "."
			}
			fmt.Fprintln(&page, columns.Wrap(2, text))
		}
	}
	return page.String()
}

func unit(code string) string {
	if code = strings.NewReplacer("{", "", "}", "", InBytes, "bytes", Part, "part").Replace(code); code == "" {
		return ""
	}
	return ", " + code
}

func attributes(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return ", by `" + strings.Join(keys, "`, `") + "`"
}

// Section is the part of the page for one service.
type Section struct {
	Title   string
	Metrics []Metric
}

// Each metric is declared in its section.
var (
	process  = &Section{Title: "Every service"}
	frontend = &Section{Title: "Frontend"}
	history  = &Section{Title: "History"}
	matching = &Section{Title: "Matching"}
	timer    = &Section{Title: "Timer"}
)

func (s *Section) add(m Metric) Metric {
	s.Metrics = append(s.Metrics, m)
	return m
}

// Sections are all metrics.
func Sections() []Section { return []Section{*process, *frontend, *history, *matching, *timer} }
