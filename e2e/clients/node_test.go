package clients_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yardmaster-io/yardmaster/e2e/documents"
	"github.com/yardmaster-io/yardmaster/e2e/sealed"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// within bounds what must happen soon.
const within = time.Minute

// TestMain runs more tests side by side than there are cores: most of the time they wait for workers.
func TestMain(m *testing.M) {
	testkit.SideBySide(6)
	goleak.VerifyTestMain(m)
}

// The programs, from the repository's root.
const (
	nodeClient = "contracts/node"
	nodeTests  = "e2e/clients/node"
)

// TestNode checks the types of the Node.js client and runs its programs: one that tries every verb, the
// submitter, and a worker for tasks that others submit.
func TestNode(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs programs in Node.js")
	dir, err := installed(t)
	testkit.NoError(t, err)
	t.Run("types", func(t *testing.T) {
		writeBlocks(t, filepath.Join(dir, nodeClient))
		testkit.Check(t, testkit.Err(run(t, filepath.Join(dir, nodeClient), nil, "npm", "run", "check")))
	})
	t.Run("outage", func(t *testing.T) {
		t.Parallel()
		outage(t, func(s *stack.Stack, domain string) *program {
			return start(t, filepath.Join(dir, nodeTests), login(t, s, workerOf(domain)), "node", "handlers.mjs", domain, "work")
		})
	})
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		programs(t, running(t, stack.Config{}), dir)
	})
	t.Run("sealed", func(t *testing.T) {
		t.Parallel()
		users := usersOf(t, "tour", "mixed", "shop")
		nobodyIsRefused(t, users, func(s *stack.Stack) { programs(t, s, dir) })
	})
	t.Run("creds", func(t *testing.T) {
		t.Parallel()
		logsInWithCreds(t, func(env []string) (string, error) {
			return run(t, filepath.Join(dir, nodeClient), env, "node", "submit.mjs")
		})
	})
}

func programs(t *testing.T, s *stack.Stack, dir string) {
	t.Run("tour", func(t *testing.T) { tour(t, s, dir) })
	t.Run("first task", func(t *testing.T) { firstTask(t, s) })
	t.Run("worker", func(t *testing.T) { worker(t, s, dir) })
}

// writeBlocks puts the JavaScript of the README among what is checked, with what it takes for granted.
func writeBlocks(t *testing.T, dir string) {
	t.Helper()
	blocks, err := documents.Read(documents.Root(), nodeClient+"/README.md")
	testkit.NoError(t, err)
	const before = `import { work } from "./worker.mjs";
import { open } from "./yardmaster.mjs";
const client = await open("shop");
const stop = new AbortController();
void [work, client, stop]; // not each example needs all
`
	written := 0
	for _, b := range blocks {
		if b.Language != "js" {
			continue
		}
		testkit.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("readme-%d.mjs", b.Line)), []byte(before+b.Text), 0o644))
		written++
	}
	if written == 0 {
		t.Error("the README has no JavaScript")
	}
}

// installed copies the programs to a folder of the test, where they are as in the repository, and installs their
// locked dependencies there, from npm's cache where it has them. It returns the folder.
func installed(t *testing.T) (dir string, err error) {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", err
		}
	}
	dir = t.TempDir()
	for _, part := range []string{nodeClient, nodeTests} {
		files, err := filepath.Glob(filepath.Join("../..", part, "*.*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s holds %v, %v", part, files, err)
		}
		testkit.NoError(t, os.MkdirAll(filepath.Join(dir, part), 0o755))
		for _, file := range files {
			text, err := os.ReadFile(file)
			testkit.NoError(t, err)
			testkit.NoError(t, os.WriteFile(filepath.Join(dir, part, filepath.Base(file)), text, 0o644))
		}
	}
	_, err = run(t, filepath.Join(dir, nodeClient), nil, "npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error")
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
	testkit.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		testkit.Check(t, s.Close(ctx))
	})
	return s
}

func tour(t *testing.T, s *stack.Stack, dir string) {
	newDomain(t, s, "tour")
	said, err := run(t, filepath.Join(dir, nodeTests), append(login(t, s, sealed.Admin("tour")), "YARD_DOMAIN=tour"), "node", "--test", "--test-reporter=tap", "tour.test.mjs")
	testkit.NoError(t, err)
	if !strings.Contains(said, "# fail 0") || strings.Contains(said, "# pass 0") {
		t.Errorf("the tour did not say that it passed:\n%s", said)
	}
}
