package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/logversion"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/natskit"
)

const within = 90 * time.Second

// run runs a command line and returns what it wrote and its exit code.
func run(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var o, e bytes.Buffer
	code = cli.Run(ctx, args, cli.Streams{In: strings.NewReader(in), Out: &o, Err: &e})
	return o.String(), e.String(), code
}

func startStack(t *testing.T) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := stack.Start(ctx, stack.Config{Tables: stack.TablesMemory, Partitioning: topology.Partitioning{History: 1, Matching: 1}})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	return s
}

// startWorker greets and refuses, until the test ends.
func startWorker(t *testing.T, s *stack.Stack) {
	t.Helper()
	c, err := yard.Connect(s.URL, "shop")
	testkit.NoError(t, err)
	w := yard.NewWorker(c, "mail", yard.WithIdentity("worker-1"), yard.WithLogger(slog.New(slog.DiscardHandler)))
	yard.Handle(w, "greet", func(_ context.Context, name string) (string, error) { return "hello " + name, nil })
	yard.Handle(w, "refuse", func(context.Context, string) (struct{}, error) {
		return struct{}{}, yard.NonRetryable(errors.New("no such address"))
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-done)
		c.Close()
	})
}

var (
	idForm   = regexp.MustCompile(`\b[0-9a-hjkmnp-tv-z]{26}\b`)
	timeForm = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d`)
	msForm   = regexp.MustCompile(`"([a-z_]+_at_ms|at_ms|since_ms|until_ms)":\d+`)
	revForm  = regexp.MustCompile(`("revision":|revision )\d+`)
	ageForm  = regexp.MustCompile(`oldest for \S+`)
	utcForm  = regexp.MustCompile(`(at|until|since) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`)
	lateForm = regexp.MustCompile(`(within the last|polled last,) [0-9hms]+`)
	runsForm = regexp.MustCompile(`(<time>  +)\d[0-9.ms]*s\b`)
	liveForm = regexp.MustCompile(`(these live): .* \(`)
)

// steady replaces what differs from run to run.
func steady(text string) string {
	text = idForm.ReplaceAllString(text, "<task>")
	text = timeForm.ReplaceAllString(text, "<time>")
	text = utcForm.ReplaceAllString(text, "$1 <time>")
	text = lateForm.ReplaceAllString(text, "$1 <age>")
	text = msForm.ReplaceAllString(text, `"$1":0`)
	text = revForm.ReplaceAllString(text, "${1}0")
	text = runsForm.ReplaceAllString(text, "$1<age>")
	text = liveForm.ReplaceAllString(text, "$1: <names> (")
	return ageForm.ReplaceAllString(text, "oldest for <age>")
}

// session runs command lines one after the other and writes down what a person
// would see.
type session struct {
	t    *testing.T
	url  string
	text strings.Builder
}

func (s *session) do(args ...string) string {
	s.t.Helper()
	fmt.Fprintf(&s.text, "$ yard %s\n", strings.Join(args, " "))
	return s.print("", args...)
}

// print writes down what a command prints.
func (s *session) print(in string, args ...string) string {
	s.t.Helper()
	out, errs, code := run(s.t, in, append([]string{"--url", s.url, "-d", "shop"}, args...)...)
	s.text.WriteString(steady(out + errs))
	if code != cli.ExitOK {
		fmt.Fprintf(&s.text, "[exit code %d]\n", code)
	}
	s.text.WriteString("\n")
	return strings.TrimSpace(out)
}

// untilSaid repeats a command of the domain shop until what it says in JSON is as wanted.
func untilSaid(t *testing.T, url string, wanted func(out string) bool, args ...string) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		out, errs, _ := run(t, "", append([]string{"--url", url, "-d", "shop", "--json"}, args...)...)
		if !wanted(out) {
			return fmt.Errorf("%s%s", out, errs)
		}
		return nil
	})
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"nonsense"},
		{"task", "nonsense"},
		{"task", "get"},
		{"task", "get", "a", "b"},
		{"task", "submit"},
		{"task", "submit", "greet", "{bad"},
		{"task", "submit", "greet", "--file", "-"},
		{"task", "submit", "greet", "--count", "0"},
		{"task", "submit", "greet", "--count", "2", "--wait"},
		{"task", "submit", "greet", "--at", "tomorrow"},
		{"task", "list", "--state", "happy"},
		{"task", "list", "--nope"},
		{"task", "list", "--limit", "-1"},
		{"domain", "put"},
		{"dev", "--ephemeral", "--data-dir", "x"},
		{"dev", "--ephemeral", "--log-level", "loud"},
		{"console", "--listen", "0.0.0.0:0"},
		{"console", "--users", "none.yaml"},
		{"console", "--logins", "none.yaml"},
		{"server", "nats", "extra"},
		{"bench", "--runs", "x"},
		{"bench", "--workload", "W1", "--plot", "w1.png"},
		{"bench", "curves", "colours"},
		{"bench", "--context", "nowhere"},
		{"task", "submit", "--file", "-", "--delay", "1h"},
		{"task", "list", "--output", "yaml"},
		{"task", "list", "--json=false"},
		{"version", "extra"},
		{"worker"},
		{"worker", "--exec", "cat"},
		{"worker", "--exec", "cat", "-t", ""},
		{"worker", "--exec", "cat", "-t", "mail", "--kill-after", "0s"},
		{"worker", "--exec", "cat", "-t", "mail", "--retry-after", "10000h"},
		{"worker", "--exec", "cat", "-t", "mail", "--log-level", "loud"},
		{"upgrade", "nonsense"},
		{"worker", "--exec", "cat", "-t", "mail", "--identity", strings.Repeat("x", 129)},
		{"worker", "--exec", "cat", "-t", "mail", "--version-label", strings.Repeat("x", 65)},
		{"quarantine", "list", "--kind", "odd"},
		{"quarantine", "list", "--service", "a.b"},
		{"quarantine", "get"},
		{"quarantine", "get", "x"},
		{"quarantine", "redrive", "0"},
	} {
		out, errs, code := run(t, "", args...)
		if code != cli.ExitUsage || out != "" || !strings.HasPrefix(errs, "error: ") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}

// TestExamplesHoldTaskIDs: a person who copies an example gets an answer about the task, not about the id.
func TestExamplesHoldTaskIDs(t *testing.T) {
	found := 0
	for _, command := range []string{"get", "watch", "cancel"} {
		out, _, _ := run(t, "", "task", command, "--help")
		for _, word := range regexp.MustCompile(`\b[0-9A-Za-z]{26}\b`).FindAllString(out, -1) {
			found++
			if _, err := ids.ParseTaskID(word); err != nil {
				t.Errorf("task %s --help: %v", command, err)
			}
		}
	}
	if found == 0 {
		t.Error("no example has a task id")
	}
}

func TestVersion(t *testing.T) {
	out, errs, code := run(t, "", "version", "--output", "json")
	var v struct {
		Version, Commit, Date, Go string
		LogVersion                uint32 `json:"log_version"`
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.ExitOK {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if !strings.HasPrefix(v.Version, "v"+process.Version) || v.Go != runtime.Version() || v.LogVersion != logversion.Newest() {
		t.Errorf("%s", out)
	}
	if out, _, _ := run(t, "", "version"); !strings.Contains(out, fmt.Sprint("log version  ", logversion.Newest())) {
		t.Errorf("%s", out)
	}
}

func TestErrorsSayWhatIsNext(t *testing.T) {
	system := startStack(t)
	url := []string{"--url", system.URL, "-d", "shop"}
	if _, errs, code := run(t, "", append(url, "domain", "put", "shop")...); code != cli.ExitOK {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		args []string
		next string
	}{
		{[]string{"task", "get", "06gzvkw0fc003ewx4bxvk83r20"}, "next:  `yard task list` lists"},
		{[]string{"task", "submit", "greet", "-t", "mail", "-p", "9"}, "next:  see `yard task submit --help`"},
		{[]string{"domain", "put", "shop", "--retention", "1s"}, "next:  see `yard domain put --help`"},
		{[]string{"type", "delete", "greet"}, "`yard type put greet`"}, // the engine says so itself
		{[]string{"task", "nonsense"}, "next:  see `yard task --help`"},
	} {
		_, errs, code := run(t, "", append(url, c.args...)...)
		if code == cli.ExitOK || !strings.Contains(errs, c.next) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, errs)
		}
	}
	_, errs, _ := run(t, "", append(url, "-o", "json", "task", "get", "06gzvkw0fc003ewx4bxvk83r20")...)
	var body struct {
		Error struct{ Code string }
		Next  string
	}
	if err := json.Unmarshal([]byte(errs), &body); err != nil || body.Error.Code != "NOT_FOUND" || body.Next == "" {
		t.Errorf("%v: %s", err, errs)
	}
}

func TestWideTables(t *testing.T) {
	system := startStack(t)
	url := []string{"--url", system.URL, "-d", "shop", "-o", "wide"}
	long := strings.Repeat("x", 300)
	for _, args := range [][]string{
		{"domain", "put", "shop"},
		{"type", "put", "greet", "--initial-interval", "3s"},
		{"task", "submit", "greet", `"` + long + `"`, "-t", "mail", "--delay", "1h"},
	} {
		if _, errs, code := run(t, "", append(url, args...)...); code != cli.ExitOK {
			t.Fatal(errs)
		}
	}
	// It is parked a moment after it was accepted.
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"task_id"`) }, "task", "list", "--state", "waiting")
	id := ""
	testkit.Eventually(t, within, func() error { // on its way to the timer store no list has it, for a moment
		out, _, _ := run(t, "", append(url, "task", "list")...)
		if id = idForm.FindString(out); id == "" || !strings.Contains(out, "WORKER  ERROR") {
			return errors.New(out)
		}
		return nil
	})
	for _, c := range []struct {
		want string
		args []string
	}{
		{long, []string{"task", "get", id}},
		{"FIRST WAIT", []string{"type", "list"}},
		{"REVISION", []string{"domain", "list"}},
		{"CHECKS", []string{"status"}},
	} {
		if out, errs, _ := run(t, "", append(url, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("%v: %s%s", c.args, out, errs)
		}
	}
}

func TestAnAbsentServerIsUnavailable(t *testing.T) {
	srv := natskit.Run(t)
	srv.Stop()
	for _, args := range [][]string{{"task", "list"}, {"domain", "list"}, {"status"}, {"upgrade", "status"}, {"quarantine", "list"}} {
		_, errs, code := run(t, "", append(args, "--url", srv.URL)...)
		if code != cli.ExitFailed || !strings.Contains(errs, "UNAVAILABLE: connect to NATS") || !strings.Contains(errs, "`yard dev` starts a system") {
			t.Errorf("%v: exit code %d, %s", args, code, errs)
		}
	}
}

func TestStatus(t *testing.T) {
	system := startStack(t)
	type answers struct {
		Processes []struct {
			Service string
			Ready   bool
		}
	}
	var answer answers
	testkit.Eventually(t, within, func() error { // it waits for answers for a moment, which on a busy machine is too short
		out, errs, code := run(t, "", "status", "--url", system.URL, "--json")
		answer = answers{}
		if err := json.Unmarshal([]byte(out), &answer); err != nil || code != cli.ExitOK || len(answer.Processes) != 4 {
			return fmt.Errorf("exit code %d, %v: %s%s", code, err, out, errs)
		}
		return nil
	})
}

// background runs a command that goes on until it is interrupted, and returns the
// JSON it greets with and what to stop it with.
func background(t *testing.T, args ...string) (hello map[string]string, stop func() int) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		c := cli.Run(ctx, append([]string{"--json"}, args...), cli.Streams{In: strings.NewReader(""), Out: w, Err: io.Discard})
		w.CloseWithError(io.ErrUnexpectedEOF)
		code <- c
	}()
	stop = sync.OnceValue(func() int { interrupt(); return <-code })
	t.Cleanup(func() { stop() })
	if err := json.NewDecoder(r).Decode(&hello); err != nil {
		t.Fatalf("yard %v: exit code %d, %v", args, stop(), err)
	}
	return hello, stop
}

func TestDev(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	hello, stop := background(t, "dev", "--data-dir", dir, "--port", "0", "--tables", "memory", "--partitions", "1", "-d", "mine")
	id, errs, code := run(t, "", "task", "submit", "greet", "-t", "mail", "-d", "mine", "--url", hello["url"])
	if code != cli.ExitOK {
		t.Fatal(errs)
	}
	page, err := http.Get(hello["console"] + "/domains/mine/tasklists")
	testkit.NoError(t, err)
	testkit.NoError(t, page.Body.Close())
	testkit.Equal(t, "the console's answer", page.StatusCode, http.StatusOK)
	testkit.Equal(t, "exit code", stop(), cli.ExitOK)
	hello, stop = background(t, "dev", "--data-dir", dir, "--port", "0", "--tables", "memory", "-d", "mine", "--console", "off")
	testkit.Equal(t, "the console", hello["console"], "")
	if out, errs, code := run(t, "", "task", "get", strings.TrimSpace(id), "-d", "mine", "--url", hello["url"]); code != cli.ExitOK || !strings.Contains(out, "greet") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	stop()
}

func TestServerNATS(t *testing.T) {
	hello, stop := background(t, "server", "nats", "--data-dir", t.TempDir(), "--port", "0", "--sync", "2m")
	_, errs, code := run(t, "", "status", "--url", hello["url"])
	if code != cli.ExitFailed || !strings.Contains(errs, "no frontend is ready") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	testkit.Equal(t, "exit code", stop(), cli.ExitOK)
}

func TestBench(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	t.Chdir(t.TempDir())
	out, errs, code := run(t, "", "bench", "--workload", "W1,W7", "--tasks", "500", "--runs", "1", "--tables", "memory", "--partitions", "1", "--sync", "2m",
		"--out", "bench.json", "--cpuprofile", "cpu.prof", "--plot", "w7.png")
	if code != cli.ExitOK || !strings.Contains(out, "W1") || !strings.Contains(errs, "all 500 completed once") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for _, name := range []string{"bench.json", "cpu.prof", "w7.png"} {
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	left, err := filepath.Glob(".yard-bench-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
