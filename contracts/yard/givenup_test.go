package yard

import (
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// The last 16 inboxes of a tasklist are named until a poll that named them is answered.
func TestInboxesThatWereGivenUpAreNamedUntilTheEngineKnows(t *testing.T) {
	g := &givenUp{inboxes: map[string][]string{}}
	g.forget("mail", nil)
	for n := range givenUpMax + 1 {
		g.add("mail", fmt.Sprint(n))
	}
	g.add("other", "x")
	named := g.of("mail")
	if len(named) != givenUpMax || named[0] != "1" || named[givenUpMax-1] != "16" {
		t.Fatalf("named are %q", named)
	}
	g.add("mail", "late")
	g.forget("mail", named)
	checktest.Equal(t, "left", g.of("mail"), []string{"late"})
	g.forget("mail", []string{"late"})
	if got := g.of("other"); len(g.inboxes) != 1 || !slices.Equal(got, []string{"x"}) {
		t.Errorf("left are %v", g.inboxes)
	}
}
