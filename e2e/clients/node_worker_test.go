package clients_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The worker of contracts/node, with the handlers of node/handlers.mjs.

func worker(t *testing.T, s *stack.Stack, dir string) {
	d := newDomain(t, s, "mixed")
	p := start(t, filepath.Join(dir, nodeTests), login(t, s, workerOf(d.name)), "node", "handlers.mjs", d.name, "work")

	long := d.submit(t, "work", longTask) // runs beside all that follows
	t.Run("results", func(t *testing.T) { results(t, d) })
	t.Run("failures", func(t *testing.T) { failures(t, d) })
	t.Run("cancel", func(t *testing.T) { cancelled(t, d) })
	t.Run("heartbeats", func(t *testing.T) {
		d.endsInFirstAttempt(t, long)
	})
	t.Run("drain", func(t *testing.T) { drain(t, d, p) })
}

func results(t *testing.T, d *domain) {
	sum := d.submit(t, "work", `{"type":"sum","payload":{"numbers":[1,2,39],"note":"für <Änne> ✉"}}`)
	if end := d.becomes(t, sum, "completed"); string(end.Result) != `{"sum":42,"note":"für <Änne> ✉"}` {
		t.Errorf("the sum is %s", end.Result)
	}
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
	traced := d.submit(t, "work", `{"type":"traced","traceparent":"`+traceparent+`"}`)
	if end := d.becomes(t, traced, "completed"); string(end.Result) != fmt.Sprintf(`{"traceparent":"%[1]s","around":"%[1]s"}`, traceparent) {
		t.Errorf("the handler and the hook around it had %s", end.Result)
	}
	ids := make([]string, 60)
	for i := range ids {
		ids[i] = d.submit(t, "work", fmt.Sprintf(`{"type":"sum","payload":{"numbers":[%d,1]}}`, i))
	}
	for i, id := range ids {
		if end := d.becomes(t, id, "completed"); string(end.Result) != fmt.Sprintf(`{"sum":%d}`, i+1) {
			t.Errorf("sum %d is %s", i, end.Result)
		}
	}
}

func failures(t *testing.T, d *domain) {
	flaky := d.submit(t, "work", `{"type":"flaky","retry":{"initial_interval_ms":10}}`)
	huge := d.submit(t, "work", `{"type":"huge"}`)
	circular := d.submit(t, "work", `{"type":"circular","retry":{"max_attempts":1}}`)
	if end := d.becomes(t, flaky, "completed"); string(end.Result) != "3" || end.Failures != 2 {
		t.Errorf("it ended in its attempt %s, after %d failures", end.Result, end.Failures)
	}
	// What the engine does not take, or JSON cannot say, is a failure and not silence.
	if end := d.becomes(t, huge, "dead"); end.ErrorMessage != "the result was refused" {
		t.Errorf("the huge result ended with %q", end.ErrorMessage)
	}
	if end := d.becomes(t, circular, "dead"); end.ErrorType != "TypeError" {
		t.Errorf("the circular result ended with %q", end.ErrorType)
	}
}

// firstTask goes the way of the README, with its own commands: the worker, the submitter, Ctrl-C. They install what the
// client needs, so it has a copy of the folder: other tests use theirs meanwhile.
func firstTask(t *testing.T, s *stack.Stack) {
	d, dir := newDomain(t, s, "shop"), t.TempDir()
	for _, name := range []string{"api.d.ts", "mailer.mjs", "package.json", "package-lock.json", "submit.mjs", "worker.mjs", "yardmaster.mjs"} {
		text, err := os.ReadFile(filepath.Join("../..", nodeClient, name))
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, nodeClient), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, nodeClient, name), text, 0o644)
		}
		testkit.NoError(t, err)
	}
	startWorker, submit := steps(t, "contracts/node/README.md", "e2e/clients/node_worker_test.go")
	p := start(t, dir, login(t, s, workerOf(d.name)), "bash", "-euc", startWorker)
	p.says(t, "waiting for tasks of mail in shop")
	said, err := run(t, dir, login(t, s, sealed.Admin(d.name)), "bash", "-euc", submit)
	testkit.NoError(t, err)
	if !strings.Contains(said, ` completed {"message_id":"<ann@example.com>"}`) {
		t.Errorf("the submitter said %q", said)
	}
	p.says(t, "Hello for ann@example.com")
	p.interrupt(t)
	p.wait(t)
}

// TestNodeWorkerIsSmall: those who copy the worker and the submitter can read them.
func TestNodeWorkerIsSmall(t *testing.T) {
	const linesMax = 80
	lines := 0
	for _, name := range []string{"worker.mjs", "submit.mjs"} {
		text, err := os.ReadFile(filepath.Join("../..", nodeClient, name))
		testkit.NoError(t, err)
		for line := range bytes.Lines(text) {
			line = bytes.TrimSpace(line)
			if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) && !bytes.HasPrefix(line, []byte("/*")) && line[0] != '*' {
				lines++
			}
		}
	}
	if lines == 0 || lines >= linesMax {
		t.Errorf("the worker and the submitter have %d lines of code, want fewer than %d", lines, linesMax)
	}
}
