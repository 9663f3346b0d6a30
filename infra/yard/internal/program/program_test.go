//go:build unix

package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const within = 60 * time.Second

// runner runs a command, quietly.
func runner(command string) *Runner {
	return &Runner{Command: command, KillAfter: within, RetryAfter: time.Minute, Log: slog.New(slog.DiscardHandler)}
}

func attempt(payload string) *yard.Attempt {
	return &yard.Attempt{TaskID: "id", Domain: "shop", Tasklist: "mail", Type: "greet", Number: 2, Payload: yard.Payload{Data: []byte(payload)}}
}

func TestResults(t *testing.T) {
	for command, want := range map[string]yard.Payload{
		"cat":                     {Data: []byte(`{"to":"ann"}`)},
		"true":                    {},
		"echo":                    {},
		"exec cat >/dev/null":     {},
		`echo ' {"a" : 1} '`:      {Data: []byte(`{"a" : 1}`)},
		"echo 7":                  {Data: []byte("7")},
		"echo hello":              {Data: []byte(`"hello"`)},
		`printf 'two\nlines\n\n'`: {Data: []byte(`"two\nlines\n"`)},
		"echo 1; echo 2":          {Data: []byte(`"1\n2"`)},
		`printf '\377\001'`:       {Data: []byte{0xff, 1}, Binary: true},
		`echo "$YARD_TASK_ID $YARD_TASK_TYPE $YARD_ATTEMPT $YARD_DOMAIN $YARD_TASKLIST"`: {Data: []byte(`"id greet 2 shop mail"`)},
		"head -c 262144 /dev/zero | tr '\\0' 1":                                          {Data: bytes.Repeat([]byte("1"), ResultBytesMax)},
	} {
		got, err := runner(command).Run(t.Context(), attempt(`{"to":"ann"}`))
		if err != nil || !bytes.Equal(got.Data, want.Data) || got.Binary != want.Binary {
			t.Errorf("%s: %.80q (binary %v), %v", command, got.Data, got.Binary, err)
		}
	}
}

func TestFailures(t *testing.T) {
	policy, final, later := error(failure{}), yard.NonRetryable(io.EOF), yard.RetryAfter(io.EOF, 1)
	for command, want := range map[string]struct {
		name, message string
		like          error // policy: the task's retry policy decides
	}{
		"echo no route >&2; exit 1":             {"exit_1", "the program ended with exit code 1: no route", policy},
		"exit 65":                               {"exit_65", "the program ended with exit code 65", final},
		"exit 75":                               {"exit_75", "the program ended with exit code 75", later},
		"no-such-program":                       {"exit_127", "not found", policy},
		"kill -9 $$":                            {"signal", "signal: killed", policy},
		"head -c 262145 /dev/zero | tr '\\0' 1": {yard.TypeBadResult, "more than the 262144 bytes", final},
		"printf 'a\\n \\n' >&2; printf b >&2; exit 3": {"exit_3", "exit code 3: b", policy},
	} {
		_, err := runner(command).Run(t.Context(), attempt("{}"))
		var typed interface{ ErrorType() string }
		if err == nil || !errors.As(err, &typed) || typed.ErrorType() != want.name || !strings.Contains(err.Error(), want.message) {
			t.Errorf("%s: %v", command, err)
			continue
		}
		if got, like := fmt.Sprintf("%T", err), fmt.Sprintf("%T", want.like); got != like {
			t.Errorf("%s: it is a %s, want a %s", command, got, like)
		}
	}
}

// A program that is asked to stop may end in its own way, and its attempt has failed, whatever its exit code.
func TestAStopIsAFailure(t *testing.T) {
	why := errors.New("cancelled")
	begun := filepath.Join(t.TempDir(), "begun")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := runner("trap 'exit 0' TERM; touch "+begun+"; while :; do sleep 0.01; done").Run(ctx, attempt(""))
		done <- err
	}()
	exists(t, begun)
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// A program that ignores SIGTERM is killed, with what it started.
func TestAStubbornProgramIsKilledWithItsChildren(t *testing.T) {
	child := filepath.Join(t.TempDir(), "child")
	r := runner("trap '' TERM; sleep 1000 & echo $! >" + child + ".new; mv " + child + ".new " + child + "; wait; sleep 1000")
	r.KillAfter = 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, attempt(""))
		done <- err
	}()
	exists(t, child)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	gone(t, child)
}

// The engine gives the tasks of a killed worker to another one, so nothing of their programs may go on.
func TestNothingOutlivesAKilledWorker(t *testing.T) {
	child := filepath.Join(t.TempDir(), "child")
	worker := exec.Command(os.Args[0], "-test.run", "^TestWorkerProcess$")
	worker.Env = append(os.Environ(), workerCommand+"=sleep 1000 & echo $! >"+child+".new; mv "+child+".new "+child+"; wait")
	testkit.NoError(t, worker.Start())
	exists(t, child)
	testkit.NoError(t, worker.Process.Kill())
	_ = worker.Wait() // it was killed
	gone(t, child)
}

// workerCommand is the variable that makes TestWorkerProcess a worker.
const workerCommand = "YARD_PROGRAM_TEST_COMMAND"

// TestWorkerProcess is the worker that TestNothingOutlivesAKilledWorker kills.
func TestWorkerProcess(t *testing.T) {
	if command := os.Getenv(workerCommand); command != "" {
		_, err := runner(command).Run(t.Context(), attempt(""))
		t.Fatal(err)
	}
}

// A program that has ended decides, though another process that it started still has its output.
func TestWhatAProgramLeavesBehindIsKilled(t *testing.T) {
	child := filepath.Join(t.TempDir(), "child")
	r := runner("sleep 1000 & echo $! >" + child + "; echo done")
	r.KillAfter = 50 * time.Millisecond
	result, err := r.Run(t.Context(), attempt(""))
	if err != nil || string(result.Data) != `"done"` {
		t.Errorf("%s, %v", result.Data, err)
	}
	gone(t, child)
}

// A shell ends at SIGTERM at once. What it started has its time all the same, even if it holds no output of the program.
func TestChildrenHaveTheirTimeToStop(t *testing.T) {
	testkit.Slow(t, "waits for programs to stop")
	dir := t.TempDir()
	begun, asked, stopped := filepath.Join(dir, "begun"), filepath.Join(dir, "asked"), filepath.Join(dir, "stopped")
	child := "trap 'touch " + asked + "; sleep 0.2; touch " + stopped + "; exit' TERM; touch " + begun + "; while :; do sleep 0.01; done"
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := runner(`sh -c "`+child+`" >/dev/null 2>&1; true`).Run(ctx, attempt(""))
		done <- err
	}()
	exists(t, begun)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	exists(t, asked)
	exists(t, stopped)
}

// exists waits for a file.
func exists(t *testing.T, file string) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		_, err := os.Stat(file)
		return err
	})
}

// gone waits until the process whose number is in a file has ended. One that no one waits for
// stays in the table of processes until its new parent looks.
func gone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	testkit.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	testkit.NoError(t, err)
	testkit.Eventually(t, within, func() error {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return nil
		}
		return errors.New("it lives on")
	})
}

func TestStandardErrorIsLoggedWithinBounds(t *testing.T) {
	var text strings.Builder
	s := &stderr{log: slog.New(slog.NewTextHandler(&text, nil)), left: stderrBytesMax}
	for _, part := range []string{"one", "\n\n  two\n", strings.Repeat("x", 3*lineBytesMax), "y\nthree"} {
		if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	s.flush()
	for range 100_000 {
		_, _ = s.Write([]byte("0123456789\n"))
	}
	logged := text.String()
	for _, want := range []string{"output=one\n", "output=two\n", "output=" + strings.Repeat("x", lineBytesMax) + "\n", "output=three\n", "further output of the program is not logged"} {
		if !strings.Contains(logged, want) {
			t.Errorf("%.60q is missing", want)
		}
	}
	if n := strings.Count(logged, "0123456789"); n > stderrBytesMax/10 || strings.Count(logged, "further output of the program is not logged") != 1 {
		t.Errorf("%d lines were logged", n)
	}
	testkit.Equal(t, "the last line", s.last, "0123456789")
}
