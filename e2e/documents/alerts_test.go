package documents

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
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

// TestAlerts holds what a rule needs: metrics that there are, by their names on the page of metrics, parentheses that
// close, a severity, a reason, and a heading of the runbook.
func TestAlerts(t *testing.T) {
	read := func(file string) string {
		text, err := fs.ReadFile(Root(), file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	decoder := yaml.NewDecoder(strings.NewReader(read("infra/docs/alerts.yml")))
	decoder.KnownFields(true)
	var all rules
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	metrics, runbook := read("contracts/METRICS.md"), read("infra/docs/operations.md")
	metric := regexp.MustCompile(`yardmaster_\w+`)
	var names []string
	for _, group := range all.Groups {
		for _, r := range group.Rules {
			found := metric.FindAllString(r.Expr, -1)
			for _, name := range found {
				if base := strings.TrimSuffix(name, "_bucket"); !strings.Contains(metrics, "`"+base+"`") {
					t.Errorf("%s: there is no metric %s", r.Alert, base)
				}
			}
			balanced := strings.Count(r.Expr, "(") == strings.Count(r.Expr, ")") && strings.Count(r.Expr, "[") == strings.Count(r.Expr, "]")
			if len(found) == 0 || !balanced {
				t.Errorf("%s: the expression %q", r.Alert, r.Expr)
			}
			if !strings.Contains(runbook, "\n### "+r.Annotations["runbook"]+"\n") {
				t.Errorf("%s: the runbook has no heading %q", r.Alert, r.Annotations["runbook"])
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
