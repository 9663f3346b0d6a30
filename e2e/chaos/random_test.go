package chaos_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// chaosEnv names the environment variable that sets how long the random test
	// goes on killing, such as 10m.
	chaosEnv     = "YARD_CHAOS"
	chaosDefault = 15 * time.Second

	// How long what was killed stays away, and how long peace lasts then, at most.
	awayMax  = 4 * time.Second
	peaceMax = 2 * time.Second
	// serverAwayMax is the same for NATS and Redis.
	serverAwayMax = 1500 * time.Millisecond
)

// TestI1_I4_I8_AnythingDiesAtAnyTime ends processes at random, one at a time, by
// SIGKILL or SIGTERM, often before the last one's loss is got over.
func TestI1_I4_I8_AnythingDiesAtAnyTime(t *testing.T) {
	long := chaosDefault
	if s := os.Getenv(chaosEnv); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatalf("%s: %v", chaosEnv, err)
		}
	}
	c := cluster.Start(t, binaries, instances)
	l := startLoad(t, c, shortLeases)
	l.works()
	seed := testkit.Seed(t)
	for end := time.Now().Add(long); time.Now().Before(end); {
		endSomething(t, c, seed)
		wait(t.Context(), upTo(seed, peaceMax))
	}
	c.AwaitReady()
	l.works()
	l.verify()
}

// endSomething ends one process and brings it back after a while.
func endSomething(t *testing.T, c *cluster.Cluster, seed *rand.Rand) {
	t.Helper()
	switch dice := seed.IntN(12); {
	case dice == 0:
		t.Log("kill nats-server")
		c.KillNATS()
		wait(t.Context(), upTo(seed, serverAwayMax))
		c.StartNATS()
	case dice == 1 && c.Redis != nil:
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
	return time.Duration(seed.Int64N(int64(most)))
}
