package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// fail takes a task of a tasklist, lets it fail, and returns its id.
func (s *session) fail(tasklist string) string {
	s.t.Helper()
	c, err := yard.Connect(s.url, "shop")
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	for range 100 {
		tasks, err := c.Wire().Poll(s.t.Context(), &yardv1.PollRequest{Tasklist: tasklist, MaxTasks: 1, WaitMs: 5000, Worker: "worker-1"})
		if err != nil || len(tasks) == 0 {
			continue
		}
		v, err := c.Wire().Fail(s.t.Context(), []*yardv1.Failure{{TaskId: tasks[0].TaskId, Token: tasks[0].Token, Message: "no route to host", ErrorType: "network"}})
		if err != nil || v[0].Code != "OK" {
			s.t.Fatal(v, err)
		}
		return tasks[0].TaskId
	}
	s.t.Fatal("no task came")
	return ""
}

func TestASessionWithDeadLetters(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
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
	s.do("dead", "get", id)
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
