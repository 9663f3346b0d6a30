package doctor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// escaped is text whose placeholders are not taken for HTML; within backquotes they never are.
func escaped(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

// wrapped is text in lines of at most 120 characters, each but the first with the indent of an item of a list.
func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > 120:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}

// TestTheManualHasEachCode: the list of the manual is that of the code; UPDATE_DOCTOR=1 writes it.
func TestTheManualHasEachCode(t *testing.T) {
	const manual, begin, end = "../../docs/operations.md", "<!-- doctor -->\n", "<!-- /doctor -->"
	var b strings.Builder
	for _, k := range doctor.Kinds() {
		rule, repair := "", ""
		if k.Invariant != "" {
			rule = " (" + k.Invariant + ")"
		}
		if k.Repair != "" {
			repair = " `--repair` " + k.Repair + "."
		}
		b.WriteString(wrapped(fmt.Sprintf("- `%s`%s: %s. **Do:** %s.%s", k.Code, rule, k.Means, escaped(k.Do), repair)))
	}
	text, err := os.ReadFile(manual)
	testkit.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	list, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the list", manual)
	}
	if list == b.String() {
		return
	}
	if os.Getenv("UPDATE_DOCTOR") == "" {
		t.Fatalf("the list of %s is not that of the code: run UPDATE_DOCTOR=1 go test ./infra/yard/doctor -run %s", manual, t.Name())
	}
	testkit.NoError(t, os.WriteFile(manual, []byte(before+begin+b.String()+end+after), 0o644))
}
