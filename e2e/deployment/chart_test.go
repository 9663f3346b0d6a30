package deployment

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// chart is the folder of the chart.
var chart = filepath.Join(root, "infra/helm/yardmaster")

// object is what the tests read of an object of Kubernetes.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Replicas       *int
		MinReplicas    int `yaml:"minReplicas"`
		MaxUnavailable int `yaml:"maxUnavailable"`
		Groups         []any
		Template       struct{ Spec podSpec }
	}
}

type podSpec struct {
	Grace      int   `yaml:"terminationGracePeriodSeconds"`
	Spread     []any `yaml:"topologySpreadConstraints"`
	Containers []struct {
		Command, Args []string
		Liveness      probe `yaml:"livenessProbe"`
		Readiness     probe `yaml:"readinessProbe"`
		Env           []struct{ Name string }
	}
}

type probe struct {
	HTTP struct{ Path string } `yaml:"httpGet"`
}

// objects are those that the chart makes of files of values, by kind and name.
func objects(t *testing.T, values ...string) map[string]object {
	t.Helper()
	var args []string
	for _, file := range values {
		args = append(args, "--values", file)
	}
	decoder := yaml.NewDecoder(strings.NewReader(run(t, exec.Command(tool(t, "chart"), append(args, chart)...))))
	all := map[string]object{}
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		testkit.NoError(t, err)
		all[o.Kind+" "+strings.TrimPrefix(o.Metadata.Name, "yard-yardmaster-")] = o
	}
}

// TestTheChart: it is linted, each object has only fields that the API of Kubernetes has, and each service hands its
// partitions over before it is killed.
func TestTheChart(t *testing.T) {
	slow(t)
	all := objects(t)
	testkit.Equal(t, "objects", len(all), 4*len(services))
	for _, name := range services {
		d := all["Deployment "+name]
		pod := d.Spec.Template.Spec
		if len(pod.Containers) != 1 || *d.Spec.Replicas != 2 || len(pod.Spread) != 2 {
			t.Fatalf("%s is %+v", name, d)
		}
		c := pod.Containers[0]
		testkit.Equal(t, "command", c.Command, []string{"/bin/" + name})
		testkit.Equal(t, "probes", c.Liveness.HTTP.Path+c.Readiness.HTTP.Path, "/livez/readyz")
		if grace := time.Duration(pod.Grace) * time.Second; grace <= 2*lifecycle.DrainTimeoutDefault {
			t.Errorf("%s is killed after %v", name, grace)
		}
		testkit.Equal(t, "pods that may go at a time", all["PodDisruptionBudget "+name].Spec.MaxUnavailable, 1)
		for _, kind := range []string{"ConfigMap ", "Service "} {
			if _, ok := all[kind+name]; !ok {
				t.Errorf("there is no %s%s", kind, name)
			}
		}
	}
	wrong := filepath.Join(t.TempDir(), "values.yaml")
	for text, why := range map[string]string{
		"cluster: {replicas: 2}": "replicas", "histroy: {}": "histroy", "redis: {addrs: []}": "addrs", "affinity: {nodeAfinity: {}}": `unknown field "spec.template.spec.affinity.nodeAfinity"`,
	} {
		testkit.NoError(t, os.WriteFile(wrong, []byte(text), 0o600))
		refused(t, why, exec.Command(tool(t, "chart"), "--values", wrong, chart))
	}
}

// TestTheChartWithEverything: what is off by default fits, too.
func TestTheChartWithEverything(t *testing.T) {
	slow(t)
	all := objects(t, filepath.Join(chart, "ci/everything-values.yaml"))
	for _, name := range []string{
		"HorizontalPodAutoscaler history", "HorizontalPodAutoscaler mailer", "ServiceMonitor yard-yardmaster", "PrometheusRule yard-yardmaster", "ConfigMap operator",
	} {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no %s", name)
		}
	}
	testkit.Equal(t, "pods at least", all["HorizontalPodAutoscaler history"].Spec.MinReplicas, 3)
	if all["Deployment history"].Spec.Replicas != nil || len(all["PrometheusRule yard-yardmaster"].Spec.Groups) == 0 {
		t.Errorf("%+v", all)
	}
}

// TestTheSettingsOfTheChart: each service takes its file, and the URL of a secret from the environment.
func TestTheSettingsOfTheChart(t *testing.T) {
	slow(t)
	i := theImage(t)
	for values, want := range map[string][]string{
		"":           {"history_partitions: 16", "replicas: 3", "url: nats://nats:4222"},
		"sealed":     {"enabled: false", "_INBOX.t.{domain}.", "nkey_seed: /keys/nats.nk", "inbox_prefix: _INBOX.s."},
		"everything": {"url: nats://********@secret:4222"},
	} {
		var files []string
		if values != "" {
			files = []string{filepath.Join(chart, "ci", values+"-values.yaml")}
		}
		all := objects(t, files...)
		for _, name := range services {
			file := filepath.Join(t.TempDir(), "config.yaml")
			testkit.NoError(t, os.WriteFile(file, []byte(all["ConfigMap "+name].Data["config.yaml"]), 0o600))
			cmd := exec.CommandContext(t.Context(), i.program(name), "--config", file, "--print-config")
			for _, v := range all["Deployment "+name].Spec.Template.Spec.Containers[0].Env {
				if strings.HasPrefix(v.Name, "YARD_") {
					cmd.Env = append(cmd.Env, v.Name+"=nats://token@secret:4222")
				}
			}
			text := run(t, cmd)
			for _, line := range want {
				if !strings.Contains(text, line) {
					t.Errorf("%s with %q has no %q:\n%s", name, values, line, text)
				}
			}
			if values == "sealed" && name == "matching" && !strings.Contains(text, "password_file: /redis/redis.password") {
				t.Errorf("no password of Redis:\n%s", text)
			}
		}
		_, provisions := all["Deployment provisioner"]
		testkit.Equal(t, "a provisioner with "+values, provisions, slices.Contains(files, filepath.Join(chart, "ci/sealed-values.yaml")))
	}
}
