package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithLimits(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop", "--max-concurrency", "6")
	s.do("--json", "domain", "get", "shop")
	s.do("tasklist", "put", "mail", "--max-concurrency", "5")
	s.do("--json", "tasklist", "list")
	s.do("limit", "list")
	s.do("limit", "put", "acme")
	s.do("limit", "put", "acme", "--max-concurrency", "9", "--description", "what their API takes")
	s.do("limit", "put", "acme", "--max-concurrency", "4")
	s.do("limit", "put", "other", "--max-concurrency", "2")
	s.do("limit", "put", "slow", "--rate", "5/10m burst 2")
	s.do("limit", "put", "slow", "--rate", "5")
	s.do("limit", "get", "slow")
	s.do("--json", "limit", "get", "slow")
	s.do("limit", "delete", "slow")
	s.do("domain", "put", "shop", "--rate", "1000/s")
	s.do("--output", "wide", "domain", "list")
	s.do("domain", "put", "shop", "--rate", "0")
	s.do("tasklist", "put", "mail", "--rate", "100/s burst 10")
	s.do("--output", "wide", "tasklist", "list")
	s.do("tasklist", "put", "mail", "--rate", "0")
	s.do("type", "put", "slowly", "--rate", "1/m")
	s.do("type", "get", "slowly")
	s.do("type", "delete", "slowly")
	s.do("type", "put", "stuck", "--limit", "acme", "--limit", "nothing")
	s.do("type", "put", "stuck", "--limit", "acme", "--limit", "other", "--max-concurrency", "3")
	s.do("--json", "type", "list")
	s.do("limit", "delete", "acme")

	client, err := yard.Connect(system.URL, "shop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.do("task", "submit", "stuck", `"ann"`, "-t", "mail")
	attempts, err := client.Wire().Poll(t.Context(), &yardv1.PollRequest{Tasklist: "mail", MaxTasks: 1, WaitMs: within.Milliseconds() / 2})
	if err != nil || len(attempts) != 1 {
		t.Fatalf("%v %v", attempts, err)
	}
	untilSaid(t, system.URL, func(out string) bool {
		return strings.Count(out, `"in_use":1,`) == 5 && strings.Contains(out, `"running":1`)
	}, "tasklist", "describe", "mail")
	s.do("tasklist", "describe", "mail")
	s.do("limit", "get", "acme")
	s.do("--json", "limit", "get", "other")

	s.do("type", "put", "stuck", "--limit", "other")
	s.do("type", "put", "stuck", "--limit", "")
	s.do("--json", "limit", "list")
	s.do("limit", "delete", "acme")
	s.do("limit", "delete", "acme")
	s.do("limit", "get", "acme")

	testkit.Golden(t, filepath.Join("testdata", "limits.txt"), []byte(steady(s.text.String())))
}
