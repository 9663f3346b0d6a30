package chaos_test

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestPausePlan: every node is paused, one pause of it ends before the next begins,
// and the last one ends early enough.
func TestPausePlan(t *testing.T) {
	for seed := range uint64(200) {
		for _, lasts := range []time.Duration{shortLasts, longLasts} {
			const nodes = 2
			var pauses [nodes]int
			var paused [nodes]bool
			var before time.Duration
			for _, c := range pausePlan(rand.New(rand.NewPCG(seed, 0)), nodes, lasts) {
				if c.at < before || c.at > lasts-calm || c.resume != paused[c.node] {
					t.Fatalf("seed %d, %v: step %+v behind %v, paused %v", seed, lasts, c, before, paused)
				}
				before, paused[c.node] = c.at, !c.resume
				if c.resume {
					pauses[c.node]++
				}
			}
			for n := range nodes {
				if paused[n] || pauses[n] == 0 {
					t.Errorf("seed %d, %v: node %d has %d pauses, still paused: %v", seed, lasts, n, pauses[n], paused[n])
				}
			}
		}
	}
}
