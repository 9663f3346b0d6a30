package clients_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// program is a worker of another language that runs beside a test.
type program struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan error

	mu   sync.Mutex
	said []string
}

// start starts a program, which is killed at the test's end if it still runs then.
func start(t *testing.T, dir string, env []string, name string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(name, args...), ended: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := p.cmd.StdinPipe()
	testkit.NoError(t, err)
	out, into := io.Pipe()
	p.in, p.cmd.Stdout, p.cmd.Stderr = in, into, into
	testkit.NoError(t, p.cmd.Start())
	var lines sync.WaitGroup
	lines.Go(func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.mu.Lock()
			p.said = append(p.said, scan.Text())
			p.mu.Unlock()
		}
	})
	go func() {
		err := p.cmd.Wait()
		_ = into.Close()
		lines.Wait()
		p.ended <- err
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails where it has ended, as it should have
		if t.Failed() {
			t.Logf("%s said:\n%s", name, strings.Join(p.lines(), "\n"))
		}
	})
	return p
}

func (p *program) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.said)
}

// says waits until the program has said a line.
func (p *program) says(t *testing.T, line string) {
	t.Helper()
	testkit.Eventually(t, within, func() error {
		if slices.Contains(p.lines(), line) {
			return nil
		}
		return fmt.Errorf("the program did not say %q", line)
	})
}

// interrupt is Ctrl-C: the program and what it has started get SIGINT.
func (p *program) interrupt(t *testing.T) {
	t.Helper()
	testkit.NoError(t, syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT))
}

// stop is SIGTERM.
func (p *program) stop(t *testing.T) {
	t.Helper()
	testkit.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
}

// wait waits until the program has ended, which must be well.
func (p *program) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-p.ended:
		testkit.Check(t, err)
	case <-time.After(within):
		t.Fatal("the program did not end")
	}
}
