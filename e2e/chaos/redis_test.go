package chaos_test

import (
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// TestI5_I8_RedisLostAndBack kills redis-server, and all that is in it, under
// load. Types without a limit go on meanwhile; limited ones go on with an empty
// Redis, within their limit.
func TestI5_I8_RedisLostAndBack(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances)
	l := startLoad(t, c, shortLeases)
	l.works()
	killed := time.Now()
	c.Redis.Stop()
	l.await(100, quick)
	c.Redis.Restart(t)
	l.awaitAcceptedBefore(killed, "redis-server killed")
	l.works()
	l.verify()
}

// TestRedisWithTLSAndAUserOfItsOwn: limited types and backlogs work over TLS as a user who may do no more
// than topology.RedisACL allows, and no one prints the password.
func TestRedisWithTLSAndAUserOfItsOwn(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "disturbs a cluster of processes")
	c := cluster.Start(t, binaries, instances, cluster.WithSecuredRedis())
	l := startLoad(t, c, shortLeases)
	l.works()
	l.verify()
	for i := range c.Instances(cluster.Matching) {
		if err := c.Ready(cluster.Matching, i); err != nil { // it has asked Redis for long enough to know
			t.Error(err)
		}
		if log := c.Log(cluster.Matching, i); strings.Contains(log, cluster.RedisPassword) || strings.Contains(log, "NOPERM") {
			t.Errorf("matching-%d says\n%s", i, log)
		}
	}
}
