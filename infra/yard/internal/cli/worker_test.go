package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// shell is a system with a domain, and workers of the command.
type shell struct {
	t   *testing.T
	url string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t, startStack(t).URL}
	s.yard("domain", "put", "shop")
	return s
}

// yard runs a command that must succeed and returns what it printed.
func (s *shell) yard(args ...string) string {
	s.t.Helper()
	out, errs, code := run(s.t, "", append([]string{"--url", s.url, "-d", "shop"}, args...)...)
	if code != cli.ExitOK {
		s.t.Fatalf("yard %v: exit code %d\n%s%s", args, code, out, errs)
	}
	return strings.TrimSpace(out)
}

// work starts a worker of the tasklist mail; stop interrupts it and returns its exit code and log.
func (s *shell) work(args ...string) (stop func() (int, string)) {
	s.t.Helper()
	ctx, interrupt := context.WithCancel(s.t.Context())
	var log bytes.Buffer
	code := make(chan int, 1)
	go func() {
		args := append([]string{"--url", s.url, "-d", "shop", "worker", "-t", "mail"}, args...)
		code <- cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: &log, Err: &log})
	}()
	stop = sync.OnceValues(func() (int, string) {
		interrupt()
		return <-code, log.String()
	})
	s.t.Cleanup(func() { stop() })
	return stop
}

// task is a task as the API shows it.
type task struct {
	State     string
	Result    json.RawMessage
	Failures  int
	ErrorType string `json:"error_type"`
	Message   string `json:"error_message"`
	DueAtMS   int64  `json:"due_at_ms"`
	CreatedMS int64  `json:"created_at_ms"`
}

// await waits until a task is as wanted.
func (s *shell) await(id string, wanted func(task) bool) task {
	s.t.Helper()
	var last task
	testkit.Eventually(s.t, within, func() error {
		out, errs, _ := run(s.t, "", "--url", s.url, "-d", "shop", "--json", "task", "get", id)
		last = task{}
		if err := json.Unmarshal([]byte(out), &last); err != nil {
			return fmt.Errorf("%w: %s%s", err, out, errs)
		}
		if !wanted(last) {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
	return last
}

func inState(state string) func(task) bool {
	return func(t task) bool { return t.State == state }
}

func TestWorker(t *testing.T) {
	testkit.Slow(t, "waits for tasks that take seconds")
	s := newShell(t)
	stop := s.work("--concurrency", "3", "--exec", `
case $YARD_TASK_TYPE in
echo) cat ;;
hello) echo "hello from $YARD_DOMAIN, $YARD_TASKLIST" ;;
flaky) test "$YARD_ATTEMPT" -gt 1 || { echo not yet >&2; exit 1; } ;;
bad) echo no such address >&2; exit 65 ;;
later) exit 75 ;;
esac`, "--retry-after", "1h")
	submit := func(args ...string) string {
		return s.yard(append([]string{"task", "submit", "-t", "mail"}, args...)...)
	}
	echo, hello, flaky, bad, later := submit("echo", `{"to":"ann"}`), submit("hello"), submit("flaky"), submit("bad"), submit("later")
	if got := s.await(echo, inState("completed")); string(got.Result) != `{"to":"ann"}` {
		t.Errorf("echo: %+v", got)
	}
	if got := s.await(hello, inState("completed")); string(got.Result) != `"hello from shop, mail"` {
		t.Errorf("hello: %+v", got)
	}
	if got := s.await(flaky, inState("completed")); got.Failures != 1 || got.Result != nil {
		t.Errorf("flaky: %+v", got)
	}
	if got := s.await(bad, inState("dead")); got.Failures != 1 || got.ErrorType != "exit_65" || !strings.HasSuffix(got.Message, "no such address") {
		t.Errorf("bad: %+v", got)
	}
	got := s.await(later, func(t task) bool { return t.Failures == 1 })
	if hour := int64(3_600_000); got.State == "dead" || got.DueAtMS < got.CreatedMS+hour {
		t.Errorf("later: %+v", got)
	}
	code, log := stop()
	if code != cli.ExitOK || !strings.Contains(log, `output="no such address"`) || !strings.Contains(log, "task_id="+bad) || !strings.Contains(log, "the worker has stopped") {
		t.Errorf("exit code %d\n%s", code, log)
	}
}

func TestWorkerTakesTheTypesThatAreNamed(t *testing.T) {
	s := newShell(t)
	s.work("--type", "one,two", "--exec", "cat")
	other := s.yard("task", "submit", "-t", "mail", "three", "3")
	for _, name := range []string{"one", "two"} {
		s.await(s.yard("task", "submit", "-t", "mail", name, "1"), inState("completed"))
	}
	s.await(other, inState("ready"))
}

// One worker runs the tasks of several tasklists, which may have weights, and tells its commands which one each is of.
func TestWorkerOfSeveralTasklists(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	s := newShell(t)
	stop := s.work("-t", "sms=3,push", "--exec", `echo "$YARD_TASKLIST"`)
	other := s.yard("task", "submit", "-t", "fax", "send")
	for _, tasklist := range []string{"push", "mail", "sms", "mail"} {
		got := s.await(s.yard("task", "submit", "-t", tasklist, "send"), inState("completed"))
		if string(got.Result) != `"`+tasklist+`"` {
			t.Errorf("the task of %s: %+v", tasklist, got)
		}
	}
	s.await(other, inState("ready"))
	if code, log := stop(); code != cli.ExitOK || !strings.Contains(log, "mail,sms,push") {
		t.Errorf("exit code %d\n%s", code, log)
	}
	if _, errs, code := run(t, "", "--url", s.url, "-d", "shop", "worker", "-t", "mail", "-t", "mail", "--exec", "cat"); code != cli.ExitUsage || !strings.Contains(errs, "mail") {
		t.Errorf("a tasklist twice: exit code %d\n%s", code, errs)
	}
	for _, bad := range []string{"mail=0", "mail=1001", "mail=x", "mail="} {
		if _, errs, code := run(t, "", "--url", s.url, "-d", "shop", "worker", "-t", bad, "--exec", "cat"); code != cli.ExitUsage || !strings.Contains(errs, "1..1000") {
			t.Errorf("%s: exit code %d\n%s", bad, code, errs)
		}
	}
}

// A cancelled task's command is asked to stop, by the answer to a heartbeat.
func TestWorkerStopsWhatIsCancelled(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	s.work("--exec", "trap 'touch "+dir+"/stopped; exit 0' TERM; touch "+dir+"/begun; while :; do sleep 0.01; done")
	id := s.yard("task", "submit", "-t", "mail", "endless", "--heartbeat", "3s")
	appears(t, filepath.Join(dir, "begun"))
	s.yard("task", "cancel", "--yes", id)
	if got := s.await(id, inState("cancelled")); got.Result != nil {
		t.Errorf("%+v", got)
	}
	appears(t, filepath.Join(dir, "stopped"))
}

// A worker that is to stop lets a command finish, and hands back what does not in time.
func TestWorkerDrains(t *testing.T) {
	testkit.Slow(t, "waits for tasks that take seconds")
	s, dir := newShell(t), t.TempDir()
	stop := s.work("--concurrency", "2", "--drain-timeout", "3s", "--kill-after", "100ms", "--exec", `touch `+dir+`/$YARD_TASK_TYPE
if [ $YARD_TASK_TYPE = quick ]; then until [ -e `+dir+`/go ]; do sleep 0.01; done; echo done
else trap '' TERM; while :; do sleep 0.01; done; fi`)
	quick, slow := s.yard("task", "submit", "-t", "mail", "quick"), s.yard("task", "submit", "-t", "mail", "slow")
	appears(t, filepath.Join(dir, "quick"))
	appears(t, filepath.Join(dir, "slow"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if code, log := stop(); code != cli.ExitOK {
			t.Errorf("exit code %d\n%s", code, log)
		}
	}()
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	<-ended
	if got := s.await(quick, inState("completed")); string(got.Result) != `"done"` {
		t.Errorf("%+v", got)
	}
	if got := s.await(slow, inState("ready")); got.Failures != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWorkerOfAnUnknownDomainEnds(t *testing.T) {
	system := startStack(t)
	_, errs, code := run(t, "", "worker", "--url", system.URL, "-d", "absent", "-t", "mail", "--exec", "cat")
	if code != cli.ExitFailed || !strings.Contains(errs, "`yard domain put absent`") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// What the worker asks with is a type like others: a task of it is handed back, unharmed.
func TestWorkerProbeHarmsNoTask(t *testing.T) {
	s := newShell(t)
	id := s.yard("task", "submit", "-t", "mail", "yard.worker.probe", "1")
	s.await(id, inState("ready"))
	s.work("--exec", "cat")
	if got := s.await(id, inState("completed")); got.Failures != 0 {
		t.Errorf("%+v", got)
	}
}

// appears waits for a file.
func appears(t *testing.T, file string) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		if _, err := os.Stat(file); err != nil {
			return errors.New(file + " is not there")
		}
		return nil
	})
}
