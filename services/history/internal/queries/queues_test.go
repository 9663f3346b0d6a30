package queries_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/services/history/internal/gauges"
	"github.com/yardmaster-io/yardmaster/services/history/internal/queries"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A domain that is asked for by its name is reported, also beside 1000 domains that do more.
func TestTheNamedDomainIsReported(t *testing.T) {
	all := map[string]gauges.Work{"named": {Ready: 70}}
	for i := range 1000 {
		all[fmt.Sprint("busy", i)] = gauges.Work{Completed: 1}
	}
	q := queries.Queries{Domains: func() map[string]gauges.Work { return all }}
	for _, name := range []string{"", "named"} {
		resp, err := q.Describe(t.Context(), &rpcv1.DescribePartitionRequest{Top: &yardv1.TopDomainsRequest{Domain: name, By: "completed", Limit: 10}})
		testkit.NoError(t, err)
		reported := slices.ContainsFunc(resp.Top.Domains, func(d *yardv1.TopDomain) bool { return d.Domain == "named" && d.Ready == 70 })
		testkit.Equal(t, "reported if asked for "+name, reported, name != "")
	}
}
