package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
)

// The rendered users start a server; the command logs in as one of them, and is refused as nobody. No seed
// is printed.
func TestASealedSession(t *testing.T) {
	dir, out := t.TempDir(), new(bytes.Buffer)
	run := func(args ...string) (int, string) {
		out.Reset()
		code := cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: out, Err: out})
		return code, out.String()
	}
	for _, wrong := range [][]string{
		{"auth", "render"}, {"auth", "render", "--out", dir, "--user", "root"}, {"auth", "render", "--out", dir, "--user", "worker:shop"},
	} {
		if code, said := run(wrong...); code != cli.ExitUsage {
			t.Errorf("%v: exit %d: %s", wrong, code, said)
		}
	}
	code, said := run("auth", "render", "--out", dir, "--history-partitions", "2", "--matching-shards", "2", "--user", "operator:ann", "--user", "admin:shop:boss")
	if code != cli.ExitOK || !strings.Contains(said, "_INBOX.t.shop.admin-boss") {
		t.Fatalf("exit %d: %s", code, said)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "keys", "operator.ann.nk"))
	if err != nil || strings.Contains(said, strings.TrimSpace(string(seed))) {
		t.Errorf("the seed: %v", err)
	}
	s, err := stack.Start(t.Context(), stack.Config{Auth: dir, Tables: stack.TablesMemory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ann := []string{"--url", s.URL, "--nkey", filepath.Join(dir, "keys", "operator.ann.nk"), "--inbox-prefix", "_INBOX.o.ann"}
	boss := []string{"--url", s.URL, "--domain", "shop", "--nkey", filepath.Join(dir, "keys", "admin.shop.boss.nk"), "--inbox-prefix", "_INBOX.t.shop.admin-boss"}
	provisioner := []string{"--url", s.URL, "--nkey", filepath.Join(dir, "keys", "provisioner.nk"), "--inbox-prefix", "_INBOX.s.provisioner"}
	for _, c := range [][]string{
		append([]string{"domain", "put", "shop"}, ann...), append([]string{"status"}, ann...), append([]string{"upgrade", "status"}, ann...),
		append([]string{"quarantine", "list"}, ann...), append([]string{"provision"}, provisioner...),
		append([]string{"task", "submit", "x", "{}", "--tasklist", "mail"}, boss...), append([]string{"task", "list"}, boss...),
		append([]string{"auth", "render", "--out", t.TempDir(), "--from-cluster"}, ann...),
	} {
		if code, said := run(c...); code != cli.ExitOK {
			t.Errorf("%v: exit %d: %s", c, code, said)
		}
	}
	if code, said := run("status", "--url", s.URL, "--timeout", "5s"); code != cli.ExitFailed || !strings.Contains(said, "Authorization") || !strings.Contains(said, "--nkey") || strings.Contains(said, "yard dev") {
		t.Errorf("nobody: exit %d: %s", code, said)
	}
	if code, _ := run("status", "--url", s.URL, "--nkey", "gone.nk"); code != cli.ExitUsage {
		t.Errorf("a key file that is not there: exit %d", code)
	}
	boss[3] = "other"
	for want, args := range map[string][]string{
		"--domain":       append([]string{"task", "list", "--timeout", "5m"}, boss...),
		"--inbox-prefix": {"task", "list", "--timeout", "5m", "--url", s.URL, "--domain", "shop", "--nkey", filepath.Join(dir, "keys", "admin.shop.boss.nk")},
	} {
		if code, said := run(args...); code != cli.ExitFailed || !strings.Contains(said, "PERMISSION_DENIED") || !strings.Contains(said, want) || strings.Contains(said, "no answer") {
			t.Errorf("%v lacks a right: exit %d: %s", args, code, said)
		}
	}
}

// A stack that takes known users only says how to log in, and where the users come from.
func TestDevOnASealedServerSaysHowToLogIn(t *testing.T) {
	dir := t.TempDir()
	args := []string{"dev", "--auth", dir, "--ephemeral", "--port", "0", "--tables", "memory", "--log-level", "error"}
	if _, errs, code := run(t, "", args...); code != cli.ExitUsage || !strings.Contains(errs, "yard auth render --out "+dir) {
		t.Errorf("a folder without users: exit %d: %s", code, errs)
	}
	if _, errs, code := run(t, "", "auth", "render", "--out", dir, "--history-partitions", "2", "--matching-shards", "2"); code != cli.ExitOK {
		t.Fatal(errs)
	}
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- cli.Run(ctx, args, cli.Streams{Out: in, Err: io.Discard}); _ = in.Close() }()
	said, err := bufio.NewReader(out).ReadString('#')
	if err != nil || !strings.Contains(said, "--nkey") || !strings.Contains(said, "--inbox-prefix") {
		t.Errorf("%v: %s", err, said)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	stop()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("exit %d", code)
	}
}
