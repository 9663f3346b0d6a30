package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// configDir gives the test a folder of its own for contexts.
func configDir(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the folder for configuration is set by XDG_CONFIG_HOME on Linux only")
	}
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	return dir
}

// ok runs a command that must succeed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := run(t, "", args...)
	if code != cli.ExitOK {
		t.Fatalf("yard %v: exit code %d\n%s%s", args, code, out, errs)
	}
	return out
}

func TestContextSession(t *testing.T) {
	dir := configDir(t)
	golden, err := filepath.Abs(filepath.Join("testdata", "context.txt"))
	testkit.NoError(t, err)
	t.Chdir(t.TempDir())
	testkit.NoError(t, os.WriteFile("ann.nk", []byte("SEED-OF-ANN"), 0o600))
	here, err := os.Getwd()
	testkit.NoError(t, err)
	var text strings.Builder
	do := func(args ...string) {
		out, errs, code := run(t, "", args...)
		text.WriteString("$ yard " + strings.Join(args, " ") + "\n" + out + errs)
		if code != cli.ExitOK {
			text.WriteString("[exit code " + string(rune('0'+code)) + "]\n")
		}
		text.WriteString("\n")
	}
	do("context", "list")
	do("context", "get")
	do("context", "put", "local")
	do("context", "put", "a b", "--domain", "shop")
	do("context", "put", "local", "--url", "nats://127.0.0.1:4222", "-d", "shop", "--use")
	do("context", "put", "local", "--url", "nats://127.0.0.1:5222")
	do("context", "put", "prod", "--url", "nats://ann:secret@h:4222")
	do("context", "put", "prod", "--url", "tls://h:4222", "--nkey", "nobody.nk")
	do("context", "put", "prod", "--url", "tls://h:4222", "--nkey", "ann.nk", "--inbox-prefix", "_INBOX.t.shop.admin-ann")
	do("context", "list")
	if out := ok(t, "context", "list", "--output", "wide"); !strings.Contains(out, "INBOX PREFIX") || !strings.Contains(out, filepath.Join(here, "ann.nk")) {
		t.Errorf("%s", out)
	}
	do("context", "use", "prod")
	do("context", "get")
	do("context", "get", "local", "--json")
	do("context", "use", "--none")
	do("context", "use", "test")
	do("task", "list", "--context", "test")
	do("context", "put", "local", "-d", "media", "--use")
	do("context", "delete", "local")
	do("context", "list", "--json")
	testkit.Golden(t, golden, []byte(strings.ReplaceAll(text.String(), here, "<here>")))

	file := filepath.Join(dir, "yard", "contexts.json")
	info, err := os.Stat(file)
	testkit.NoError(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file has mode %o", mode)
	}
	stored, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(stored), "SEED") {
		t.Errorf("%v: %s", err, stored)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "yard", ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Changes at the same moment follow one another.
func TestNoContextIsLost(t *testing.T) {
	configDir(t)
	const n = 20
	var all sync.WaitGroup
	for i := range n {
		name := fmt.Sprint("c", i)
		all.Go(func() {
			if _, errs, code := run(t, "", "context", "put", name, "-d", "shop"); code != cli.ExitOK {
				t.Errorf("add %s: exit code %d: %s", name, code, errs)
			}
			if i%2 == 0 {
				return
			}
			if _, errs, code := run(t, "", "context", "delete", name); code != cli.ExitOK {
				t.Errorf("remove %s: exit code %d: %s", name, code, errs)
			}
		})
	}
	all.Wait()
	var book struct{ Contexts map[string]any }
	testkit.NoError(t, json.Unmarshal([]byte(ok(t, "context", "list", "--json")), &book))
	for i := range n {
		if _, there := book.Contexts[fmt.Sprint("c", i)]; there != (i%2 == 0) {
			t.Errorf("context c%d is there: %v", i, there)
		}
	}
}

// TestWhoWins: a flag, then a context that is named, then the environment, then the context in use.
func TestWhoWins(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	configDir(t)
	here, there := startStack(t), startStack(t)
	ok(t, "--url", here.URL, "domain", "put", "here")
	ok(t, "--url", there.URL, "domain", "put", "there")
	ok(t, "context", "put", "here", "--url", here.URL, "-d", "here", "--use")
	ok(t, "context", "put", "there", "--url", there.URL)
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		want string
	}{
		{"in use", nil, nil, "here"},
		{"a flag", nil, []string{"--url", there.URL}, "there"},
		{"named", nil, []string{"--context", "there"}, "there"},
		{"named by the environment", map[string]string{"YARD_CONTEXT": "there"}, nil, "there"},
		{"the environment", map[string]string{"NATS_URL": there.URL}, nil, "there"},
		{"the environment against a named one", map[string]string{"NATS_URL": there.URL, "NATS_CREDS": "/nowhere"}, []string{"--context", "here"}, "here"},
		{"a flag against a named one", nil, []string{"--context", "here", "--url", there.URL}, "there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			var list struct{ Domains []struct{ Name string } }
			testkit.NoError(t, json.Unmarshal([]byte(ok(t, append(c.args, "domain", "list", "--json")...)), &list))
			if len(list.Domains) != 1 || list.Domains[0].Name != c.want {
				t.Errorf("it went to %v, want %s", list.Domains, c.want)
			}
		})
	}
	// The domain is of the context, unless something else names it.
	ok(t, "task", "submit", "x", "-t", "mail")
	if _, errs, code := run(t, "", "task", "list", "-d", "other"); code != cli.ExitFailed || !strings.Contains(errs, `no domain "other"`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	t.Setenv("YARD_DOMAIN", "third")
	if _, errs, code := run(t, "", "task", "list"); code != cli.ExitFailed || !strings.Contains(errs, `no domain "third"`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	// A context is whole: what it does not say is the default, not the environment's.
	if _, errs, code := run(t, "", "task", "list", "--context", "there"); code != cli.ExitFailed || !strings.Contains(errs, `no domain "default"`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A book that cannot be read stops what would need it, and nothing else.
func TestABrokenBookOfContexts(t *testing.T) {
	dir := configDir(t)
	testkit.NoError(t, os.MkdirAll(filepath.Join(dir, "yard"), 0o700))
	testkit.NoError(t, os.WriteFile(filepath.Join(dir, "yard", "contexts.json"), []byte("{"), 0o600))
	ok(t, "version")
	ok(t, "task")
	if _, errs, code := run(t, "", "task", "list"); code != cli.ExitFailed || !strings.Contains(errs, "repair or remove the file") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
