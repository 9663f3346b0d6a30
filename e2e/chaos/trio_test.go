package chaos_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/e2e/chaos/audit"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const (
	// trio is how many nodes of NATS there are.
	trio = 3
	// nodePaused is for how long one is paused, in the long form; shortPaused in the short one, which
	// is longer than it takes the others to elect leaders.
	nodePaused, shortPaused = 15 * time.Second, 11 * time.Second
	// nodeAway is how long a killed one stays away, shortAway in the short form.
	nodeAway, shortAway = 5 * time.Second, 3 * time.Second
	// trioRate is how many tasks are submitted per second at most, where each stream must be whole
	// again before the next node is lost: three servers share one disk with all else.
	trioRate = 100
	// nodeEvery is the time from one kill to the next, in the long form.
	nodeEvery = 11 * time.Second
)

// TestI1_I4_R30_NATSNodesLostInTurnUnderLoad takes every node of a NATS cluster of three away in
// turn: each is killed, paused and restarted, and the services are restarted while one is
// away. No accepted task is lost or runs twice, and no service waits for the node.
func TestI1_I4_R30_NATSNodesLostInTurnUnderLoad(t *testing.T) {
	testkit.Slow(t, "disturbs a cluster of processes")
	s := settingsOf(t)
	s.rate = min(s.rate, trioRate)
	// A paused node is still believed to have the inboxes of its clients for some seconds: what is sent there is lost, and
	// no message says so.
	s.passOver = append(s.passOver, audit.DeadUnheld, audit.BurnedUnheld)
	runRounds(t, s, loseNATSInTurn(s), cluster.WithNATSNodes(trio))
}

// TestI1_I4_NATSNodesKilledUnderLoad kills one of three nodes every 11 s. What its servers lose with them burns no
// attempt that no worker received (R41).
func TestI1_I4_NATSNodesKilledUnderLoad(t *testing.T) {
	longOnly(t)
	runRounds(t, settingsOf(t), killNATSNodes, cluster.WithNATSNodes(trio))
}

// TestI1_I4_NATSNodesPausedUnderLoad pauses one of three nodes after the other, for 15 s each: what
// they say when they go on is old (R10), and the time in which logs stood still burns no attempt.
func TestI1_I4_NATSNodesPausedUnderLoad(t *testing.T) {
	longOnly(t)
	s := settingsOf(t)
	s.passOver = nil
	runRounds(t, s, pauseNATSNodes, cluster.WithNATSNodes(trio))
}

// loseNATSInTurn takes each node away in each way.
func loseNATSInTurn(s settings) faults {
	paused, away := shortPaused, shortAway
	if s.long {
		paused, away = nodePaused, nodeAway
	}
	return func(t *testing.T, c *cluster.Cluster, seed *rand.Rand, _ time.Duration) {
		t.Helper()
		began := time.Now()
		say := func(format string, args ...any) {
			t.Logf("%5.1f s: "+format, append([]any{time.Since(began).Seconds()}, args...)...)
		}
		back := func(i int) {
			c.Restart(cluster.NATS, i)
			c.AwaitProcess(cluster.NATS, i)
			c.AwaitReplicas()
			say("nats-%d is back", i)
			wait(t.Context(), calm)
		}
		order := seed.Perm(trio)
		// In the short form each befalls one node: it takes as long as an election and more.
		kill, pause, stop := order[:1], order[1:2], order[2:]
		if s.long {
			kill, pause, stop = order, order, order
		}
		for _, i := range kill {
			say("kill nats-%d", i)
			c.Kill(cluster.NATS, i)
			wait(t.Context(), away)
			back(i)
		}
		for _, i := range pause {
			say("nats-%d is paused", i)
			c.Pause(cluster.NATS, i)
			wait(t.Context(), paused)
			c.Resume(cluster.NATS, i)
			c.AwaitReplicas()
			say("nats-%d goes on", i)
			wait(t.Context(), calm)
		}
		for _, i := range stop {
			say("stop nats-%d", i)
			c.Term(cluster.NATS, i)
			back(i)
		}
		i := order[0]
		say("kill nats-%d", i)
		c.Kill(cluster.NATS, i)
		for _, service := range cluster.Services() {
			for n := range c.Instances(service) {
				c.Term(service, n)
				c.Restart(service, n)
				from := time.Now()
				c.AwaitProcess(service, n)
				say("%s-%d is ready again %.1f s after its start, without nats-%d", service, n, time.Since(from).Seconds(), i)
			}
		}
		back(i)
	}
}

// killNATSNodes kills a node every 11 s.
func killNATSNodes(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began)+nodeEvery <= lasts; {
		next := time.Now().Add(nodeEvery)
		i := seed.IntN(trio)
		t.Logf("%5.1f s: kill nats-%d", time.Since(began).Seconds(), i)
		c.Kill(cluster.NATS, i)
		wait(t.Context(), nodeAway)
		c.Restart(cluster.NATS, i)
		c.AwaitProcess(cluster.NATS, i)
		wait(t.Context(), time.Until(next))
	}
}

// pauseNATSNodes pauses a node for 15 s, again and again.
func pauseNATSNodes(t *testing.T, c *cluster.Cluster, seed *rand.Rand, lasts time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began)+nodePaused+calm <= lasts; wait(t.Context(), calm) {
		i := seed.IntN(trio)
		t.Logf("%5.1f s: nats-%d is paused", time.Since(began).Seconds(), i)
		c.Pause(cluster.NATS, i)
		wait(t.Context(), nodePaused)
		c.Resume(cluster.NATS, i)
		t.Logf("%5.1f s: nats-%d goes on", time.Since(began).Seconds(), i)
		c.AwaitReplicas()
	}
}
