package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithUniqueKeys(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	submit := []string{"task", "submit", "mail", "-t", "mails", "--delay", "1h", "--unique-key", "order-7", "--unique-for", "24h"}
	id := strings.TrimSpace(s.do(submit...))
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"state":"waiting"`) }, "task", "get", id)
	s.do(append([]string{"--json"}, submit...)...)
	s.do(append(submit, "--reject")...)
	s.do(append(submit, "--reject", "--replace")...)
	s.do(append([]string{"--json"}, append(submit, "--replace", "--header", "why=new")...)...)
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, "replaced by") }, "task", "get", id)
	s.do("task", "get", id)
	s.do("task", "submit", "mail", "-t", "mails", "--unique-for", "1h")
	s.do("task", "submit", "mail", "-t", "mails", "--unique-key", "x", "--count", "2")
	s.feed(`{"type":"mail","unique_key":"order-7","on_conflict":"reject"}`, "task", "submit", "-t", "mails", "--file", "-")
	s.feed(`{"type":"mail","unique_key":"order-7","on_conflict":"newest"}`, "task", "submit", "-t", "mails", "--file", "-")
	testkit.Golden(t, filepath.Join("testdata", "unique.txt"), []byte(steady(s.text.String())))
}
