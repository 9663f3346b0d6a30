package chaos_test

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
)

// TestI1_KillingEachServiceLosesAndDoublesNothing kills one process of each
// service with SIGKILL under load. The other one takes over; the killed one comes
// back under its old name.
func TestI1_KillingEachServiceLosesAndDoublesNothing(t *testing.T) {
	c := cluster.Start(t, binaries, instances)
	l := startLoad(t, c)
	l.await(100)
	for i, s := range cluster.Services() {
		victim := i % c.Instances(s)
		killed := time.Now()
		c.Kill(s, victim)
		t.Logf("%s-%d killed: what was accepted before was done %v later", s, victim, l.awaitAcceptedBefore(killed))
		c.Restart(s, victim)
		c.AwaitProcess(s, victim)
		l.await(100)
	}
	l.verify()
}
