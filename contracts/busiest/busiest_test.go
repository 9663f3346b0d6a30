package busiest_test

import (
	"fmt"
	"slices"
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

// A partition reports 1000 domains, and the one that is asked for by its name, wherever that is in the order.
func TestAPartitionReportsTheNamedDomain(t *testing.T) {
	var all []*yardv1.TopDomain
	for i := range 1500 {
		all = append(all, &yardv1.TopDomain{Domain: fmt.Sprint("shop", i), CompletedPerS: float64(i)})
	}
	for name, want := range map[string]int{"": 1000, "shop1499": 1000, "shop500": 1000, "shop499": 1001, "shop0": 1001, "other": 1000} {
		got := busiest.OfPartition(slices.Clone(all), &yardv1.TopDomainsRequest{Domain: name})
		named := slices.IndexFunc(got, func(d *yardv1.TopDomain) bool { return d.Domain == name })
		if len(got) != want || named < 0 != (name == "" || name == "other") || got[0].Domain != "shop1499" || got[999].Domain != "shop500" {
			t.Errorf("asked for %q: %d domains, this one is number %d", name, len(got), named)
		}
	}
}
