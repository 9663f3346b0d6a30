package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithUpdates(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	id := strings.TrimSpace(s.do("task", "submit", "report", "-t", "reports", "--delay", "1h"))
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"state":"waiting"`) }, "task", "get", id)
	s.do("task", "update", id, "--priority", "1", "--group", "acme", "--header", "order=7", "--payload", `{"month":11}`, "--max-attempts", "9", "--if-revision", "1")
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"revision":2`) }, "task", "get", id)
	s.do("task", "update", id, "--priority", "2", "--if-revision", "1")
	s.do("--json", "task", "update", id, "--priority", "9")
	s.do("task", "update", id)
	s.do("task", "update", id, "--payload", "x")
	s.do("task", "run-now", id)
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"state":"ready"`) }, "task", "get", id)
	s.do("task", "get", id)
	s.do("task", "cancel", id)
	s.do("--json", "task", "run-now", id)
	testkit.Golden(t, filepath.Join("testdata", "updates.txt"), []byte(steady(s.text.String())))
}
