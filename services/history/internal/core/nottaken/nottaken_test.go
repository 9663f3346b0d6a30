package nottaken

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestADomainHidesNoOther: of a domain with many abandoned tasklists the oldest few are found, and those of others as well.
func TestADomainHidesNoOther(t *testing.T) {
	var w Waits
	for i := range 2 * most {
		w.Add(Tasklist{"left", fmt.Sprint(2*most - i), int64(2*most - i)})
	}
	w.Add(Tasklist{"shop", "mail", 1000})
	testkit.Equal(t, "found", fmt.Sprint(w.NotTaken()), "[{left 1 1} {left 2 2} {left 3 3} {shop mail 1000}]")
	for i := range 2 * most {
		w.Add(Tasklist{fmt.Sprint("domain", i), "x", 500})
	}
	testkit.Equal(t, "how many", len(w.NotTaken()), most)
}
