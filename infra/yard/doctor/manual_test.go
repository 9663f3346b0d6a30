package doctor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/doctor"
)

// TestTheManualHasEachCode: the table of the manual is that of the code; UPDATE_DOCTOR=1 writes it.
func TestTheManualHasEachCode(t *testing.T) {
	const manual, begin, end = "../../docs/operations.md", "<!-- doctor -->\n", "<!-- /doctor -->"
	var b strings.Builder
	b.WriteString("| code | rule | means | to do | `--repair` |\n|---|---|---|---|---|\n")
	for _, k := range doctor.Kinds() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Code, k.Invariant, k.Means, strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(k.Do), k.Repair)
	}
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", manual)
	}
	if table == b.String() {
		return
	}
	if os.Getenv("UPDATE_DOCTOR") == "" {
		t.Fatalf("the table of %s is not that of the code: run UPDATE_DOCTOR=1 go test ./infra/yard/doctor -run %s", manual, t.Name())
	}
	if err := os.WriteFile(manual, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
