package cli_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithOrderKeys(t *testing.T) {
	testkit.Slow(t, "takes a system of its own through many commands")
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	first := strings.TrimSpace(s.do("task", "submit", "mail", "-t", "mails", "--order-key", "account-7", "--block"))
	second := strings.TrimSpace(s.feed(`{"type":"mail","order_key":"account-7","order_policy":"block"}`, "task", "submit", "-t", "mails", "--file", "-"))
	for _, id := range []string{first, second} {
		untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, `"state":"ready"`) }, "task", "get", id)
	}
	s.do("task", "get", second)
	s.do("task", "list", "--order-key", "account-8")
	s.do("task", "list", "--blocked")
	s.do("task", "submit", "mail", "-t", "mails", "--block")
	s.feed(`{"type":"mail","order_key":"a","order_policy":"stop"}`, "task", "submit", "-t", "mails", "--file", "-")
	untilSaid(t, system.URL, func(out string) bool { return !strings.Contains(out, "awaits_turn") }, "task", "get", first)
	s.do("keys", "list")
	s.do("keys", "unblock", "account-7")
	s.do("keys", "skip", "account-7", "--task", second)
	s.do("keys", "skip", "account-7", "--by", "ann", "--reason", "closed")
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, second) }, "keys", "get", "account-7")
	untilSaid(t, system.URL, func(out string) bool { return strings.Contains(out, first) }, "dead", "list")
	s.do("keys", "list", "--waiting")
	s.do("--json", "keys", "get", "account-8")
	s.do("dead", "list")
	testkit.Golden(t, filepath.Join("testdata", "orderkeys.txt"), []byte(steady(s.text.String())))
}
