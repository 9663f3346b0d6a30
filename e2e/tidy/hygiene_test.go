package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// sleeps finds time.Sleep in real time. In a test it is a guess about another
// goroutine; in a program it does not end with its context. Test files that
// import testing/synctest, or call yardtest.FakeTime or inBubble, sleep in bubbles.
func sleeps(t *tree) []string {
	allowed := exceptionsOf(t, "sleeps")
	var findings []string
	for _, f := range t.code {
		bubbles := slices.ContainsFunc(f.imports, func(i imported) bool { return i.path == "testing/synctest" })
		var places []string
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.Ident); ok && call.Name == "inBubble" {
				bubbles = true
			}
			switch pkg, name, _ := f.selector(n); {
			case pkg == "time" && name == "Sleep":
				places = append(places, t.at(n))
			case strings.HasSuffix(pkg, "/yardtest") && name == "FakeTime":
				bubbles = true
			}
			return true
		})
		if len(places) > 0 && !(f.test && bubbles) {
			findings = append(findings, allowed.compare(f.path, len(places), 0,
				places[0]+": time.Sleep: wait for the condition (testkit.Eventually), use a bubble, or select on the context")...)
		}
	}
	return append(findings, allowed.rest()...)
}

// inboxes finds nats.NewInbox: it ignores the inbox prefix that a sealed cluster gives to a
// connection, and so its answers never come.
func inboxes(t *tree) []string {
	var findings []string
	for _, f := range t.code {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if pkg, name, ok := f.selector(n); ok && pkg == "github.com/nats-io/nats.go" && name == "NewInbox" {
				findings = append(findings, t.at(n)+": nats.NewInbox ignores the connection's inbox prefix: call NewInbox of the connection")
			}
			return true
		})
	}
	return findings
}

// The words are glued together, so that this file does not find itself.
var looseEnd = regexp.MustCompile(`\b(` + "TO" + "DO" + `|` + "FIX" + "ME" + `|` + "XX" + "X" + `|` + "HA" + "CK" + `)\b`)

// looseEnds finds promises to come back. What is to be done is an issue.
func looseEnds(t *tree) []string {
	var findings []string
	for _, p := range t.paths {
		n := 0
		for line := range strings.Lines(t.text[p]) {
			n++
			if word := looseEnd.FindString(line); word != "" {
				findings = append(findings, fmt.Sprintf("%s:%d: %s: do it, or open an issue", p, n, word))
			}
		}
	}
	return findings
}
