package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
)

// TestLimitsAreShownInABusyDomain: while one call follows another, a limit keeps its place in the line and its slots, as in a domain that rests.
func TestLimitsAreShownInABusyDomain(t *testing.T) {
	for name, c := range map[string]struct {
		blocked table.BlockedWhy
		since   time.Duration
		due     bool
	}{
		"in line":            {table.InLine, limit.LineEvery, true},
		"shown a moment ago": {table.InLine, limit.LineEvery - ms, false},
		"restoring":          {table.Restoring, tablecall.RetryEvery, true},
		"slots":              {0, limit.RefreshAfter, true},
		"slots, just shown":  {0, limit.RefreshAfter - ms, false},
	} {
		for _, key := range []string{"d/a", "d/a*"} {
			if key == "d/a*" && c.blocked == table.Restoring { // of groups it is their limit that is
				continue
			}
			_, s, l := overflowing(t, key)
			l.Domain.Call = &limit.Call{}
			l.Blocked, l.Wait, l.ShownAt = c.blocked, 0, s.now.Mono-c.since
			if l.Of != nil && c.blocked != 0 {
				l.InRing(limit.RingLine, true)
			}
			for range 2 {
				s.sweepDomain(domainOf(s, l))
			}
			if l.Due != c.due {
				t.Errorf("%s, %s: it is to be shown: %v", key, name, l.Due)
			}
		}
	}
}

// TestGroupsAreForgottenInABusyDomain: those of which nothing is known any more, however busy their domain is.
func TestGroupsAreForgottenInABusyDomain(t *testing.T) {
	for _, called := range []bool{false, true} {
		_, _, l := overflowing(t, "d/a*")
		if called {
			l.In = &limit.Call{}
			l.Domain.Call = l.In
		}
		l.Slots, l.Entry, l.Parked, l.Blocked, l.Wait, l.Due = nil, 0, nil, 0, 0, false
		for range 2 {
			l.Domain.SweepGroups()
		}
		if _, kept := l.Of.ByGroup.Limits["g"]; kept != called {
			t.Errorf("in the call %v: it is known %v", called, kept)
		}
	}
}
