package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithPolicies(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("type", "put", "pay", "--non-retryable", "stolen,closed", "--by-error", "busy:max-attempts=20,initial-interval=1m", "--jitter", "full",
		"--max-deliveries", "9", "--on-lost", "dead", "--on-timeout", "dead")
	s.do("type", "put", "pay", "--non-retryable", "", "--by-error", "", "--jitter", "none", "--on-lost", "")
	s.do("--json", "type", "get", "pay")
	s.do("type", "put", "pay", "--jitter", "some")
	s.do("type", "put", "pay", "--by-error", "busy:attempts=3")
	s.do("task", "submit", "pay", "-t", "money", "--max-deliveries", "-1")

	s.do("task", "submit", "pay", "-t", "money", "--non-retryable", "gone")
	client, err := yard.Connect(system.URL, "shop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	got, err := client.Wire().Poll(t.Context(), &yardv1.PollRequest{Tasklist: "money", MaxTasks: 1, WaitMs: within.Milliseconds() / 2})
	if err != nil || len(got) != 1 {
		t.Fatalf("%v %v", got, err)
	}
	if _, err := client.Wire().Fail(t.Context(), []*yardv1.Failure{{TaskId: got[0].TaskId, Token: got[0].Token, ErrorType: "gone"}}); err != nil {
		t.Fatal(err)
	}
	s.do("task", "get", got[0].TaskId)
	testkit.Golden(t, filepath.Join("testdata", "policies.txt"), []byte(steady(s.text.String())))
}
