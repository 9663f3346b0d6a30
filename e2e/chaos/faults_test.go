package chaos_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// pauseMax is how long a history process is paused at most, and runMax how long it
	// runs in between.
	pauseMax = 12 * time.Second
	runMax   = 8 * time.Second
	// calm is how long nothing is paused before the faults end, so that what a
	// resumed process does is still seen.
	calm = 2 * time.Second
	// How long what was killed stays away, and how long the system runs undisturbed
	// then, at most.
	awayMax, peaceMax = 4 * time.Second, 2 * time.Second
	// serverAwayMax is the same for NATS and Redis.
	serverAwayMax = 1500 * time.Millisecond
)

// faults disturbs a cluster for a time.
type faults func(*testing.T, *cluster.Cluster, *rand.Rand, time.Duration)

// change is one step of a plan: a process is paused, or resumed.
type change struct {
	at     time.Duration
	node   int
	resume bool
}

// pausePlan pauses each node by itself, again and again, so that pauses overlap now
// and then. A pause lasts 9 to 12 s, less in a short run, so that each node has one there.
func pausePlan(seed *rand.Rand, nodes int, lasts time.Duration) []change {
	var plan []change
	most := min(pauseMax, lasts*2/5)
	for n := range nodes {
		for from := upTo(seed, min(runMax, lasts-calm-most)); from+most+calm <= lasts; from += upTo(seed, runMax) {
			until := from + most*3/4 + upTo(seed, most/4)
			plan = append(plan, change{from, n, false}, change{until, n, true})
			from = until
		}
	}
	slices.SortFunc(plan, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return plan
}

// follow carries a plan out.
func follow(t *testing.T, plan []change, lasts time.Duration, pause, resume func(node int) string) {
	t.Helper()
	began := time.Now()
	for _, c := range plan {
		wait(t.Context(), c.at-time.Since(began))
		do := pause
		if c.resume {
			do = resume
		}
		t.Logf("%5.1f s: %s", time.Since(began).Seconds(), do(c.node))
	}
	wait(t.Context(), lasts-time.Since(began))
}

// pauseHistory stops history processes with SIGSTOP at random.
func pauseHistory(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) {
	t.Helper()
	follow(t, pausePlan(seed, c.Instances(cluster.History), lasts), lasts, func(i int) string {
		c.Pause(cluster.History, i)
		return fmt.Sprintf("history-%d is paused", i)
	}, func(i int) string {
		c.Resume(cluster.History, i)
		return fmt.Sprintf("history-%d goes on", i)
	})
}

// every is the time between two faults of one kind.
const every = 6 * time.Second

// again disturbs something every 6 s, until the faults end, and lasts as long as they do.
func again(t *testing.T, lasts time.Duration, disturb func(n int)) {
	t.Helper()
	began := time.Now()
	for n := 0; time.Since(began)+every+calm <= lasts; n++ {
		next := began.Add(time.Duration(n+1) * every)
		disturb(n)
		wait(t.Context(), time.Until(next))
	}
	wait(t.Context(), lasts-time.Since(began))
}

// killMatching kills one matching process after the other, each away for some time.
func killMatching(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) {
	t.Helper()
	again(t, lasts, func(n int) {
		i := n % c.Instances(cluster.Matching)
		t.Logf("kill matching-%d", i)
		c.Kill(cluster.Matching, i)
		wait(t.Context(), upTo(seed, awayMax))
		c.Restart(cluster.Matching, i)
	})
	c.AwaitReady()
}

// pauseMatching stops one matching process after the other, each for 2 to 5 s.
func pauseMatching(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) {
	t.Helper()
	again(t, lasts, func(n int) {
		i := n % c.Instances(cluster.Matching)
		t.Logf("matching-%d is paused", i)
		c.Pause(cluster.Matching, i)
		wait(t.Context(), 2*time.Second+upTo(seed, 3*time.Second))
		c.Resume(cluster.Matching, i)
	})
}

// loseRedis kills Redis, which comes back with its last snapshot, or empties it.
func loseRedis(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) {
	t.Helper()
	again(t, lasts, func(n int) {
		if n%3 == 2 {
			t.Log("empty redis-server")
			c.Redis.Flush(t)
			return
		}
		t.Log("kill redis-server")
		c.Redis.Stop()
		wait(t.Context(), upTo(seed, serverAwayMax))
		c.Redis.Restart(t)
	})
}

// killAnything ends processes at random, one at a time, by SIGKILL or SIGTERM, often
// before the last one's loss is recovered from.
func killAnything(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) {
	t.Helper()
	for end := time.Now().Add(lasts - calm); time.Now().Before(end); {
		killSomething(t, c, seed)
		wait(t.Context(), upTo(seed, peaceMax))
	}
	c.AwaitReady()
}

// killSomething ends one process and brings it back after a while.
func killSomething(t *testing.T, c *cluster.Cluster, seed *rand.Rand) {
	t.Helper()
	switch seed.IntN(12) {
	case 0:
		t.Log("kill nats-server")
		c.KillNATS()
		wait(t.Context(), upTo(seed, serverAwayMax))
		c.StartNATS()
	case 1:
		t.Log("kill redis-server")
		c.Redis.Stop()
		wait(t.Context(), upTo(seed, serverAwayMax))
		c.Redis.Restart(t)
	default:
		s := cluster.Services()[seed.IntN(len(cluster.Services()))]
		i := seed.IntN(c.Instances(s))
		if seed.IntN(2) == 0 {
			t.Logf("kill %s-%d", s, i)
			c.Kill(s, i)
		} else {
			t.Logf("stop %s-%d", s, i)
			// One that has just been started may not listen to signals yet.
			testkit.Eventually(t, within, func() error { return c.Alive(s, i) })
			c.Term(s, i)
		}
		wait(t.Context(), upTo(seed, awayMax))
		c.Restart(s, i)
	}
}

// upTo is a random duration.
func upTo(seed *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(seed.Int64N(int64(most) + 1))
}
