package partition_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/partition"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
	"github.com/yardmaster-io/yardmaster/shared/testkit/signalkit"
)

// A domain that is over its rate is split off, and waits for nothing while no other domain has tasks, also under the next owner. Within its rate it goes back.
func TestADomainOverItsRateGoesOnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages, each, perSecond = 25, 4, 2
		s := newTenants(t)
		s.serve("shop")
		d := s.deps("n")
		d.Metrics = partition.NewMetrics(signalkit.Metrics(t))
		d.FullWeight = func(domain string) (int64, bool) { return perSecond, domain != "shop" }
		o, stop := ready(d)
		many := func() (all []ids.TaskID) {
			for range messages {
				all = append(all, s.submit("shop", each)...)
			}
			return all
		}
		began := time.Now()
		all := many()
		synctest.Wait()
		s.mu.Lock()
		testkit.Equal(t, "triggered at once", len(s.triggered), len(all))
		s.mu.Unlock()
		s.describe(o, "shop", true, 0)
		s.end("over its rate", all)
		testkit.NoError(t, stop())
		o, stop = ready(d)
		s.describe(o, "shop", true, 0)
		next := many()
		s.end("over its rate, after a takeover", next)
		if took := time.Since(began); took > messages*each/perSecond*time.Second/2 {
			t.Errorf("the tasks waited for the rate: %v", took)
		}
		time.Sleep(time.Minute)
		s.describe(o, "shop", false, 0)
		for _, id := range slices.Concat(all, next) {
			testkit.Equal(t, "copies", s.archived()[id], 1)
		}
		testkit.NoError(t, stop())
	})
}
