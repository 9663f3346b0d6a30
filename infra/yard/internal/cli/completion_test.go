package cli_test

import (
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
)

func TestCompletion(t *testing.T) {
	configDir(t)
	system := startStack(t)
	ok(t, "context", "put", "here", "--url", system.URL, "-d", "shop", "--use")
	ok(t, "context", "put", "there", "--url", system.URL)
	for _, name := range []string{"shop", "media"} {
		ok(t, "domain", "put", name)
	}
	ok(t, "type", "put", "email.send", "--max-attempts", "2")
	id := strings.TrimSpace(ok(t, "task", "submit", "email.read", "-t", "mail", "--delay", "1h"))
	ok(t, "task", "submit", "email.read", "-t", "mails", "--delay", "1h")
	untilSaid(t, system.URL, func(out string) bool { return strings.Count(out, `"task_id"`) == 2 }, "task", "list", "--state", "waiting")
	ok(t, "tasklist", "put", "bulk", "-p", "5")
	ok(t, "limit", "put", "acme", "--max-concurrency", "5")
	ok(t, "limit", "put", "mailer", "--max-concurrency", "5")
	for _, c := range []struct {
		words string // the last one is completed
		want  string
	}{
		{"task list --tasklist m", "mail mails"},
		{"worker -t ", "bulk mail mails"},
		{"task list --type ", "email.read"},
		{"task list --state w", "waiting"},
		{"tasklist describe mails", "mails"},
		{"tasklist put ", "bulk mail mails"},
		{"tasklist get ", "bulk"},
		{"worker -t mail -t b", "bulk"},
		{"task get " + id[:len(id)-1], id},
		{"task list -d ", "media shop"},
		{"domain get s", "shop"},
		{"domain get shop ", ""},
		{"type get ", "email.send"},
		{"limit get a", "acme"},
		{"limit put ", "acme mailer"},
		{"type put email.send --shared-limit acme --shared-limit m", "mailer"},
		{"task list --limit ", ""},
		{"context use t", "there"},
		{"--output w", "wide"},
		{"task list -d absent -t ", ""},
		{"task list --context absent -t ", ""},
		{"context de", "delete"},
	} {
		out, errs, code := run(t, "", append([]string{"__completeNoDesc"}, strings.Split(c.words, " ")...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if got := strings.Join(lines[:len(lines)-1], " "); code != cli.ExitOK || got != c.want {
			t.Errorf("%q: exit code %d, got %q, want %q\n%s", c.words, code, got, c.want, errs)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := ok(t, "completion", shell); !strings.Contains(out, "__complete") {
			t.Errorf("%s: %.200s", shell, out)
		}
	}
}
