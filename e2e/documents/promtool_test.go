package documents

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// promtool runs the program of Prometheus that checks rules, in the folder of the dashboards. Without it the test is skipped, or fails if
// all tests are asked for.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil && testkit.Quick() {
		t.Skipf("left out: %v (Debian has it in the package prometheus)", err)
	}
	testkit.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = filepath.Join("..", "..", "infra", "dashboards")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// TestAlertsFire: Prometheus itself reads the rules, and runs their tests.
func TestAlertsFire(t *testing.T) {
	promtool(t, "check", "rules", "alerts.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
}

// TestEachAlertHasATest: it fires in one.
func TestEachAlertHasATest(t *testing.T) {
	var all rules
	text, err := fs.ReadFile(Root(), "infra/dashboards/alerts.yml")
	testkit.NoError(t, err)
	testkit.NoError(t, yaml.Unmarshal(text, &all))
	tests, err := fs.ReadFile(Root(), "infra/dashboards/alerts_test.yml")
	testkit.NoError(t, err)
	for _, group := range all.Groups {
		for _, r := range group.Rules {
			if fires := `{alertname="` + r.Alert + `"}', value: 1}`; !strings.Contains(string(tests), fires) {
				t.Errorf("%s fires in no test of infra/dashboards/alerts_test.yml", r.Alert)
			}
		}
	}
}

// TestPrometheusReadsTheDashboards: each expression of a panel is a rule that it takes.
func TestPrometheusReadsTheDashboards(t *testing.T) {
	files, err := fs.Glob(Root(), "infra/dashboards/*.json")
	testkit.NoError(t, err)
	var text strings.Builder
	text.WriteString("groups:\n- name: panels\n  rules:\n")
	for i, file := range files {
		var d dashboard
		data, err := fs.ReadFile(Root(), file)
		testkit.NoError(t, err)
		testkit.NoError(t, json.Unmarshal(data, &d))
		for _, p := range d.Panels {
			for k, target := range p.Targets {
				fmt.Fprintf(&text, "  - {record: 'd%d:panel%d:target%d', expr: %q}\n", i, p.ID, k, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
			}
		}
	}
	path := filepath.Join(t.TempDir(), "panels.yml")
	testkit.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
	promtool(t, "check", "rules", path)
}
