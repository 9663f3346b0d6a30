package chaos_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/yardmaster-io/yardmaster/e2e/cluster"
)

// lifeFault is what befalls one round.
type lifeFault struct {
	name string
	do   func(seed *rand.Rand)
}

// deck is all faults: each service is killed and paused, Redis is lost in each way, NATS nodes are killed and paused, a worker vanishes; and some befall
// two at a time.
func (l *life) deck(seed *rand.Rand) (deck []lifeFault) {
	c := l.cluster
	add := func(name string, do func(seed *rand.Rand)) { deck = append(deck, lifeFault{name, do}) }
	for _, s := range cluster.Services() {
		add(fmt.Sprintf("kill %s", s), func(seed *rand.Rand) { l.killProcess(s, seed.IntN(c.Instances(s)), seed) })
		add(fmt.Sprintf("pause %s", s), func(seed *rand.Rand) { l.pauseProcess(s, seed.IntN(c.Instances(s))) })
	}
	add("kill history twice", func(seed *rand.Rand) {
		i := seed.IntN(instances)
		l.killProcess(cluster.History, i, seed)
		l.killProcess(cluster.History, 1-i, seed)
	})
	add("kill history and timer", func(seed *rand.Rand) {
		i := seed.IntN(instances)
		c.Kill(cluster.Timer, i)
		l.killProcess(cluster.History, seed.IntN(instances), seed)
		c.Restart(cluster.Timer, i)
		c.AwaitProcess(cluster.Timer, i)
	})
	add("pause history, kill the other", func(seed *rand.Rand) {
		i := seed.IntN(instances)
		c.Pause(cluster.History, i)
		l.killProcess(cluster.History, 1-i, seed)
		wait(l.t.Context(), medleyPaused)
		c.Resume(cluster.History, i)
	})
	add("kill a NATS node", func(seed *rand.Rand) { l.killNode(seed.IntN(trio), seed) })
	add("kill a NATS node, and history", func(seed *rand.Rand) {
		i := seed.IntN(trio)
		c.Kill(cluster.NATS, i)
		l.killProcess(cluster.History, seed.IntN(instances), seed)
		c.Restart(cluster.NATS, i)
		c.AwaitProcess(cluster.NATS, i)
	})
	add("pause a NATS node", func(seed *rand.Rand) {
		i := seed.IntN(trio)
		c.Pause(cluster.NATS, i)
		wait(l.t.Context(), shortPaused)
		c.Resume(cluster.NATS, i)
	})
	add("kill a worker", func(seed *rand.Rand) { l.crew[seed.IntN(len(l.crew))]() })
	add("empty redis-server", func(*rand.Rand) { c.Redis.Flush(l.t) })
	add("kill redis-server", func(seed *rand.Rand) {
		c.Redis.Stop()
		wait(l.t.Context(), upTo(seed, awayMax))
		c.Redis.Restart(l.t)
	})
	add("pause redis-server", func(*rand.Rand) {
		c.Redis.Pause(l.t)
		wait(l.t.Context(), medleyPaused/2)
		c.Redis.Resume(l.t)
	})
	return deck
}

func (l *life) killProcess(s cluster.Service, i int, seed *rand.Rand) {
	l.t.Helper()
	l.note("kill %s-%d", s, i)
	l.cluster.Kill(s, i)
	wait(l.t.Context(), upTo(seed, awayMax))
	l.cluster.Restart(s, i)
	l.cluster.AwaitProcess(s, i)
}

func (l *life) pauseProcess(s cluster.Service, i int) {
	l.t.Helper()
	l.note("pause %s-%d", s, i)
	l.cluster.Pause(s, i)
	wait(l.t.Context(), medleyPaused)
	l.cluster.Resume(s, i)
	l.cluster.AwaitProcess(s, i)
}

func (l *life) killNode(i int, seed *rand.Rand) {
	l.t.Helper()
	l.note("kill nats-%d", i)
	l.cluster.Kill(cluster.NATS, i)
	wait(l.t.Context(), shortAway+upTo(seed, awayMax))
	l.cluster.Restart(cluster.NATS, i)
	l.cluster.AwaitProcess(cluster.NATS, i)
}
