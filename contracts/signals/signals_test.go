package signals_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/signals"
)

// TestPageIsFresh: METRICS.md is what the metrics say.
func TestPageIsFresh(t *testing.T) {
	page, err := os.ReadFile("../METRICS.md")
	checktest.NoError(t, err)
	if string(page) != signals.Page() {
		t.Error("METRICS.md is stale: run go generate ./signals in contracts")
	}
}

// TestMetricsAreWellFormed: names follow one pattern and are used once, every kind has what it needs, and what
// it tells is a sentence.
func TestMetricsAreWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^yardmaster(\.[a-z]+(_[a-z]+)*){2,3}$`)
	known := map[string]bool{}
	for _, s := range signals.Sections() {
		for _, m := range s.Metrics {
			switch {
			case !name.MatchString(m.Name):
				t.Errorf("%s: not named like yardmaster.submit.duration", m.Name)
			case known[m.Prometheus()]:
				t.Errorf("%s: two of that name", m.Name)
			case !strings.HasSuffix(m.Means, ".") || strings.Contains(m.Means+m.Worry, "|"):
				t.Errorf("%s: tells %q", m.Name, m.Means)
			case m.Kind == signals.Histogram && (m.Unit != signals.Seconds || !slices.IsSorted(m.Buckets) || len(m.Buckets) == 0):
				t.Errorf("%s: a histogram of %q with buckets %v", m.Name, m.Unit, m.Buckets)
			case m.Kind == signals.Counter && m.Unit == "":
				t.Errorf("%s: a counter of nothing", m.Name)
			}
			known[m.Prometheus()] = true
		}
	}
}
