package documents

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// rules is a file of alerting rules as Prometheus reads it.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

// TestAlerts holds what a rule needs: an expression that fits the metrics, a time that it lasts, a severity, a reason, and a
// heading of the runbook.
func TestAlerts(t *testing.T) {
	read := func(file string) string {
		text, err := fs.ReadFile(Root(), file)
		testkit.NoError(t, err)
		return string(text)
	}
	decoder := yaml.NewDecoder(strings.NewReader(read("infra/dashboards/alerts.yml")))
	decoder.KnownFields(true)
	var all rules
	testkit.NoError(t, decoder.Decode(&all))
	runbook := read("infra/docs/operations.md")
	var names []string
	for _, group := range all.Groups {
		for _, r := range group.Rules {
			for _, problem := range problems(r.Expr) {
				t.Errorf("%s: %s", r.Alert, problem)
			}
			if r.For != "" && !span.MatchString(r.For) {
				t.Errorf("%s: it is to last for %q", r.Alert, r.For)
			}
			if !strings.Contains(runbook, "\n### "+r.Annotations["runbook"]+"\n") {
				t.Errorf("%s: the runbook has no heading %q", r.Alert, r.Annotations["runbook"])
			}
			for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(r.Annotations["summary"], -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + label[1] + `\b`).MatchString(r.Expr) {
					t.Errorf("%s: its summary has the label %s, its expression has not", r.Alert, label[1])
				}
			}
			if r.Annotations["reason"] == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) {
				t.Errorf("%s has no reason or severity", r.Alert)
			}
			names = append(names, r.Alert)
		}
	}
	slices.Sort(names)
	if len(names) < 10 || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("the alerts are %v", names)
	}
}

// TestWrongExpressions: each kind of mistake is found, and by its own check.
func TestWrongExpressions(t *testing.T) {
	for expr, want := range map[string]string{
		`sum(rate(yardmaster_submit_tasks_total[5m]))`:                                                         "it compares with nothing, so it fires always",
		`max(yardmaster_storage_full) > 0`:                                                                     "there is no metric yardmaster_storage_full",
		`rate(yardmaster_submit_tasks_total_bucket[5m]) > 0`:                                                   "there is no metric yardmaster_submit_tasks_total_bucket",
		`sum(yardmaster_submit_tasks_total) > 0`:                                                               "yardmaster_submit_tasks_total is a counter, outside of rate and increase",
		`max(max_over_time(yardmaster_submit_tasks_total[5m])) > 0`:                                            "yardmaster_submit_tasks_total is a counter, outside of rate and increase",
		`rate(yardmaster_history_storage_full[5m]) > 0`:                                                        "yardmaster_history_storage_full is a gauge, in rate",
		`rate(yardmaster_submit_tasks_total) > 0`:                                                              "yardmaster_submit_tasks_total has a range outside of a function of a range, or none inside",
		`yardmaster_history_storage_full[5m] > 0`:                                                              "yardmaster_history_storage_full has a range outside of a function of a range, or none inside",
		`rate(yardmaster_submit_tasks_total[5 m]) > 0`:                                                         "the range \"5\"",
		`sum by (code) (rate(yardmaster_submit_tasks_total[5m])) > 0`:                                          "yardmaster_submit_tasks_total has no label code",
		`rate(yardmaster_requests_failed_total{kode="INTERNAL"}[5m]) > 0`:                                      "yardmaster_requests_failed_total has no label kode",
		`rate(yardmaster_requests_failed_total{code=~"UNKNOWN|X"}[5m]) > 0`:                                    "there is no code X",
		`rate(yardmaster_requests_failed_total{verb=~"("}[5m]) > 0`:                                            "the selector verb=~\"(\"",
		`max by (le) (yardmaster_history_storage_full) > 0`:                                                    "yardmaster_history_storage_full has no label le",
		`sum by (verb) (sum by (code) (rate(yardmaster_requests_failed_total[5m]))) > 0`:                       "sum drops verb, which is asked for around it",
		`rate(yardmaster_timer_lateness_seconds[5m]) > 0`:                                                      "yardmaster_timer_lateness_seconds is a histogram, and has buckets only",
		`sum by (le) (rate(yardmaster_timer_lateness_seconds_bucket[5m])) > 0`:                                 "yardmaster_timer_lateness_seconds_bucket must be in histogram_quantile(…, sum by (le) (rate(…)))",
		`histogram_quantile(0.9, rate(yardmaster_timer_lateness_seconds_bucket[5m])) > 0`:                      "yardmaster_timer_lateness_seconds_bucket must be in histogram_quantile(…, sum by (le) (rate(…)))",
		`histogram_quantile(0.9, sum by (le) (yardmaster_timer_lateness_seconds_bucket)) > 0`:                  "yardmaster_timer_lateness_seconds_bucket must be in histogram_quantile(…, sum by (le) (rate(…)))",
		`histogram_quantile(0.9, sum by (partition) (rate(yardmaster_timer_lateness_seconds_bucket[5m]))) > 0`: "sum in a histogram_quantile drops le",
		`histogram_quantile(99, sum by (le) (rate(yardmaster_timer_lateness_seconds_bucket[5m]))) > 0`:         "the quantile 99",
		`delta(yardmaster_history_storage_full) > 0`:                                                           "the function delta is not known to this test",
		`max(yardmaster_history_storage_full > 0`:                                                              "\"\" where \")\" is expected",
		`max(yardmaster_history_storage_full)) > 0`:                                                            "it goes on with \") > 0\"",
		`max(yardmaster_history_storage_full) >`:                                                               "\"\" where a part of it is expected",
	} {
		if got := problems(expr); !slices.Contains(got, want) {
			t.Errorf("%s: found %q, want %q", expr, got, want)
		}
	}
	for _, expr := range []string{
		`max by (service, instance) (max_over_time(yardmaster_partition_stopped{service="history"}[5m])) > 0`,
		`max by (service) (histogram_quantile(0.99, sum by (le, service, operation) (rate(yardmaster_append_duration_seconds_bucket[1h30m])))) / 2 > 0.5`,
		`(rate(yardmaster_submit_tasks_total[5m]) + 1 > 0) and (abs(yardmaster_clock_skew_seconds) >= 1)`,
	} {
		if got := problems(expr); len(got) > 0 {
			t.Errorf("%s: %q", expr, got)
		}
	}
}
