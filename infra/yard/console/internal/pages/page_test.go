package pages

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestAUserHasSoManyPagesOpen, and leaves room for others.
func TestAUserHasSoManyPagesOpen(t *testing.T) {
	p := &Pages{open: map[string]int{}}
	for range openMax {
		testkit.Equal(t, "room", p.enter("ann"), true)
	}
	testkit.Equal(t, "one more", p.enter("ann"), false)
	testkit.Equal(t, "another user", p.enter("bob"), true)
	p.leave("ann")
	testkit.Equal(t, "after one is closed", p.enter("ann"), true)
}
