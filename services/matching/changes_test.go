package matching

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/match"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/shard"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// I14: who changes a domain of many settings without end has the shards go through them twice a second, and the last change counts.
func TestI14_ChangesOfManySettingsAreAnnouncedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c, began := newChanges(), time.Now()
		var announced []time.Duration
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(ctx, func(string) int { return 5000 }, func(string) { announced = append(announced, time.Since(began)) })
		}()
		for range 120 {
			c.changed("shop")
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		stop()
		<-done
		testkit.Equal(t, "it was announced at", announced, []time.Duration{0, time.Second / 2, time.Second, 3 * time.Second / 2})
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
