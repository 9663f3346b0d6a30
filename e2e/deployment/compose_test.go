package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/child"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// composeFile is the file, from the root of the repository.
const composeFile = "infra/compose/compose.yaml"

// project is what the tests read of a compose file, as the library of Docker Compose understands it.
type project struct {
	Services map[string]*container
	Configs  map[string]struct{ File string }
}

type container struct {
	Image               string
	Entrypoint, Command []string
	StopGracePeriod     string `json:"stop_grace_period"`
	Deploy              struct{ Replicas int }
	Configs             []struct{ Source, Target string }
	Healthcheck         struct{ Test []string }
	ReadOnly            bool `json:"read_only"`
}

// replicas is how many containers a service has.
func (c *container) replicas() int { return max(1, c.Deploy.Replicas) }

// line is the command line of a container of our image, or of the server named first.
func (c *container) line() []string {
	if len(c.Entrypoint) == 0 && strings.HasPrefix(c.Image, "yardmaster:") {
		return append([]string{"/bin/yard"}, c.Command...)
	}
	return slices.Concat(c.Entrypoint, c.Command)
}

func readProject(t *testing.T) *project {
	t.Helper()
	p := &project{}
	testkit.NoError(t, json.Unmarshal([]byte(run(t, exec.Command(tool(t, "compose"), filepath.Join(root, composeFile)))), p))
	return p
}

// TestTheComposeFile: it fits the specification, and says what a cluster needs.
func TestTheComposeFile(t *testing.T) {
	slow(t)
	p := readProject(t)
	for _, name := range services {
		c := p.Services[name]
		if c == nil || c.replicas() != 2 || c.StopGracePeriod != "50s" || !c.ReadOnly {
			t.Errorf("%s is %+v", name, c)
		}
	}
	testkit.Equal(t, "status", p.Services["frontend"].Healthcheck.Test[:3], []string{"CMD", "/bin/yard", "status"})
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	testkit.NoError(t, err)
	version := regexp.MustCompile(`nats-server/v2 v(\d+\.\d+)\.`).FindSubmatch(mod)
	for i := 1; i <= 3; i++ {
		testkit.Equal(t, "server", p.Services[fmt.Sprint("nats-", i)].Image, "nats:"+string(version[1])+"-alpine")
	}
	text, err := os.ReadFile(filepath.Join(root, composeFile))
	testkit.NoError(t, err)
	for _, wrong := range []struct{ old, changed, why string }{
		{"restart: on-failure", "restrat: on-failure", "restrat"},
		{"redis: {condition", "rediss: {condition", "undefined service"},
	} {
		file := filepath.Join(t.TempDir(), "compose.yaml")
		testkit.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), wrong.old, wrong.changed, 1)), 0o600))
		refused(t, wrong.why, exec.Command(tool(t, "compose"), file))
	}
}

// TestPrometheusOfTheComposeFile: it reads its configuration with our rules, and looks for services that there are.
func TestPrometheusOfTheComposeFile(t *testing.T) {
	slow(t)
	p, dir := readProject(t), t.TempDir()
	for _, mounted := range p.Services["prometheus"].Configs {
		text, err := os.ReadFile(p.Configs[mounted.Source].File)
		testkit.NoError(t, err)
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, path.Base(mounted.Target)), text, 0o600))
	}
	run(t, exec.Command("promtool", "check", "config", filepath.Join(dir, "prometheus.yml")))
	text, err := os.ReadFile(filepath.Join(dir, "prometheus.yml"))
	testkit.NoError(t, err)
	if want := fmt.Sprintf("names: [%s]", strings.Join(services, ", ")); !strings.Contains(string(text), want) {
		t.Errorf("it asks others than %s:\n%s", want, text)
	}
}

// local runs the containers of a compose file as processes on this machine.
type local struct {
	t       *testing.T
	project *project
	bin     *image
	servers string // the path of nats-server
	dir     string
	// addresses replace host and port of the containers.
	addresses map[string]string
}

// here is a text of a container with local addresses.
func (l *local) here(text string) string {
	for _, name := range slices.Sorted(maps.Keys(l.addresses)) {
		text = strings.ReplaceAll(text, name, l.addresses[name])
	}
	return text
}

// argv is the command line of a container on this machine: local programs, addresses and files.
func (l *local) argv(name string, line []string) (argv []string) {
	for _, arg := range line {
		argv = append(argv, l.here(arg))
	}
	switch {
	case strings.HasPrefix(name, "nats-"):
		argv = append([]string{l.servers}, argv...)
	case name == "redis":
	default:
		argv[0] = l.bin.program(path.Base(argv[0]))
	}
	for i, arg := range argv {
		for _, mounted := range l.project.Services[name].Configs {
			if arg == mounted.Target {
				argv[i] = l.config(name, mounted.Source)
			}
		}
	}
	if name == "redis" {
		argv = append(argv, "--port", strings.TrimPrefix(l.addresses["redis:6379"], "127.0.0.1:"), "--dir", l.dir)
	}
	return argv
}

// config writes the configuration of a NATS server with local addresses and a local folder.
func (l *local) config(name, source string) string {
	text, err := os.ReadFile(l.project.Configs[source].File)
	testkit.NoError(l.t, err)
	own := strings.NewReplacer(
		"0.0.0.0:4222", l.addresses[name+":4222"], "0.0.0.0:6222", l.addresses[name+":6222"], "0.0.0.0:8222", "127.0.0.1:0",
		`"/data"`, fmt.Sprintf("%q", filepath.Join(l.dir, name)),
	)
	file := filepath.Join(l.dir, name+".conf")
	testkit.NoError(l.t, os.WriteFile(file, []byte(l.here(own.Replace(string(text)))), 0o600))
	return file
}

// command is a process of a container, whose output goes to a file.
func (l *local) command(name string, line []string) *exec.Cmd {
	argv := l.argv(name, line)
	log, err := os.OpenFile(filepath.Join(l.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	testkit.NoError(l.t, err)
	l.t.Cleanup(func() { testkit.Check(l.t, log.Close()) })
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd
}

// up starts all containers of a service, until the test ends.
func (l *local) up(name string) {
	l.t.Helper()
	c := l.project.Services[name]
	for range c.replicas() {
		l.addresses["=:8080"] = "=" + testkit.FreeAddr(l.t)
		p, err := child.Start(l.command(name, c.line()))
		testkit.NoError(l.t, err)
		l.t.Cleanup(func() {
			p.Kill()
			<-p.Ended()
		})
	}
}

// logs prints what the processes wrote, if the test has failed.
func (l *local) logs() {
	if !l.t.Failed() {
		return
	}
	names, _ := filepath.Glob(filepath.Join(l.dir, "*.log")) // the pattern is valid
	for _, name := range names {
		text, err := os.ReadFile(name)
		l.t.Logf("%s: %v\n%s", filepath.Base(name), err, text)
	}
}

// TestTheComposeFileRuns: its command lines make a cluster of three NATS servers that is healthy by its own check, and
// that runs a task.
func TestTheComposeFileRuns(t *testing.T) {
	slow(t)
	l := &local{t: t, project: readProject(t), bin: theImage(t), dir: t.TempDir(), addresses: map[string]string{"redis:6379": testkit.FreeAddr(t)}}
	l.servers = filepath.Join(folder, "nats-server")
	run(t, exec.Command("go", "build", "-o", l.servers, "github.com/nats-io/nats-server/v2"))
	for i := 1; i <= 3; i++ {
		for _, port := range []string{"4222", "6222"} {
			l.addresses[fmt.Sprintf("nats-%d:%s", i, port)] = testkit.FreeAddr(t)
		}
	}
	t.Cleanup(l.logs)
	for _, name := range []string{"nats-1", "nats-2", "nats-3", "redis"} {
		l.up(name)
	}
	provision := l.project.Services["provision"].line()
	testkit.Eventually(t, within, func() error { return l.command("provision", append(provision, "--timeout=20s")).Run() })
	for _, name := range services {
		l.up(name)
	}
	healthy := l.project.Services["frontend"].Healthcheck.Test[1:]
	testkit.Eventually(t, within, func() error { return l.command("frontend", healthy).Run() })

	testkit.NoError(t, l.command("frontend", []string{"/bin/yard", "domain", "put", "shop", "--url", "nats://nats-1:4222"}).Run())
	client, err := yard.Connect("nats://"+l.addresses["nats-2:4222"], "shop")
	testkit.NoError(t, err)
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	w := yard.NewWorker(client, "mail")
	w.HandleFunc("email.send", func(context.Context, *yard.Attempt) (yard.Payload, error) { return yard.Payload{}, nil })
	worked := make(chan error, 1)
	working, stop := context.WithCancel(ctx)
	go func() { worked <- w.Run(working) }()
	id, err := client.Submit(ctx, yard.Task{Tasklist: "mail", Type: "email.send"})
	testkit.NoError(t, err)
	testkit.NoError(t, testkit.Err(client.Wait(ctx, id)))
	stop()
	if err := <-worked; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
