package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/auth"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
)

// requireNodeEnv set to 1 turns an absent node or npm into a failure. CI sets it.
const requireNodeEnv = "YARD_REQUIRE_NODE"

// within bounds what must happen soon.
const within = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNode runs the Node.js programs: one that tries every verb, and one that is a
// worker for tasks that the Go SDK hands in.
func TestNode(t *testing.T) {
	dir, err := installed(t)
	if err != nil {
		if os.Getenv(requireNodeEnv) == "1" {
			t.Fatalf("%s=1, but: %v", requireNodeEnv, err)
		}
		fmt.Fprintf(os.Stderr, "clients in Node.js are left out (set %s=1 to make this a failure): %v\n", requireNodeEnv, err)
		t.SkipNow()
	}
	t.Run("open", func(t *testing.T) { programs(t, running(t, stack.Config{}), dir) })
	t.Run("sealed", func(t *testing.T) {
		refused := new(sealed.Log)
		users := t.TempDir()
		if err := sealed.Render(users, topology.Partitioning{}, []string{"tour", "mixed"}, nodeWorker("mixed")); err != nil {
			t.Fatal(err)
		}
		programs(t, running(t, stack.Config{Auth: users, Log: refused.Logger()}), dir)
		if err := refused.Refused(); err != nil {
			t.Error(err)
		}
	})
}

func programs(t *testing.T, s *stack.Stack, dir string) {
	t.Run("tour", func(t *testing.T) { tour(t, s, dir) })
	t.Run("worker", func(t *testing.T) { worker(t, s, dir) })
}

// nodeWorker is who worker.mjs logs in as: it may neither submit nor administer.
func nodeWorker(domain string) permissions.User {
	return permissions.User{Role: permissions.Worker, Domain: domain, Name: sealed.UserName}
}

// login is the environment of a program that is a user of s.
func login(s *stack.Stack, u permissions.User) []string {
	if s.Auth == "" {
		return nil
	}
	return []string{"YARD_NKEY=" + auth.SeedFile(s.Auth, u), "YARD_INBOX_PREFIX=" + u.Inbox()}
}

// installed copies the programs to a folder of the test, and installs their locked
// dependencies there, from npm's cache where it has them.
func installed(t *testing.T) (dir string, err error) {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", err
		}
	}
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("node")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	_, err = run(t, dir, nil, "npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error")
	return dir, err
}

// run runs a program to its end and returns what it said.
func run(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*within)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out), nil
}

// running is a stack with a domain.
func running(t *testing.T, cfg stack.Config) *stack.Stack {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cfg.Tables = stack.TablesMemory
	s, err := stack.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("the stack did not end well: %v", err)
		}
	})
	return s
}

// domain makes a domain and a client for it.
func domain(t *testing.T, s *stack.Stack, name string) *yard.Client {
	t.Helper()
	connect := func(u permissions.User) *nats.Conn {
		nc, err := sealed.Connect(s, u)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	client, err := yard.NewClient(connect(sealed.Admin(name)), name)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := yard.NewAdmin(connect(sealed.Operator()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.PutDomain(t.Context(), yard.Domain{Name: name}); err != nil {
		t.Fatal(err)
	}
	return client
}

func tour(t *testing.T, s *stack.Stack, dir string) {
	domain(t, s, "tour")
	said, err := run(t, dir, append(login(s, sealed.Admin("tour")), "YARD_URL="+s.URL, "YARD_DOMAIN=tour"), "node", "--test", "--test-reporter=tap", "tour.test.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "# fail 0") || strings.Contains(said, "# pass 0") {
		t.Errorf("the tour did not say that it passed:\n%s", said)
	}
}

// worker hands tasks to a worker in Node.js, and takes their results.
func worker(t *testing.T, s *stack.Stack, dir string) {
	client := domain(t, s, "mixed")
	var said bytes.Buffer
	cmd := exec.Command("node", "worker.mjs", s.URL, "mixed", "sums")
	cmd.Env = append(os.Environ(), login(s, nodeWorker("mixed"))...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }() // fails where it has ended, as it should have

	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	type input struct {
		Numbers []int  `json:"numbers"`
		Note    string `json:"note"`
	}
	type output struct {
		Sum  int    `json:"sum"`
		Note string `json:"note"`
	}
	got, err := yard.Run[output](ctx, client, yard.Task{Type: "sum", Tasklist: "sums", Payload: input{[]int{1, 2, 39}, "für <Änne> ✉"}})
	if err != nil || got != (output{42, "für <Änne> ✉"}) {
		t.Errorf("the sum is %+v, %v", got, err)
	}
	attempts, err := yard.Run[int](ctx, client, yard.Task{Type: "flaky", Tasklist: "sums", Retry: &yard.RetryPolicy{InitialInterval: 10 * time.Millisecond}})
	if err != nil || attempts != 3 {
		t.Errorf("it took %d attempts, %v", attempts, err)
	}
	tasks := make([]yard.Task, 200)
	for i := range tasks {
		tasks[i] = yard.Task{Type: "sum", Tasklist: "sums", Payload: input{Numbers: []int{i, 1}}}
	}
	ids, err := client.SubmitMany(ctx, tasks)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		result, err := client.Wait(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		var sum output
		if err := result.Decode(&sum); err != nil || sum.Sum != i+1 {
			t.Errorf("task %d: %+v, %v", i, sum, err)
		}
	}

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("worker.mjs ended with %v\n%s", err, &said)
		}
	case <-ctx.Done():
		t.Error("worker.mjs did not stop")
	}
}
