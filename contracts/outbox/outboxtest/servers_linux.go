package outboxtest

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// readyWithin is how long a server may take to start on a machine that others load.
const readyWithin = 2 * time.Minute

// Server is a database server of a test. It has the same address after Restart.
type Server struct {
	// DSN is the URL of its database, as `yard relay --dsn` takes it.
	DSN string

	command []string
	addr    string
	// status is the file in which the server says that it is ready; "" = it accepts no connection before.
	status  string
	as      *syscall.Credential
	dir     string
	process *os.Process
	ended   chan struct{}
}

// Postgres starts a PostgreSQL with its defaults: a commit waits for the disk.
func Postgres(tb testing.TB) *Server {
	tb.Helper()
	initdb, server := program(tb, "initdb"), program(tb, "postgres")
	s := newServer(tb, "postgres")
	data := filepath.Join(s.dir, "data")
	s.run(tb, initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
	_, port, _ := net.SplitHostPort(s.addr)
	s.command = []string{server, "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + s.dir}
	s.status = filepath.Join(data, "postmaster.pid")
	s.DSN = "postgres://postgres@" + s.addr + "/postgres?sslmode=disable"
	s.start(tb)
	return s
}

// MariaDB starts a MariaDB with its defaults, and the database test.
func MariaDB(tb testing.TB) *Server {
	tb.Helper()
	install, server := program(tb, "mariadb-install-db"), program(tb, "mariadbd")
	s := newServer(tb, "mysql")
	data := filepath.Join(s.dir, "data")
	s.run(tb, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	first := filepath.Join(s.dir, "first.sql")
	if err := os.WriteFile(first, []byte("CREATE DATABASE IF NOT EXISTS test;\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(s.addr)
	s.command = []string{
		server, "--no-defaults", "--datadir=" + data, "--port=" + port, "--bind-address=127.0.0.1", "--socket=" + filepath.Join(s.dir, "socket"),
		"--pid-file=" + filepath.Join(s.dir, "pid"), "--init-file=" + first,
	}
	s.DSN = "mysql://root@" + s.addr + "/test"
	s.start(tb)
	return s
}

// program finds a program in PATH or where Debian has it.
func program(tb testing.TB, name string) string {
	tb.Helper()
	all := os.Getenv("YARD_TESTS") == "all"
	if !all {
		tb.Skipf("left out, YARD_TESTS=all runs it: the test starts a database server")
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/lib/postgresql/*/bin/", "/usr/sbin/"} {
		if found, _ := filepath.Glob(dir + name); len(found) > 0 { // the pattern is good
			return slices.Max(found)
		}
	}
	tb.Fatalf("YARD_TESTS=all, but there is no %s", name)
	return ""
}

// newServer is one with a folder and an address. Servers refuse to run as root: then it runs as a user of Debian's package.
func newServer(tb testing.TB, name string) *Server {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{addr: l.Addr().String()}
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	// Not tb.TempDir: the folders above it are of this user only.
	if s.dir, err = os.MkdirTemp("", "outboxtest-"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		s.Kill()
		if err := os.RemoveAll(s.dir); err != nil {
			tb.Error(err)
		}
	})
	if os.Getuid() != 0 {
		return s
	}
	u, err := user.Lookup(name)
	if err != nil {
		tb.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers, on Linux
	gid, _ := strconv.Atoi(u.Gid)
	s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(s.dir, uid, gid); err != nil {
		tb.Fatal(err)
	}
	return s
}

func (s *Server) run(tb testing.TB, command ...string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), readyWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: s.as}
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", command[0], err, out)
	}
}

// start starts the server and waits until it accepts connections. A server that ends at once is started again: processes of the one that was killed may still have
// its memory.
func (s *Server) start(tb testing.TB) {
	tb.Helper()
	deadline := time.Now().Add(readyWithin)
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		if s.ended == nil || isClosed(s.ended) {
			if err := s.launch(); err != nil {
				tb.Fatal(err)
			}
		}
		err := s.ready()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s: %v", s.command[0], err)
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// launch starts the process, which the kernel kills if this process dies.
func (s *Server) launch() error {
	if err := os.Remove(s.status); err != nil && !os.IsNotExist(err) {
		return err
	}
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the life of the server is bound to the thread that starts it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
		close(ended)
	}()
	s.ended = ended
	if err := <-started; err != nil {
		return err
	}
	s.process = cmd.Process
	return nil
}

// ready reports whether the server accepts connections.
func (s *Server) ready() error {
	if s.status != "" {
		if text, err := os.ReadFile(s.status); err != nil || !strings.Contains(string(text), "ready") {
			return errors.Join(errors.New("the server is not ready"), err)
		}
	}
	c, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// Kill kills the server and all of its processes at once.
func (s *Server) Kill() {
	if s.process != nil {
		_ = syscall.Kill(-s.process.Pid, syscall.SIGKILL) // an error means that it has ended
		<-s.ended
	}
	s.process = nil
}

// Restart kills the server if it runs, and starts it with the same data.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Kill()
	s.start(tb)
}
