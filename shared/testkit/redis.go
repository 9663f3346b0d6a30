package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// serverReadyWithin is how long a server may take to accept connections. It is
// generous because CI machines are shared; a healthy one needs milliseconds.
const serverReadyWithin = 60 * time.Second

// redisStartTries is how often RunRedis looks for a free port: between finding
// one and Redis taking it, another process may have it.
const redisStartTries = 5

// Redis is one real redis-server, a child of the test process that dies with it.
// It persists nothing, unless its arguments say so: Restart gives an empty one, which is what
// the system must be able to live through.
type Redis struct {
	// Addr is host:port. It stays the same across Stop and Restart.
	Addr string

	binary string
	args   []string
	dir    string
	child  *child
	// bus is the port by which the nodes of a cluster talk.
	bus int
}

// RunRedis starts a redis-server found in PATH on a free loopback port and kills
// it when the test ends. Without a binary it skips the test, or fails it if all tests are asked for. Further
// arguments are the server's, such as "--cluster-enabled", "yes".
func RunRedis(tb testing.TB, args ...string) *Redis {
	tb.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if !Quick() {
			tb.Fatalf("%s=%s, but: %v", testsEnv, testsAll, err)
		}
		tb.Skipf("left out: %v", err)
	}
	r := &Redis{binary: binary, args: args, dir: tb.TempDir()}
	tb.Cleanup(r.Stop)
	for range redisStartTries {
		if r.Addr, err = FreeAddr(); err != nil {
			break
		}
		if err = r.start(); err == nil {
			return r
		}
	}
	tb.Fatalf("start redis-server: %v", err)
	return nil
}

// Stop kills the server and waits until it is gone. Data that it has not saved is lost. It
// may be called when the server is stopped already.
func (r *Redis) Stop() {
	if r.child != nil {
		r.child.kill()
	}
	r.child = nil
}

// Restart stops the server if it runs and starts one on the same port, with what was saved.
func (r *Redis) Restart(tb testing.TB) {
	tb.Helper()
	r.Stop()
	if err := r.start(); err != nil {
		tb.Fatalf("restart redis-server: %v", err)
	}
}

// Flush empties the server.
func (r *Redis) Flush(tb testing.TB) {
	tb.Helper()
	r.must(tb, "FLUSHALL")
}

func (r *Redis) start() error {
	_, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return err
	}
	c, err := startChild(r.binary, append([]string{
		"--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no",
		"--dir", r.dir, "--daemonize", "no",
	}, r.args...)...)
	if err != nil {
		return err
	}
	if err := c.awaitPong(r.Addr); err != nil {
		c.kill()
		return err
	}
	r.child = c
	return nil
}

// child is a process bound to this one.
type child struct {
	cmd    *exec.Cmd
	output bytes.Buffer  // read only after gone is closed
	gone   chan struct{} // closed when the process has ended
}

// startChild starts a process that the kernel kills if this process dies (where
// the system can do that). The kernel watches the starting thread, not the
// process, so one thread is kept for as long as the child lives.
func startChild(binary string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(binary, args...), gone: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // killed on purpose: its exit status says nothing
		}
		close(c.gone)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error means it has ended already
	<-c.gone
}

// awaitPong waits until the child answers PING, has ended, or is too slow. It
// asks the server for the process id too: a port taken by another Redis in the
// meantime must not pass for ours.
func (c *child) awaitPong(addr string) error {
	deadline := time.NewTimer(serverReadyWithin)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		err := c.ping(addr)
		if err == nil {
			return nil
		}
		select {
		case <-c.gone:
			return fmt.Errorf("redis-server ended at once: %s", c.output.String())
		case <-deadline.C:
			return fmt.Errorf("redis-server did not answer within %v: %w", serverReadyWithin, err)
		case <-poll.C:
		}
	}
}

func (c *child) ping(addr string) error {
	info, err := do(addr, time.Second, "INFO server")
	if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", c.cmd.Process.Pid)) {
		err = errors.New("another process answers on the port, or it is still loading")
	}
	return err
}
