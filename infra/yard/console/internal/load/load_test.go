package load_test

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/infra/yard/console/internal/load"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestADomainBeyondTheBusiestIsNotCounted: 0 would be wrong. Its numbers are known if each partition that names as many as it was asked for names it.
func TestADomainBeyondTheBusiestIsNotCounted(t *testing.T) {
	full, few := &yardv1.PartitionQueues{}, &yardv1.PartitionQueues{Domains: []*yardv1.DomainWork{{Domain: "few"}}}
	for i := range 100 {
		full.Domains = append(full.Domains, &yardv1.DomainWork{Domain: fmt.Sprint("d", i)})
	}
	for _, c := range []struct {
		partitions []*yardv1.PartitionQueues
		name       string
		want       bool
	}{
		{[]*yardv1.PartitionQueues{few}, "few", true},
		{[]*yardv1.PartitionQueues{few}, "idle", true},
		{[]*yardv1.PartitionQueues{few, full}, "d7", true},
		{[]*yardv1.PartitionQueues{few, full}, "few", false},
		{[]*yardv1.PartitionQueues{few, full}, "idle", false},
	} {
		all := load.Cluster{Partitions: c.partitions}
		testkit.Equal(t, c.name, all.Counted(c.name), c.want)
	}
}

// TestRates: a counter that goes back belongs to a new owner, which counts from 0.
func TestRates(t *testing.T) {
	testkit.Equal(t, "a second", load.PerSecond(30, 10, 2), 10)
	testkit.Equal(t, "a new owner", load.PerSecond(30, 100, 2), 15)
	testkit.Equal(t, "no time", load.PerSecond(30, 10, 0), 0)
}
