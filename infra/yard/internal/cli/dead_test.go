package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithDeadLetters(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	for range 2 {
		s.do("task", "submit", "report", `{"month":11}`, "-t", "reports", "--max-attempts", "1")
	}
	id := s.fail("reports")
	s.fail("reports")
	untilSaid(t, system.URL, func(out string) bool { return strings.Count(out, `"task_id"`) == 2 }, "dead", "list")
	s.do("dead", "list")
	s.do("dead", "count")
	s.do("dead", "show", id)
	s.do("dead", "redrive")
	s.do("dead", "redrive", id, "--type", "report")
	s.do("dead", "redrive", "--error-type", "network")
	s.do("dead", "redrive", id, "--yes", "--max-attempts", "2", "--by", "ann", "--reason", "it is up")
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"state":"ready"`) }, "task", "get", id)
	s.do("task", "get", id)
	s.do("--json", "dead", "list", "--type", "other")
	s.do("dead", "purge", "--all")
	s.do("dead", "purge", "--all", "--yes")
	s.do("dead", "count")
	testkit.Golden(t, filepath.Join("testdata", "dead.txt"), []byte(steady(s.text.String())))
}
