package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// TestLimitsAreShownInABusyDomain: while one call follows another, a limit keeps its place in the line and its slots, as in a domain that rests.
func TestLimitsAreShownInABusyDomain(t *testing.T) {
	for name, c := range map[string]struct {
		blocked table.BlockedWhy
		since   time.Duration
		due     bool
	}{
		"in line":            {table.InLine, lineEvery, true},
		"shown a moment ago": {table.InLine, lineEvery - ms, false},
		"restoring":          {table.Restoring, retryEvery, true},
		"slots":              {0, refreshAfter, true},
		"slots, just shown":  {0, refreshAfter - ms, false},
	} {
		for _, key := range []string{"d/a", "d/a*"} {
			if key == "d/a*" && c.blocked == table.Restoring { // of groups it is their limit that is
				continue
			}
			_, s, l := overflowing(t, key, RejectNewest)
			l.domain.call = &call{}
			l.blocked, l.wait, l.shownAt = c.blocked, 0, s.now.Mono-c.since
			if l.of != nil && c.blocked != 0 {
				l.domain.rings[ringLine].add(l, ringLine)
			}
			for range 2 {
				s.sweepDomain(l.domain)
			}
			if l.due != c.due {
				t.Errorf("%s, %s: it is to be shown: %v", key, name, l.due)
			}
		}
	}
}

// TestGroupsAreForgottenInABusyDomain: those of which nothing is known any more, however busy their domain is.
func TestGroupsAreForgottenInABusyDomain(t *testing.T) {
	for _, called := range []bool{false, true} {
		_, s, l := overflowing(t, "d/a*", RejectNewest)
		c := &call{}
		if l.domain.call = c; called {
			l.in = c
		}
		l.held, l.entry, l.parked, l.blocked, l.wait, l.due = nil, 0, nil, 0, 0, false
		for range 2 {
			s.sweepGroups(l.domain)
		}
		if _, kept := l.of.perGroup.limits["g"]; kept != called {
			t.Errorf("in the call %v: it is known %v", called, kept)
		}
	}
}
