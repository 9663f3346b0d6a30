package clients_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// cClient is where the C client is, from here.
const cClient = "../../contracts/c"

// TestC compiles the C client with all warnings as errors, and runs its programs: the submitter, and a worker for
// tasks that others submit.
func TestC(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "compiles and runs programs in C")
	dir := t.TempDir()
	testkit.NoError(t, libnats(t, dir))
	client, worker := filepath.Join(cClient, "yardmaster.c"), filepath.Join(cClient, "worker.c")
	for program, sources := range map[string][]string{
		"submit":   {filepath.Join(cClient, "submit.c"), client},
		"mailer":   {filepath.Join(cClient, "mailer.c"), worker, client},
		"handlers": {"c/handlers.c", worker, client},
	} {
		testkit.NoError(t, compile(t, filepath.Join(dir, program), sources...))
	}
	testkit.NoError(t, compile(t, filepath.Join(dir, "submit-late"), "-Dnats_Now=late_Now", "c/late.c", filepath.Join(cClient, "submit.c"), client))
	s := running(t, stack.Config{})
	t.Run("first task", func(t *testing.T) { firstTaskInC(t, s) })
	t.Run("sealed", func(t *testing.T) {
		nobodyIsRefused(t, usersOf(t, "shop", "mixed"), func(s *stack.Stack) {
			t.Run("first task", func(t *testing.T) { firstTaskInC(t, s) })
			d := newDomain(t, s, "mixed")
			p := start(t, dir, login(t, s, workerOf(d.name)), filepath.Join(dir, "handlers"), d.name, "work")
			t.Run("outcomes", func(t *testing.T) { outcomesInC(t, d) })
			t.Run("cancel", func(t *testing.T) { cancelled(t, d) })
			t.Run("drain", func(t *testing.T) { drain(t, d, p) })
		})
	})
	t.Run("creds", func(t *testing.T) {
		logsInWithCreds(t, func(env []string) (string, error) { return run(t, dir, env, filepath.Join(dir, "submit")) })
	})
	t.Run("outage", func(t *testing.T) {
		t.Parallel()
		outage(t, func(s *stack.Stack, domain string) *program {
			return start(t, dir, []string{"NATS_URL=" + s.URL}, filepath.Join(dir, "handlers"), domain, "work")
		})
	})
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		d := newDomain(t, s, "mixed")
		p := start(t, dir, []string{"NATS_URL=" + s.URL}, filepath.Join(dir, "handlers"), d.name, "work")
		t.Run("outcomes", func(t *testing.T) { outcomesInC(t, d) })
		t.Run("cancel", func(t *testing.T) { cancelled(t, d) })
		t.Run("clock", func(t *testing.T) {
			for _, ms := range []string{"-70000", "-700000", "90000"} {
				env := []string{"NATS_URL=" + s.URL, "LATE_MS=" + ms}
				said, err := run(t, dir, env, filepath.Join(dir, "submit-late"), d.name, "work", "echo", "[1]")
				if want := "completed [1]\n"; err != nil || said != want {
					t.Errorf("by a clock that is %s ms off the submitter said %q, want %q, %v", ms, said, want, err)
				}
			}
		})
		t.Run("heartbeats", func(t *testing.T) { d.endsInFirstAttempt(t, d.submit(t, "work", longTask)) })
		t.Run("drain", func(t *testing.T) { drain(t, d, p) })
	})
}

// firstTaskInC goes the way of the README, with its own commands, in a copy of the folder.
func firstTaskInC(t *testing.T, s *stack.Stack) {
	newDomain(t, s, "shop")
	root := t.TempDir()
	testkit.NoError(t, os.CopyFS(filepath.Join(root, "contracts", "c"), os.DirFS(cClient)))
	startWorker, submit := steps(t, "contracts/c/README.md", "e2e/clients/c_test.go")
	p := start(t, root, login(t, s, workerOf("shop")), "bash", "-euc", startWorker)
	p.says(t, "waiting for tasks of mail in shop")
	said, err := run(t, root, login(t, s, sealed.Admin("shop")), "bash", "-euc", submit)
	if want := "completed {\"message_id\":\"<ann@example.com>\"}\n"; err != nil || said != want {
		t.Errorf("the submitter said %q, want %q, %v", said, want, err)
	}
	p.interrupt(t)
	p.wait(t)
}

// libnats tells whether a program with libnats can be built here.
func libnats(t *testing.T, dir string) error {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		return err
	}
	source := filepath.Join(dir, "probe.c")
	testkit.NoError(t, os.WriteFile(source, []byte("#include <nats/nats.h>\nint main(void) { nats_Close(); return 0; }\n"), 0o644))
	return compile(t, filepath.Join(dir, "probe"), source)
}

func compile(t *testing.T, program string, sources ...string) error {
	t.Helper()
	args := append([]string{"-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-pthread", "-I", cClient, "-o", program}, sources...)
	_, err := run(t, ".", nil, "cc", append(args, "-lnats")...)
	return err
}

func outcomesInC(t *testing.T, d *domain) {
	const payload = `{"note":"für <Änne> \" } ✉","list":[1,[2,{"a":null}]]}`
	echo := d.submit(t, "work", `{"type":"echo","payload":`+payload+`}`)
	flaky := d.submit(t, "work", `{"type":"flaky","retry":{"initial_interval_ms":10}}`)
	broken := d.submit(t, "work", `{"type":"broken","retry":{"max_attempts":1}}`)
	if end := d.becomes(t, echo, "completed"); string(end.Result) != payload {
		t.Errorf("the result is %s, want %s", end.Result, payload)
	}
	end := d.becomes(t, flaky, "completed")
	if string(end.Result) != "3" || end.Failures != 2 {
		t.Errorf("it ended in its attempt %s, after %d failures", end.Result, end.Failures)
	}
	if end := d.becomes(t, broken, "dead"); end.ErrorType != "c" {
		t.Errorf("a result that is no JSON ended with %+v", end)
	}
}
