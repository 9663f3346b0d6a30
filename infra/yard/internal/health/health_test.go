package health_test

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/infra/yard/internal/health"
	"github.com/yardmaster-io/yardmaster/shared/process"
	"github.com/yardmaster-io/yardmaster/shared/telemetry"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// of is a process of a service with two partitions that serves some of them.
func of(service string, serves ...int) process.Answer {
	a := process.Answer{Service: service, Partitions: 2, Readiness: telemetry.Readiness{Ready: true}}
	for _, p := range serves {
		a.Serves = append(a.Serves, process.Served{Partition: p})
	}
	return a
}

func TestASystemIsWhole(t *testing.T) {
	frontend, history, matching, timer := of("frontend"), of("history", 0, 1), of("matching", 1, 0), of("timer", 0, 1)
	starting, unready := of("history"), frontend
	starting.Partitions, unready.Ready = 0, false
	for name, c := range map[string]struct {
		answers []process.Answer
		want    bool
	}{
		"one of each":              {[]process.Answer{frontend, history, matching, timer}, true},
		"two of one":               {[]process.Answer{frontend, of("history", 0), matching, timer, of("history", 1)}, true},
		"one on standby":           {[]process.Answer{frontend, of("timer"), history, matching, timer}, true},
		"none":                     {nil, false},
		"no frontend":              {[]process.Answer{history, matching, timer}, false},
		"a frontend that waits":    {[]process.Answer{unready, history, matching, timer}, false},
		"a partition has no owner": {[]process.Answer{frontend, history, of("matching", 1), timer}, false},
		"two owners of one":        {[]process.Answer{frontend, history, of("matching", 1), of("matching", 1), timer}, false},
		"no timer":                 {[]process.Answer{frontend, history, matching}, false},
		"a service that starts":    {[]process.Answer{frontend, starting, matching, timer}, false},
	} {
		testkit.Equal(t, name, health.Whole(c.answers), c.want)
	}
}
