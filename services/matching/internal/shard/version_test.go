package shard

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestI13EventsCarryTheClustersVersion, and the first one is left out. R21.
func TestI13EventsCarryTheClustersVersion(t *testing.T) {
	inWorld(t, func(w *world) {
		for version, want := range map[uint32]uint32{1: 0, 2: 2} {
			w.shard.LogVersion = func() uint32 { return version }
			w.poll("me", time.Minute)
			w.ready("a", byte(version))
			synctest.Wait()
			if len(w.versions) == 0 || w.versions[len(w.versions)-1] != want {
				t.Errorf("version %d: written are %v", version, w.versions)
			}
		}
	})
}
