package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/cli"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// liveOnes are the ids of the workers that are listed, by name, and their lines.
func (s *shell) liveOnes() (ids, states map[string]string) {
	s.t.Helper()
	var all struct {
		Workers []struct {
			WorkerID string `json:"worker_id"`
			Worker   string
			Drain    json.RawMessage
		}
	}
	testkit.NoError(s.t, json.Unmarshal([]byte(s.yard("--json", "worker", "list")), &all))
	ids, states = map[string]string{}, map[string]string{}
	for _, w := range all.Workers {
		ids[w.Worker], states[w.Worker] = w.WorkerID, string(w.Drain)
	}
	return ids, states
}

// Workers are drained, resumed and stopped by name, by id and by the beginning of one. A stopped worker of the command ends well.
func TestWorkersAreDrainedAndStopped(t *testing.T) {
	s := newShell(t)
	s.work("--exec", "cat", "--identity", "one")
	two := s.work("--exec", "cat", "--identity", "two")
	s.work("--exec", "cat", "--identity", "twins", "--type", "a")
	s.work("--exec", "cat", "--identity", "twins", "--type", "b")
	untilSaid(t, s.url, func(out string) bool {
		return strings.Count(out, "worker_id") == 4 && strings.Contains(out, `"one"`) && strings.Contains(out, `"two"`)
	}, "worker", "list")
	ids, _ := s.liveOnes()
	if out := s.yard("worker", "drain", "one", ids["one"], "--reason", "its disk fails", "--by", "ann"); strings.Count(out, "drained") != 1 || strings.Count(out, "\n") > 2 {
		t.Errorf("it says\n%s", out)
	}
	if out := s.yard("-o", "wide", "worker", "list"); !strings.Contains(out, "its disk fails") || !strings.Contains(out, " ann ") {
		t.Errorf("they are\n%s", out)
	}
	id := s.yard("task", "submit", "nap", `"x"`, "-t", "mail")
	s.await(id, func(t task) bool { return t.State == "completed" })
	if out := s.yard("--json", "worker", "resume", ids["one"][:8]); !strings.Contains(out, `"reason":"its disk fails"`) {
		t.Errorf("it says %s", out)
	}
	if _, drains := s.liveOnes(); drains["one"] != "" {
		t.Errorf("it is drained still: %s", drains["one"])
	}
	s.yard("worker", "stop", "two", "--reason", "over", "--by", "ann")
	untilSaid(t, s.url, func(out string) bool { return strings.Count(out, "worker_id") == 3 }, "worker", "list")
	if code, log := two(); code != 0 || !strings.Contains(log, "the worker was stopped by an operator, ann: over") {
		t.Errorf("it ended with %d:\n%s", code, log)
	}
	for name, want := range map[string]int{"twins": cli.ExitUsage, "no!": 1} {
		if _, errs, code := run(t, "", "--url", s.url, "-d", "shop", "worker", "drain", name); code != want && (want == cli.ExitUsage || code == 0) {
			t.Errorf("%s: %d, %s", name, code, errs)
		}
	}
}
