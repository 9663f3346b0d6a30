package matching

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I14: a domain that changes its many settings without end takes little of a shard's time, and delays no one else's changes. The last
// change counts, and nothing is kept for long.
func TestI14_ChangesOfManySettingsAreAnnouncedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		sizes := map[string]int{"flood": 5000, "shop": 3, "vast": 1_000_000}
		announced := map[string][]time.Duration{}
		var mu sync.Mutex
		c := newChanges(func(domain string) int { return sizes[domain] }, func(domain string) {
			mu.Lock()
			defer mu.Unlock()
			announced[domain] = append(announced[domain], time.Since(began))
		})
		for i := range 120 {
			c.changed("flood")
			c.changed("vast")
			if i%50 == 7 {
				c.changed("shop")
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		c.changed("shop")
		synctest.Wait()
		testkit.Equal(t, "announced", announced, map[string][]time.Duration{
			"flood": {0, time.Second / 2, time.Second, 3 * time.Second / 2},
			"vast":  {0, time.Second, 2 * time.Second},
			"shop":  {70 * time.Millisecond, 570 * time.Millisecond, 1070 * time.Millisecond, 61200 * time.Millisecond},
		})
		testkit.Equal(t, "domains are kept", len(c.waits), 1)
	})
}

// A shard that has not taken in a change of a domain has the next one with it: it goes through the settings once.
func TestAChangeThatWaitsIsThereOnce(t *testing.T) {
	one := shard.New(shard.Deps{})
	s := &Service{running: []*shard.Shard{one}}
	for _, domain := range []string{"shop", "bank", "shop", "shop", "bank"} {
		s.limitsChanged(domain)
	}
	one.Put(func(in *match.Inputs) {
		testkit.Equal(t, "wait", in.Limits, []string{"shop", "bank"})
	})
}
