package admission

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestS27SmallDomainsShareMessagesBesideAFullLane: a domain is filed apart if it has more than a part of the window in shared messages.
func TestS27SmallDomainsShareMessagesBesideAFullLane(t *testing.T) {
	const part = 10
	g := New(Config{WindowTasks: part * sharersMin, WindowBytes: 1 << 20})
	for domain, tasks := range map[string]int{"own": part * sharersMin, "small": part, "large": part + 1} {
		for range tasks {
			g.Charge(Charge{Lane: lane, Domain: domain, Tasklist: "mail", Shared: domain != "own", Bytes: 1}, 0)
		}
	}
	testkit.Equal(t, "apart", fmt.Sprint(g.Apart()), "[large]")
}
