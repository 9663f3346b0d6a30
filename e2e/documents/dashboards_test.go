package documents

import (
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// dashboard is what a dashboard of Grafana has that can be wrong.
type dashboard struct {
	UID, Title, Description string
	Templating              struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID                 int
		Title, Description string
		Targets            []struct{ Expr, LegendFormat string }
	}
}

var (
	// labelValues is the query of a variable.
	labelValues = regexp.MustCompile(`^label_values\((yardmaster_\w+)(\{.*\})?, (\w+)\)$`)
	legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)
	variable    = regexp.MustCompile(`"\$(\w+)"`)
)

// TestDashboards: each panel asks for metrics and labels that there are, explains itself, and is named by labels that its expression keeps.
func TestDashboards(t *testing.T) {
	files, err := fs.Glob(Root(), "infra/dashboards/*.json")
	testkit.NoError(t, err)
	testkit.Equal(t, "dashboards", len(files), 3)
	for _, file := range files {
		text, err := fs.ReadFile(Root(), file)
		testkit.NoError(t, err)
		var d dashboard
		testkit.NoError(t, json.Unmarshal(text, &d))
		if d.UID != "yardmaster-"+strings.TrimSuffix(path.Base(file), ".json") || d.Title == "" || d.Description == "" {
			t.Errorf("%s: uid %q, title %q, description %q", file, d.UID, d.Title, d.Description)
		}
		checkDashboard(t, &d)
	}
}

func checkDashboard(t *testing.T, d *dashboard) {
	t.Helper()
	known := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
		if v.Type != "query" {
			continue
		}
		parts := labelValues.FindStringSubmatch(v.Query)
		if parts == nil {
			t.Errorf("%s: the query %q of %s", d.Title, v.Query, v.Name)
			continue
		}
		metric := strings.TrimSuffix(parts[1], "_count")
		if strings.HasSuffix(parts[1], "_count") { // of a histogram, which this test knows by its buckets
			metric = "histogram_quantile(0.5, sum by (le, " + parts[3] + ") (rate(" + metric + "_bucket" + parts[2] + "[5m])))"
		} else {
			metric = "max by (" + parts[3] + ") (" + metric + parts[2] + ")"
		}
		if _, problems := check(metric); len(problems) > 0 {
			t.Errorf("%s: the values of %s: %q", d.Title, v.Name, problems)
		}
	}
	for i, p := range d.Panels {
		if p.ID != i+1 || p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("%s: panel %d has the id %d, the title %q, the description %q, %d targets", d.Title, i+1, p.ID, p.Title, p.Description, len(p.Targets))
		}
		for _, target := range p.Targets {
			if _, problems := check(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")); len(problems) > 0 {
				t.Errorf("%s, %s: %s: %q", d.Title, p.Title, target.Expr, problems)
			}
			for _, label := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + label[1] + `\b`).MatchString(target.Expr) {
					t.Errorf("%s, %s: the legend has the label %s, the expression drops it", d.Title, p.Title, label[1])
				}
			}
			for _, name := range variable.FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(known, name[1]) {
					t.Errorf("%s, %s: there is no variable %s", d.Title, p.Title, name[1])
				}
			}
		}
	}
}
