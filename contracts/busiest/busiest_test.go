package busiest_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/busiest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
)

// Each measure puts the domain first that has most of it, and no other number counts before.
func TestEachMeasureHasAnOrder(t *testing.T) {
	most := map[string]*yardv1.TopDomain{
		"admitted": {AdmittedPerS: 1}, "started": {StartedPerS: 1}, "completed": {CompletedPerS: 1}, "failed": {FailedPerS: 1}, "ready": {Ready: 1}, "running": {Running: 1},
		"backoff": {Backoff: 1}, "waiting": {Waiting: 1}, "unread": {Unread: 1}, "oldest": {OldestReadyMs: 1}, "late": {LateMs: 1},
	}
	for _, by := range busiest.Names() {
		var all []*yardv1.TopDomain
		for name, d := range most {
			d.Domain = name
			all = append(all, d)
		}
		first := busiest.First(all, by, 1)
		if len(first) != 1 || first[0].Domain != by {
			t.Errorf("by %s the first is %v", by, first)
		}
	}
	if len(most) != len(busiest.Names()) || busiest.Known("size") || !busiest.Known(busiest.Default) {
		t.Errorf("the measures are %v", busiest.Names())
	}
}

func TestEqualDomainsAreSortedByTheirNames(t *testing.T) {
	all := []*yardv1.TopDomain{{Domain: "b"}, {Domain: "a"}, {Domain: "c", Ready: 1}}
	got := ""
	for _, d := range busiest.First(all, "failed", 9) {
		got += d.Domain
	}
	if got != "cab" {
		t.Errorf("the order is %s", got)
	}
}
