package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/infra/yard/stack"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The rendered users start a server; the command logs in as one of them, and is refused as no one. No seed
// is printed.
func TestASealedSession(t *testing.T) {
	dir, out := t.TempDir(), new(bytes.Buffer)
	run := func(args ...string) (int, string) {
		out.Reset()
		code := cli.Run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: out, Err: out})
		return code, out.String()
	}
	for _, wrong := range [][]string{
		{"auth", "render"},
		{"auth", "render", "--out", dir, "--user", "root"},
		{"auth", "render", "--out", dir, "--user", "worker:shop"},
		{"auth", "render", "--out", dir, "--history-partitions", "0"},
		{"auth", "render", "--out", dir, "--matching-shards", "1025"},
	} {
		if code, said := run(wrong...); code != cli.ExitUsage {
			t.Errorf("%v: exit %d: %s", wrong, code, said)
		}
	}
	code, said := run("auth", "render", "--out", dir, "--history-partitions", "2", "--matching-shards", "2", "--user", "operator:ann", "--user", "admin:shop:boss", "--user", "worker:shop:mailer", "--user", "submitter:shop:web")
	if code != cli.ExitOK || !strings.Contains(said, "_INBOX.t.shop.admin-boss") {
		t.Fatalf("exit %d: %s", code, said)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "keys", "operator.ann.nk"))
	if err != nil || strings.Contains(said, strings.TrimSpace(string(seed))) {
		t.Errorf("the seed: %v", err)
	}
	s, err := stack.Start(t.Context(), stack.Config{Auth: dir, Tables: stack.TablesMemory})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		testkit.Check(t, s.Close(context.Background()))
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
	examines(t, s.URL, dir, boss)
	works(t, s.URL, dir)
	if code, said := run("status", "--url", s.URL, "--timeout", "5s"); code != cli.ExitFailed || !strings.Contains(said, "Authorization") || !strings.Contains(said, "--nkey") || strings.Contains(said, "yard dev") {
		t.Errorf("no one: exit %d: %s", code, said)
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

// examines: the inspector may look at everything, and a tenant at nothing.
func examines(t *testing.T, url, dir string, tenant []string) {
	t.Helper()
	inspector := []string{"--url", url, "--nkey", filepath.Join(dir, "keys", "inspector.nk"), "--inbox-prefix", "_INBOX.s.inspector"}
	if out, errs, code := run(t, "", append([]string{"doctor", "--wait", "1s"}, inspector...)...); code != cli.ExitOK || strings.Count(out, "Not checked") != 1 {
		t.Errorf("the inspector: exit %d: %s%s", code, out, errs)
	}
	if _, errs, code := run(t, "", append([]string{"backup", "create", t.TempDir()}, inspector...)...); code != cli.ExitFailed || !strings.Contains(errs, "not at rest") {
		t.Errorf("a backup by the inspector: exit %d: %s", code, errs)
	}
	if _, errs, code := run(t, "", append([]string{"backup", "create", t.TempDir()}, tenant...)...); code != cli.ExitFailed || !strings.Contains(errs, "PERMISSION_DENIED") {
		t.Errorf("a backup by a tenant: exit %d: %s", code, errs)
	}
	if _, errs, code := run(t, "", append([]string{"doctor"}, tenant...)...); code != cli.ExitBlind || !strings.Contains(errs, "PERMISSION_DENIED") {
		t.Errorf("the doctor of a tenant: exit %d: %s", code, errs)
	}
}

// works: a worker that may only work, and a submitter, need no other right.
func works(t *testing.T, url, dir string) {
	t.Helper()
	as := func(user, inbox string, args ...string) []string {
		return append(args, "--nkey", filepath.Join(dir, "keys", user+".nk"), "--inbox-prefix", inbox)
	}
	stop := (&shell{t, url}).work(as("worker.shop.mailer", "_INBOX.t.shop.worker-mailer", "--exec", "cat")...)
	submit := []string{"task", "submit", "-t", "mail", "echo", "7", "--wait", "--url", url, "-d", "shop"}
	if out, errs, code := run(t, "", as("submitter.shop.web", "_INBOX.t.shop.submitter-web", submit...)...); code != cli.ExitOK || !strings.Contains(out, "result: 7") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if code, log := stop(); code != cli.ExitOK {
		t.Errorf("exit code %d\n%s", code, log)
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
	testkit.Equal(t, "exit", <-ended, cli.ExitOK)
}

// What the bench and the demo do on a cluster with users and TLS is what their users may: the
// server's log has no violation. What a login cannot do is refused before the first task.
func TestBenchAndDemoOnASealedCluster(t *testing.T) {
	testkit.Slow(t, "runs the bench and the demo")
	dir := t.TempDir()
	files := testkit.NewCertificates(t, dir)
	render := []string{"auth", "render", "--out", dir, "--history-partitions", "2", "--matching-shards", "2", "--tls-server-cert", files.Cert, "--tls-server-key", files.Key}
	for _, u := range []string{"operator:demo", "admin:shop:demo", "admin:media:demo", "admin:payouts:demo", "admin:bench:ann"} {
		render = append(render, "--user", u)
	}
	if _, errs, code := run(t, "", render...); code != cli.ExitOK {
		t.Fatal(errs)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	testkit.NoError(t, err)
	defer log.Close()
	logged := func() string {
		text, err := os.ReadFile(log.Name())
		testkit.NoError(t, err)
		return string(text)
	}
	s, err := stack.Start(t.Context(), stack.Config{Auth: dir, Tables: stack.TablesMemory, Log: slog.New(slog.NewTextHandler(log, nil))})
	testkit.NoError(t, err)
	t.Cleanup(func() {
		testkit.Check(t, s.Close(context.Background()))
	})
	at := []string{"--url", s.URL, "--tls-ca", files.CA}
	as := func(user, inbox string) []string {
		return append(slices.Clone(at), "--nkey", filepath.Join(dir, "keys", user+".nk"), "--inbox-prefix", inbox)
	}
	ann, operator := as("admin.bench.ann", "_INBOX.t.bench.admin-ann"), as("operator.demo", "_INBOX.o.demo")
	bench := []string{"bench", "--tasks", "300", "--runs", "1", "--workload"}
	for what, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"a domain that is not there":  {slices.Concat(bench, []string{"W1"}, ann), cli.ExitFailed, "yard domain put bench"},
		"several domains":             {slices.Concat(bench, []string{"W1,W8"}, ann), cli.ExitFailed, "name some of [W1 W1s W2 W2s W3 W4 W5 W9 W12 W14]"},
		"an operator has no tasks":    {slices.Concat(bench, []string{"W1"}, operator), cli.ExitFailed, "an admin of the domain bench"},
		"a user of another domain":    {slices.Concat(bench, []string{"W1"}, as("admin.shop.demo", "_INBOX.t.shop.admin-demo")), cli.ExitFailed, "an admin of the domain bench"},
		"a key that is not there":     {slices.Concat(bench, []string{"W1"}, as("nobody", "_INBOX.t.bench.admin-ann")), cli.ExitFailed, "nkey_seed"},
		"the demo as one user":        {append([]string{"demo"}, ann...), cli.ExitUsage, "--auth"},
		"the demo without its folder": {append([]string{"demo", "--auth", t.TempDir()}, at...), cli.ExitFailed, "nkey_seed"},
		"the demo without a cluster":  {[]string{"demo", "--auth", dir}, cli.ExitUsage, "--url"},
	} {
		if out, errs, code := run(t, "", c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", what, code, out, errs)
		}
	}
	if _, errs, code := run(t, "", append([]string{"domain", "put", "bench", "--retention", "30m"}, operator...)...); code != cli.ExitOK {
		t.Fatal(errs)
	}
	out, errs, code := run(t, "", slices.Concat(bench, []string{"W1,W2,W3,W4,W5,W12"}, ann)...)
	if code != cli.ExitOK || strings.Count(errs, "; all 300 ") != 4 || !strings.Contains(out, "while 300 dead letters came back") || !strings.Contains(out, "partitions unknown") || !strings.Contains(errs, "does not see the log") {
		t.Errorf("bench: exit code %d\n%s%s\nthe log:\n%s", code, out, errs, logged())
	}
	out, errs, code = run(t, "", append([]string{"demo", "--auth", dir, "--duration", "3s", "--plain"}, at...)...)
	if code != cli.ExitOK || !strings.Contains(out, "ok     every accepted task has finished") || !strings.Contains(out, "--inbox-prefix _INBOX.t.shop.admin-demo") {
		t.Errorf("demo: exit code %d\n%s%s\nthe log:\n%s", code, out, errs, logged())
	}
	if said := logged(); strings.Contains(said, "Violation") {
		t.Errorf("the server refused:\n%s", said)
	}
}

// A server alone reads its users again when it is asked to: those that are new can log in.
func TestAServerReadsItsUsersAgain(t *testing.T) {
	dir := t.TempDir()
	render := func(users ...string) {
		t.Helper()
		args := []string{"auth", "render", "--out", dir, "--history-partitions", "2", "--matching-shards", "2"}
		for _, u := range users {
			args = append(args, "--user", u)
		}
		if _, errs, code := run(t, "", args...); code != cli.ExitOK {
			t.Fatal(errs)
		}
	}
	render()
	hello, _ := background(t, "server", "nats", "--data-dir", t.TempDir(), "--port", "0", "--sync", "2m", "--auth", filepath.Join(dir, "auth.conf"))
	render("operator:ann")
	status := []string{"upgrade", "status", "--url", hello["url"], "--nkey", filepath.Join(dir, "keys", "operator.ann.nk"), "--inbox-prefix", "_INBOX.o.ann"}
	if _, errs, _ := run(t, "", status...); !strings.Contains(errs, "Authorization Violation") {
		t.Errorf("before the signal: %s", errs)
	}
	testkit.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	testkit.Eventually(t, time.Minute, func() error {
		if _, errs, _ := run(t, "", status...); !strings.Contains(errs, "there is no cluster") {
			return errors.New(errs)
		}
		return nil
	})
}
