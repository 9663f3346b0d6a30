package permissions_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
	"github.com/yardmaster-io/yardmaster/contracts/permissions"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

const (
	listBegin = "<!-- roles -->\n"
	listEnd   = "<!-- /roles -->"
)

// summary are the subjects of a list, those of the JetStream API by endpoint.
func summary(subjects []string) string {
	const api = "$JS.API."
	calls := map[string][]string{}
	var all []string
	for _, s := range subjects {
		rest, ok := strings.CutPrefix(s, api)
		if !ok {
			all = append(all, "`"+s+"`")
			continue
		}
		at := max(strings.Index(rest, ".YARD_"), strings.Index(rest, ".KV_"))
		if at < 0 { // of no stream
			all = append(all, "`"+s+"`")
			continue
		}
		endpoint, stream := rest[:at], rest[at+1:]
		stream, _, _ = strings.Cut(stream, ".")
		if !slices.Contains(calls[endpoint], stream) {
			calls[endpoint] = append(calls[endpoint], stream)
		}
	}
	endpoints := make([]string, 0, len(calls))
	for e := range calls {
		endpoints = append(endpoints, e)
	}
	slices.Sort(endpoints)
	for _, e := range endpoints {
		all = append(all, fmt.Sprintf("`$JS` %s (%s)", e, strings.Join(calls[e], ", ")))
	}
	return strings.Join(all, ", ")
}

// item is a line of a list below another one, in lines of at most 120 characters.
func item(text string) string {
	var b strings.Builder
	b.WriteString("  -")
	column := 3
	for _, word := range strings.Fields(text) {
		if column+1+len(word) > 120 {
			b.WriteString("\n   ")
			column = 3
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	return b.String() + "\n"
}

func TestTheListInTheREADME(t *testing.T) {
	var b strings.Builder
	for _, who := range everybody {
		u, err := permissions.ParseUser(who)
		checktest.NoError(t, err)
		p, err := permissions.Of(u, topology.Partitioning{History: 1, Matching: 1})
		checktest.NoError(t, err)
		fmt.Fprintf(&b, "- **%s**\n%s%s", who, item("publishes: "+summary(p.Publish)), item("subscribes: "+summary(p.Subscribe)))
	}
	readme, err := os.ReadFile("README.md")
	checktest.NoError(t, err)
	before, rest, _ := strings.Cut(string(readme), listBegin)
	list, after, ok := strings.Cut(rest, listEnd)
	if !ok {
		t.Fatal("the README has no list")
	}
	if list == b.String() {
		return
	}
	if os.Getenv("UPDATE_ROLES") != "1" {
		t.Fatal("the README's list differs from the code: run this test with UPDATE_ROLES=1")
	}
	checktest.NoError(t, os.WriteFile("README.md", []byte(before+listBegin+b.String()+listEnd+after), 0o600))
}
