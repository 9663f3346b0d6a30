package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithCosts(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("type", "put", "report", "--rate", "100/s burst 20", "--cost", "5")
	s.do("type", "put", "report", "--heartbeat", "5s")
	s.do("--json", "type", "get", "report")
	s.do("type", "put", "report", "--cost", "1001")
	s.do("task", "submit", "report", "-t", "reports", "--cost", "1001")
	s.do("task", "submit", "--file", "-", "--cost", "3")
	id := strings.TrimSpace(s.do("task", "submit", "report", "-t", "reports", "--cost", "9", "--delay", "1h"))
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"state":"waiting"`) }, "task", "get", id)
	s.do("task", "get", id)
	id = strings.TrimSpace(s.feed(`{"type":"report","cost":2,"delay_ms":3600000}`, "task", "submit", "-t", "reports", "--file", "-"))
	untilSaid(t, system.URL, func(out string) bool {
		return strings.Contains(out, `"state":"waiting"`) && strings.Contains(out, `"cost":2`)
	}, "task", "get", id)
	testkit.Golden(t, filepath.Join("testdata", "costs.txt"), []byte(steady(s.text.String())))
}
