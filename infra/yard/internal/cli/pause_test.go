package cli_test

import (
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithPauses(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("tasklist", "resume", "mail")
	s.do("tasklist", "pause", "mail", "--reason", "the partner's API is down", "--by", "ann", "--for", "1h")
	s.do("tasklist", "get", "mail")
	s.do("--json", "tasklist", "get", "mail")
	s.do("tasklist", "put", "mail", "--priority", "2")
	s.do("tasklist", "pause", "bulk", "--by", "")
	s.do("tasklist", "list")
	s.do("--json", "tasklist", "list")
	s.do("type", "pause", "pay", "--by", "bob", "--reason", "wrong amounts")
	s.do("--json", "type", "pause", "pay", "--by", "bob", "--for", "2h")
	s.do("type", "pause", "pay", "--for", "10ms", "--by", "bob")
	s.do("type", "get", "pay")
	s.do("--json", "type", "get", "pay")
	s.do("tasklist", "describe", "mail")
	s.do("--json", "tasklist", "describe", "bulk")
	s.do("tasklist", "resume", "mail")
	s.do("--json", "tasklist", "resume", "bulk")
	s.do("type", "resume", "pay")
	s.do("type", "resume", "pay")
	s.do("tasklist", "get", "mail")
	testkit.Golden(t, filepath.Join("testdata", "pauses.txt"), []byte(steady(s.text.String())))

	if u, err := user.Current(); err == nil {
		if out := s.do("--json", "tasklist", "pause", "mail"); !strings.Contains(out, `"by":"`+u.Username+`"`) {
			t.Errorf("paused by somebody else than %s: %s", u.Username, out)
		}
	}
}

func TestASessionWithDrains(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("tasklist", "drain", "mail", "--reason", "it moves", "--by", "ann", "--for", "1h")
	s.do("task", "submit", "email.send", "{}", "--tasklist", "mail")
	s.do("tasklist", "get", "mail")
	s.do("--json", "tasklist", "get", "mail")
	s.do("tasklist", "list")
	s.do("type", "drain", "pay", "--by", "bob")
	s.do("task", "submit", "pay", "{}", "--tasklist", "bulk")
	s.do("type", "get", "pay")
	s.do("tasklist", "describe", "mail")
	s.do("tasklist", "resume", "mail")
	s.do("tasklist", "resume", "mail", "--drain")
	s.do("--json", "type", "resume", "pay", "--drain")
	s.do("type", "resume", "pay", "--drain")
	testkit.Golden(t, filepath.Join("testdata", "drains.txt"), []byte(steady(s.text.String())))
}

func TestASessionWithStoppedGroups(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("group", "pause", "acme", "--reason", "it complains", "--by", "ann", "--for", "1h")
	s.do("group", "put", "trial", "--weight", "2")
	s.do("--json", "group", "drain", "trial", "--by", "bob")
	s.do("task", "submit", "email.send", "{}", "--tasklist", "mail", "--group", "trial")
	s.do("group", "get", "acme")
	s.do("--json", "group", "get", "trial")
	s.do("group", "list")
	s.do("--json", "group", "list")
	s.do("tasklist", "describe", "mail")
	s.do("group", "resume", "acme")
	s.do("group", "resume", "acme")
	s.do("group", "resume", "trial", "--drain")
	s.do("group", "pause", "a..b")
	testkit.Golden(t, filepath.Join("testdata", "stoppedgroups.txt"), []byte(steady(s.text.String())))
}

func TestASessionWithPurgesOfGroups(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	for _, g := range []string{"acme", "acme", "other", ""} {
		s.do("task", "submit", "email.send", "{}", "--tasklist", "mail", "--delay", "1h", "--group", g)
	}
	untilSaid(t, system.URL, func(out string) bool { return strings.Count(out, `"task_id"`) == 4 }, "task", "list", "--state", "waiting")
	if out := s.do("--json", "task", "list", "--group", "other"); strings.Count(out, `"task_id"`) != 1 {
		t.Error(out)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{`"found":1`, []string{"tasklist", "purge", "mail", "--group", "other"}},
		{`"found":2`, []string{"type", "purge", "email.send", "--group", "acme"}},
		{`"cancelled":2`, []string{"group", "purge", "acme", "--yes", "--tasklist", "mail", "--type", "email.send"}},
		{`"found":2`, []string{"tasklist", "purge", "mail"}},
	} {
		if out := s.do(append([]string{"--json"}, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("%v: %s, want %s", c.args, out, c.want)
		}
	}
}

func TestASessionWithPurges(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("task", "submit", "email.send", "{}", "--tasklist", "mail", "--delay", "1h")
	s.do("task", "submit", "email.send", "{}", "--tasklist", "bulk", "--delay", "1h")
	untilSaid(t, system.URL, func(out string) bool { return strings.Count(out, `"task_id"`) == 2 }, "task", "list", "--state", "waiting")
	s.do("tasklist", "purge", "mail")
	s.do("tasklist", "purge", "mail", "--yes", "--older-than", "1h")
	s.do("--json", "tasklist", "purge", "mail", "--yes", "--state", "waiting", "--reason", "sent twice", "--by", "ann", "--rate", "1000")
	s.do("tasklist", "purge", "mail", "--yes", "--type", "email.send")
	s.do("type", "purge", "email.send", "--yes", "--tasklist", "mail")
	s.do("type", "purge", "email.send", "--yes", "--by", "ann")
	s.do("tasklist", "purge", "mail", "--rate", "0")
	s.do("tasklist", "purge", "mail", "--state", "happy")
	s.do("tasklist", "purge", "mail", "--state", "completed")
	testkit.Golden(t, filepath.Join("testdata", "purges.txt"), []byte(steady(s.text.String())))
}

func TestASessionWithAPeek(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("task", "submit", "email.send", "{}", "--tasklist", "mail")
	untilSaid(t, system.URL, func(out string) bool { return strings.Count(out, `"task_id"`) == 1 }, "task", "list", "--state", "ready")
	if out := s.do("tasklist", "peek", "mail"); strings.Count(out, "email.send") != 1 || strings.Contains(out, "more") {
		t.Error(out)
	}
	if out := s.do("--json", "tasklist", "peek", "mail", "--type", "email.send"); !strings.Contains(out, `"state":"ready"`) {
		t.Error(out)
	}
	if out := s.do("--json", "tasklist", "peek", "mail", "--group", "acme"); strings.Contains(out, `"state"`) {
		t.Error(out)
	}
	if out := s.do("tasklist", "peek", "bulk", "--limit", "5"); strings.Contains(out, "\n") {
		t.Error(out)
	}
	s.do("tasklist", "peek", "mail", "--limit", "101")
	if text := s.text.String(); !strings.Contains(text, "INVALID_ARGUMENT: /limit") {
		t.Error(text)
	}
}
