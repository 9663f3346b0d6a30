package pages

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/words"
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

// TestADomainBeyondTheBusiestIsNotCounted: 0 would be wrong.
func TestADomainBeyondTheBusiestIsNotCounted(t *testing.T) {
	busy := []*yardv1.TopDomain{{Domain: "busy", Ready: 7}}
	for name, c := range map[string]struct {
		top  *yardv1.TopDomainsResponse
		want string
	}{
		"listed": {&yardv1.TopDomainsResponse{Domains: busy, Others: 1}, "7"}, "idle": {&yardv1.TopDomainsResponse{Domains: busy}, "0"},
		"beyond": {&yardv1.TopDomainsResponse{Domains: busy, Others: 1}, "unknown"}, "no answer": {nil, "unknown"},
	} {
		domain, got := "other", "unknown"
		if name == "listed" {
			domain = "busy"
		}
		if work := workOf(c.top, domain); work != nil {
			got = words.Count(work.Ready)
		}
		testkit.Equal(t, "ready tasks of a domain that is "+name, got, c.want)
	}
}
