package chaos_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestNATSDownAtStart starts the services first: they live, say what they wait
// for, and serve as soon as NATS is there.
func TestNATSDownAtStart(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.New(t, binaries, instances)
	c.StartServices()
	for _, s := range cluster.Services() {
		for i := range c.Instances(s) {
			c.AwaitLog(s, i, "waiting for NATS", within)
			testkit.Eventually(t, within, func() error { return c.Alive(s, i) })
			if c.Ready(s, i) == nil {
				t.Errorf("%s-%d says that it is ready without NATS", s, i)
			}
		}
	}
	c.StartNATS()
	c.AwaitReady()
	l := startLoad(t, c, shortLeases)
	l.works()
	l.verify()
}

// TestI1_NATSLostAndBack kills nats-server under load and starts it on its data:
// no one else is restarted.
func TestI1_NATSLostAndBack(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	l := startLoad(t, c, shortLeases)
	l.works()
	killed := time.Now()
	c.KillNATS()
	for _, s := range cluster.Services() {
		for i := range c.Instances(s) {
			c.AwaitLog(s, i, "disconnected from NATS", within)
		}
	}
	c.StartNATS()
	c.AwaitReady()
	l.awaitAcceptedBefore(killed, "nats-server killed")
	l.works()
	l.verify()
}
