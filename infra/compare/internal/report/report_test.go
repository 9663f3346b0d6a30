package report

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/compare/internal/load"
)

// A ratio is the median of the ratios of runs, not the ratio of medians, and a run that failed has none.
func TestRatios(t *testing.T) {
	t.Parallel()
	r := Report{Runs: 4, Settings: []Setting{
		{System: Own, Sync: "always", Runs: []load.Values{values(100, 2), values(300, 2), values(90, 9), nil}},
		{System: "other", Sync: "always", Runs: []load.Values{values(50, 4), values(100, 4), values(100, 1), values(1, 1)}},
		{System: "other", Sync: "1s", Runs: []load.Values{values(1, 1), nil, nil, nil}},
	}}
	r.Summarize()
	if got := r.ratio("other", "always", "w1_per_s"); got != 2 {
		t.Errorf("the ratio of W1 is %v, want the median of 2, 3 and 0.9", got)
	}
	if got := r.Settings[1].Median["w1_per_s"]; got != 75 {
		t.Errorf("the median is %v, want the mean of 50 and 100", got)
	}
	if got := r.ratio("other", "1s", "w1_per_s"); got != 0 {
		t.Errorf("a ratio of %v without Yardmaster at that setting", got)
	}
	page := r.Markdown()
	for _, want := range []string{
		"| W1 in bulk, tasks/s | 100 | 75.0 (**2.00**) |",
		"| W3 submit to handler, p99, ms | 2.00 | 2.50 (**0.50**) |",
		"| W1 in bulk, tasks/s | 1.00 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	for line := range strings.Lines(page) {
		if len([]rune(line)) > columnsMax+1 {
			t.Errorf("a line has more than %d characters: %s", columnsMax, line)
		}
	}
}

func values(perSecond, ms float64) load.Values {
	return load.Values{"w1_per_s": perSecond, "w3_p99_ms": ms}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0.00", 0.034: "0.03", 0.5: "0.50", 7.25: "7.25", 12.34: "12.3", 123.4: "123", 999.4: "999", 1234: "1,200",
		12_345: "12,300", 999_960: "1,000,000", 1_234_567: "1,234,600",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%v) is %s, want %s", x, got, want)
		}
	}
}
