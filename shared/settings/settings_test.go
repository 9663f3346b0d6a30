package settings_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/settings"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type config struct {
	NATS   natsConfig   `koanf:"nats"`
	Window windowConfig `koanf:"window"`
	Tags   []string     `koanf:"tags" usage:"labels of this node"`
	Hosts  []string     `koanf:"hosts"`
	Clock  func()       `koanf:"-"`
}

type natsConfig struct {
	URL   string `koanf:"url" usage:"where NATS listens"`
	Token string `koanf:"token" usage:"proves who we are" secret:"true"`
	Sync  bool   `koanf:"sync"`
}

type windowConfig struct {
	TasksMax int           `koanf:"tasks_max" usage:"active tasks held in memory"`
	BytesMax int64         `koanf:"bytes_max" unit:"bytes" usage:"memory for payloads"`
	LeaseMin time.Duration `koanf:"lease_min" usage:"shortest lease"`
	Shards   int           `koanf:"shards" usage:"number of shards"`
}

// Validate has the form for packages that do not know settings.
func (w windowConfig) Validate() error {
	var few, short error
	if w.TasksMax < 1 {
		few = errors.New("tasks_max must be at least 1")
	}
	if w.LeaseMin < time.Second {
		short = errors.New("lease_min must be at least 1s")
	}
	return errors.Join(few, short)
}

// Validate has the form that names paths.
func (n *natsConfig) Validate() []settings.Problem {
	if n.URL == "" {
		return []settings.Problem{{Path: "url", What: "must not be empty"}}
	}
	return nil
}

func defaults() config {
	return config{
		NATS:   natsConfig{URL: "nats://localhost:4222"},
		Window: windowConfig{TasksMax: 1000, BytesMax: 64 << 20, LeaseMin: 5 * time.Second, Shards: 4},
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "yard.yaml")
	testkit.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestDefaultsStand(t *testing.T) {
	got, opts, err := settings.Load("history", defaults(), nil, []string{"PATH=/bin", "YARD_SEED=1", "YARD_HISTORY_NATS__URL="})
	testkit.NoError(t, err)
	if !reflect.DeepEqual(got, defaults()) || opts != (settings.Options{}) {
		t.Fatalf("got %+v, %+v", got, opts)
	}
}

func TestPrecedence(t *testing.T) {
	path := writeFile(t, `
nats: {url: "nats://file:4222", sync: true, token: file}
window:
  tasks_max: 10
  bytes_max: 1MiB
  lease_min: 10s
  shards: 7
tags: [a, b]
`)
	got, _, err := settings.Load("history", defaults(),
		[]string{"--window.tasks-max=30", "--window.lease-min", "30s", "--config", path, "--hosts=x, y"},
		[]string{
			"YARD_HISTORY_WINDOW__TASKS_MAX=20",
			"YARD_HISTORY_NATS__TOKEN=env",
			"YARD_HISTORY_TAGS=c, d",
			"YARD_HISTORY_NATS__SYNC=false",
		})
	testkit.NoError(t, err)
	want := config{
		NATS:   natsConfig{URL: "nats://file:4222", Token: "env"},
		Window: windowConfig{TasksMax: 30, BytesMax: 1 << 20, LeaseMin: 30 * time.Second, Shards: 7},
		Tags:   []string{"c", "d"},
		Hosts:  []string{"x", "y"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func TestFileNamedByEnvironment(t *testing.T) {
	path := writeFile(t, "window: {tasks_max: 10}")
	got, _, err := settings.Load("history", defaults(), nil, []string{"YARD_HISTORY_CONFIG=" + path})
	if err != nil || got.Window.TasksMax != 10 {
		t.Fatalf("got %d, %v", got.Window.TasksMax, err)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	path := writeFile(t, `
nats: {url: "", sync: {a: 1}}
window:
  tasks_max: many
  bytes_max: 1.5
  lease_min: 5
  shards:
tags: 5
hosts: [a, 5]
unknown: {key: 1}
`)
	_, _, err := settings.Load("history", defaults(),
		[]string{
			"--config=" + path, "--window.lease-min=10ms", "--nope", "3", "--tags", "--window.shards=9223372036854775808",
			"stray", "--nats.sync=perhaps",
		},
		[]string{
			"YARD_HISTORY_WINDOW__SHARDS=half",
			"YARD_HISTORY_WINDOW_TASKS=1",
			"YARD_HISTORY_PORT=tcp://10.0.0.1:80", // Kubernetes adds these
			"YARD_HISTORY_SERVICE_HOST=10.0.0.1",
			"YARD_HISTORY_PORT_80_TCP_ADDR=10.0.0.1",
			"YARD_MATCHING_OTHER=1",
		})
	var problems settings.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v, want Problems", err)
	}
	got := strings.ReplaceAll(err.Error(), path, "yard.yaml")
	testkit.Golden(t, "testdata/problems.txt", []byte(got+"\n"))
}

func TestSectionGivenAValue(t *testing.T) {
	for text, want := range map[string]string{
		"window: 5":  "want a section",
		"window:":    "",
		"window: {}": "",
		"":           "",
		"window: [":  "yaml:",
		"- a":        "yaml:",
	} {
		_, _, err := settings.Load("history", defaults(), []string{"--config=" + writeFile(t, text)}, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestMissingFile(t *testing.T) {
	_, _, err := settings.Load("history", defaults(), []string{"--config", "/nowhere/yard.yaml"}, nil)
	if err == nil || !strings.Contains(err.Error(), "/nowhere/yard.yaml") {
		t.Fatalf("got %v", err)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"7": 7, "7B": 7, "2KiB": 2048, "2kb": 2000, "1 MiB": 1 << 20, "3GB": 3e9, "1TiB": 1 << 40,
		"-1": -1, "KiB": -1, "1.5MiB": -1, "9999999TiB": -1, "1XB": -1,
	} {
		got, _, err := settings.Load("history", defaults(), []string{"--window.bytes-max=" + text}, nil)
		if want < 0 {
			if err == nil {
				t.Errorf("%s: accepted as %d", text, got.Window.BytesMax)
			}
		} else if err != nil || got.Window.BytesMax != want {
			t.Errorf("%s: got %d, %v, want %d", text, got.Window.BytesMax, err, want)
		}
	}
}

func TestSecretsStaySecret(t *testing.T) {
	type one struct {
		Pin int `koanf:"pin" secret:"true"`
	}
	_, _, err := settings.Load("x", one{}, []string{"--pin=hunter2"}, nil)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want an error without the value", err)
	}
	var out strings.Builder
	testkit.NoError(t, settings.Print(&out, one{Pin: 4711}))
	testkit.NoError(t, settings.Usage(&out, "x", one{Pin: 4711}))
	if strings.Contains(out.String(), "4711") || !strings.Contains(out.String(), "****") {
		t.Errorf("printed:\n%s", out.String())
	}
}

// TestPasswordsOfURLsStaySecret: what else is in a URL is printed.
func TestPasswordsOfURLsStaySecret(t *testing.T) {
	type one struct {
		URL  string   `koanf:"url" secret:"url"`
		URLs []string `koanf:"urls" secret:"url"`
	}
	c := one{URL: "nats://ann:hunter2@hunter2@a:4222, bob:hunter2@b:4222,hunter2@c", URLs: []string{"tls://hunter2@d:1", "nats://e:2/@x"}}
	var out strings.Builder
	testkit.NoError(t, settings.Print(&out, c))
	testkit.NoError(t, settings.Usage(&out, "x", c))
	for _, want := range []string{"nats://********@a:4222, ********@b:4222,********@c", "tls://********@d:1", "nats://e:2/@x"} {
		if strings.Count(out.String(), want) != 2 {
			t.Errorf("%s is not printed twice:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("printed:\n%s", out.String())
	}
}

func TestOptions(t *testing.T) {
	for arg, want := range map[string]settings.Options{
		"--help":               {Help: true},
		"-h":                   {Help: true},
		"--print-config":       {PrintConfig: true},
		"--print-config=false": {},
	} {
		_, opts, err := settings.Load("history", defaults(), []string{arg}, nil)
		if err != nil || opts != want {
			t.Errorf("%s: got %+v, %v", arg, opts, err)
		}
	}
	if _, _, err := settings.Load("history", defaults(), []string{"--wrong", "--help"}, nil); err != nil {
		t.Errorf("help beside a mistake: %v", err)
	}
}

func TestUsage(t *testing.T) {
	var out strings.Builder
	testkit.NoError(t, settings.Usage(&out, "history", defaults()))
	testkit.Golden(t, "testdata/usage.txt", []byte(out.String()))
}

func TestPrint(t *testing.T) {
	c := defaults()
	c.NATS.Token = "secret"
	c.Tags = []string{"a", "12", "x: y"}
	c.Hosts = []string{"x"}
	var out strings.Builder
	testkit.NoError(t, settings.Print(&out, c))
	testkit.Golden(t, "testdata/print.yaml", []byte(out.String()))

	got, _, err := settings.Load("history", config{}, []string{"--config", writeFile(t, out.String())}, nil)
	testkit.NoError(t, err)
	got.NATS.Token = c.NATS.Token // the one thing that does not come back
	if !reflect.DeepEqual(got, c) {
		t.Fatalf("read back\n%+v\nwant\n%+v", got, c)
	}
}

// What Print writes, Load reads back, whatever is in it.
func TestPrintRoundTrips(t *testing.T) {
	path := filepath.Join(t.TempDir(), "yard.yaml")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ -~]{0,12}|true|null|~|0x1f|1e3|2026-01-01`)
		c := config{
			NATS: natsConfig{URL: "nats:" + text.Draw(t, "url"), Sync: rapid.Bool().Draw(t, "sync")},
			Window: windowConfig{
				TasksMax: rapid.IntMin(1).Draw(t, "tasks"),
				BytesMax: rapid.Int64Min(0).Draw(t, "bytes"),
				LeaseMin: time.Duration(rapid.Int64Min(int64(time.Second)).Draw(t, "lease")),
				Shards:   rapid.Int().Draw(t, "shards"),
			},
			Tags:  rapid.SliceOfN(text, 1, 3).Draw(t, "tags"),
			Hosts: rapid.SliceOfN(text, 1, 1).Draw(t, "hosts"),
		}
		var out strings.Builder
		testkit.NoError(t, settings.Print(&out, c))
		testkit.NoError(t, os.WriteFile(path, []byte(out.String()), 0o600))
		got, _, err := settings.Load("history", config{}, []string{"--config", path}, nil)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%v\nprinted\n%s\nread back\n%+v\nwant\n%+v", err, out.String(), got, c)
		}
	})
}

func TestMistakesInTheStructPanic(t *testing.T) {
	type noTag struct {
		A string
	}
	type taken struct {
		Help string `koanf:"help"`
	}
	type badTag struct {
		A string `koanf:"camelCase"`
	}
	type badKind struct {
		A map[string]string `koanf:"a"`
	}
	type otherList struct {
		A []int `koanf:"a"`
	}
	type otherNumber struct {
		A uint8 `koanf:"a"`
	}
	type badUnit struct {
		A string `koanf:"a" unit:"bytes"`
	}
	type nested struct {
		A []struct{ B int } `koanf:"a"`
	}
	for _, mistake := range []func(){
		func() { load(noTag{}) },
		func() { load(taken{}) },
		func() { load(badTag{}) },
		func() { load(badKind{}) },
		func() { load(otherList{}) },
		func() { load(otherNumber{}) },
		func() { load(badUnit{}) },
		func() { load(nested{}) },
		func() { load(5) },
	} {
		func() {
			defer func() {
				if v := recover(); !strings.HasPrefix(fmt.Sprint(v), "settings: ") {
					t.Errorf("got panic %v", v)
				}
			}()
			mistake()
		}()
	}
}

func load[T any](def T) {
	_, _, _ = settings.Load("x", def, nil, nil)
}

// outer hands on what its field says of itself.
type outer struct {
	Inner windowConfig `koanf:"inner"`
}

func (o outer) Validate() []settings.Problem {
	return []settings.Problem{{Path: "inner", What: o.Inner.Validate().Error()}}
}

func TestAProblemToldTwiceIsOne(t *testing.T) {
	_, _, err := settings.Load("history", outer{windowConfig{TasksMax: 1}}, nil, nil)
	var problems settings.Problems
	if !errors.As(err, &problems) || len(problems) != 1 {
		t.Errorf("got %v", err)
	}
}
