package lifecycle_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/shared/lifecycle"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// actEnv makes the test binary a process that runs Main; its value says how the
// process behaves.
const actEnv = "LIFECYCLE_TEST_ACT"

func TestMain(m *testing.M) {
	if act := os.Getenv(actEnv); act != "" {
		os.Exit(lifecycle.Main(func(ctx context.Context) error { return behave(ctx, act) }))
	}
	goleak.VerifyTestMain(m)
}

func behave(ctx context.Context, act string) error {
	if act == "fail" {
		return errors.New("no such stream")
	}
	fmt.Println("up")
	<-ctx.Done()
	fmt.Println("stopping")
	if act == "hang" {
		select {}
	}
	return nil
}

func TestMainPrintsTheError(t *testing.T) {
	code, stderr := act(t, "fail", nil)
	if code != 1 || stderr != "no such stream\n" {
		t.Fatalf("code %d, said %q", code, stderr)
	}
}

func TestMainStopsOnASignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		code, stderr := act(t, "serve", func(child *os.Process, said func(string)) {
			said("up")
			send(t, child, sig)
			said("stopping")
		})
		if code != 0 || stderr != "" {
			t.Fatalf("%v: code %d, said %q", sig, code, stderr)
		}
	}
}

func TestMainExitsOnASecondSignal(t *testing.T) {
	code, _ := act(t, "hang", func(child *os.Process, said func(string)) {
		said("up")
		send(t, child, syscall.SIGTERM)
		said("stopping")
		send(t, child, syscall.SIGTERM)
	})
	testkit.MustEqual(t, "code", code, 1)
}

// act runs this binary as a process with the given behaviour, lets meanwhile talk
// to it, and returns how it ended.
func act(t *testing.T, behaviour string, meanwhile func(child *os.Process, said func(string))) (code int, stderr string) {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), actEnv+"="+behaviour)
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	testkit.NoError(t, err)
	testkit.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	if meanwhile != nil {
		meanwhile(cmd.Process, func(want string) {
			t.Helper()
			if line, err := lines.ReadString('\n'); line != want+"\n" {
				t.Fatalf("the process said %q (%v), want %q", line, err, want)
			}
		})
	}
	testkit.NoError(t, testkit.Err(io.Copy(io.Discard, lines)))
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), errs.String()
}

func send(t *testing.T, child *os.Process, sig os.Signal) {
	t.Helper()
	testkit.NoError(t, child.Signal(sig))
}
