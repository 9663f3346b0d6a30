package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/child"
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
	server *server
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
		r.Addr = FreeAddr(tb)
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
	if r.server != nil {
		r.server.Kill()
	}
	r.server = nil
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
	cmd := exec.Command(r.binary, append([]string{
		"--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no",
		"--dir", r.dir, "--daemonize", "no",
	}, r.args...)...)
	s := new(server)
	cmd.Stdout, cmd.Stderr = &s.output, &s.output
	if s.Process, err = child.Start(cmd); err != nil {
		return err
	}
	if err := s.awaitPong(r.Addr); err != nil {
		s.Kill()
		return err
	}
	r.server = s
	return nil
}

// server is one life of a redis-server.
type server struct {
	*child.Process
	output bytes.Buffer // read only after the process has ended
}

// awaitPong waits until the child answers PING, has ended, or is too slow. It
// asks the server for the process id too: a port taken by another Redis in the
// meantime must not pass for ours.
func (s *server) awaitPong(addr string) error {
	deadline := time.NewTimer(serverReadyWithin)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		err := s.ping(addr)
		if err == nil {
			return nil
		}
		select {
		case <-s.Ended():
			return fmt.Errorf("redis-server ended at once: %s", s.output.String())
		case <-deadline.C:
			return fmt.Errorf("redis-server did not answer within %v: %w", serverReadyWithin, err)
		case <-poll.C:
		}
	}
}

func (s *server) ping(addr string) error {
	info, err := do(addr, time.Second, "INFO server")
	if err == nil && !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.PID())) {
		err = errors.New("another process answers on the port, or it is still loading")
	}
	return err
}
