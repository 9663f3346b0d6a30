package chaos_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI1_I4_KillingEachServiceLosesAndDoublesNothing kills one process of each
// service with SIGKILL under load. The other one takes over; the killed one comes
// back under its old name. The cluster is sealed: to take over takes no right that a service lacks. Events of ends go on, and say nothing that is not so.
func TestI1_I4_KillingEachServiceLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, binaries, instances, cluster.WithSealed())
	l := startLoad(t, c, shortLeases)
	heard := l.hearsEnds()
	l.works()
	for i, s := range cluster.Services() {
		victim := i % c.Instances(s)
		killed := time.Now()
		c.Kill(s, victim)
		if c.Instances(s) == 1 { // no one takes over
			c.Restart(s, victim)
		}
		l.awaitAcceptedBefore(killed, fmt.Sprintf("%s-%d killed", s, victim))
		if c.Instances(s) > 1 {
			c.Restart(s, victim)
		}
		c.AwaitProcess(s, victim)
		l.works()
		heard.goOn()
	}
	heard.agree(l.verify())
}

// TestI1_PowerCut kills everything at once, NATS and Redis included, and starts it
// again on what is on disk.
func TestI1_PowerCut(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	l := startLoad(t, c, shortLeases)
	l.works()
	cut := time.Now()
	c.KillEverything()
	c.Redis.Restart(t)
	c.StartNATS()
	c.StartServices()
	c.AwaitReady()
	l.awaitAcceptedBefore(cut, "power cut")
	l.works()
	l.verify()
}
