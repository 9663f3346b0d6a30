package cli_test

import (
	"strings"
	"testing"
)

func TestASessionWithAPeek(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	if out := s.do("--json", "tasklist", "pause", "bulk"); !strings.Contains(out, `"by":"tester"`) {
		t.Errorf("paused by another user: %s", out)
	}
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
