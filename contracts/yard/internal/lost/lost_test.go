package lost

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// The last 16 inboxes of a tasklist are named until a poll that named them is answered, and for 10 s after.
func TestInboxesAreNamedUntilTheEngineKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New()
		x.Answered("mail", nil)
		for n := range Max + 1 {
			x.Add("mail", fmt.Sprint(n))
		}
		x.Add("other", "x")
		named := x.Names("mail")
		if len(named) != Max || named[0] != "1" || named[Max-1] != "16" {
			t.Fatalf("named are %q", named)
		}
		time.Sleep(time.Hour)
		checktest.Equal(t, "named without an answer", len(x.Names("mail")), Max)
		x.Answered("mail", named)
		x.Add("mail", "late")
		time.Sleep(namedFor - time.Nanosecond)
		x.Answered("mail", x.Names("mail")) // the others are not named for longer
		checktest.Equal(t, "named", len(x.Names("mail")), Max)
		time.Sleep(time.Nanosecond)
		checktest.Equal(t, "left", x.Names("mail"), []string{"late"})
		time.Sleep(namedFor)
		if got := x.Names("other"); x.Names("mail") != nil || len(x.all) != 1 || !slices.Equal(got, []string{"x"}) {
			t.Errorf("left are %v", x.all)
		}
	})
}
