package timer

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/signals"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The latest domains have a series, by the partition in which they are latest, and not more than 20. A partition that left has none.
func TestTheLatestDomainsAreOnThePage(t *testing.T) {
	var l lateDomains
	shown := func() map[string]float64 {
		all := map[string]float64{}
		l.show(func(of signals.Metric, value float64, values ...string) {
			testkit.Equal(t, "metric", of.Name, signals.TimerDomainLate.Name)
			all[values[0]] = value
		})
		return all
	}
	l.set(1, map[string]time.Duration{"shop": 2 * time.Second, "media": time.Second})
	l.set(2, map[string]time.Duration{"shop": 3 * time.Second})
	testkit.Equal(t, "two partitions", shown(), map[string]float64{"shop": 3, "media": 1})
	l.set(2, nil)
	testkit.Equal(t, "after one left", shown(), map[string]float64{"shop": 2, "media": 1})
	many := map[string]time.Duration{}
	for n := range 50 {
		many[fmt.Sprint("d", n)] = time.Duration(n) * time.Minute
	}
	l.set(3, many)
	all := shown()
	if len(all) != lateMost || all["d49"] != 49*60 || all["d29"] != 0 {
		t.Errorf("of many are shown %v", all)
	}
}
