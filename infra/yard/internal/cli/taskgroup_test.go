package cli_test

import (
	"path/filepath"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestASessionWithGroups(t *testing.T) {
	system := startStack(t)
	s := &session{t: t, url: system.URL}
	s.do("domain", "put", "shop")
	s.do("group", "list")
	s.do("group", "get", "acme")
	s.do("group", "put", "acme", "--weight", "4", "--description", "the large plan")
	s.do("group", "put", "acme", "--description", "the largest plan")
	s.do("group", "put", "trial", "--weight", "0")
	s.do("group", "put", "plain")
	s.do("group", "put", "acme", "--weight", "1000")
	s.do("group", "get", "acme")
	s.do("--json", "group", "get", "trial")
	s.do("--json", "group", "list")
	s.do("task", "submit", "mail.send", "-t", "mail", "--group", "acme corp")
	s.do("group", "delete", "plain")
	s.do("group", "delete", "plain")
	s.do("group", "list")
	testkit.Golden(t, filepath.Join("testdata", "groups.txt"), []byte(steady(s.text.String())))
}
