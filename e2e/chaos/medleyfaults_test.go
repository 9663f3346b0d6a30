package chaos_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/yard"
	"github.com/yardmaster-io/yardmaster/e2e/cluster"
)

// untilDone repeats a request until it is answered, while processes are killed. What was done by an earlier try is done.
func (m *medley) untilDone(what string, do func(context.Context) error) {
	for began := time.Now(); ; {
		ctx, cancel := context.WithTimeout(context.Background(), outcomeTry)
		err := do(ctx)
		cancel()
		if err == nil || fault.CodeOf(err) == fault.NotFound {
			return
		}
		if time.Since(began) > within {
			m.t.Errorf("%s: %v", what, err)
			return
		}
		wait(context.Background(), 100*time.Millisecond)
	}
}

// stopAndResume pauses and drains two groups, again and again, and resumes both in the end.
func (m *medley) stopAndResume(ctx context.Context, dice *rand.Rand) {
	for ctx.Err() == nil {
		m.untilDone("pause", func(ctx context.Context) error {
			_, err := m.client.Pause(ctx, yard.OfGroup(pausedGroup), yard.PauseOptions{Reason: "it is to rest"})
			return err
		})
		paused := window{from: time.Now()}
		m.untilDone("drain", func(ctx context.Context) error {
			_, err := m.client.Drain(ctx, yard.OfGroup(drainedGroup), yard.PauseOptions{Reason: "it moves"})
			return err
		})
		drained := window{from: time.Now()}
		wait(ctx, 4*time.Second+upTo(dice, 8*time.Second))
		paused.to, drained.to = time.Now(), time.Now()
		m.untilDone("resume", func(ctx context.Context) error {
			_, err := m.client.Resume(ctx, yard.OfGroup(pausedGroup))
			return err
		})
		m.untilDone("resume", func(ctx context.Context) error {
			_, err := m.client.ResumeDrained(ctx, yard.OfGroup(drainedGroup))
			return err
		})
		m.mu.Lock()
		m.stops[pausedGroup] = append(m.stops[pausedGroup], paused)
		m.stops[drainedGroup] = append(m.stops[drainedGroup], drained)
		m.mu.Unlock()
		wait(ctx, 2*time.Second+upTo(dice, 4*time.Second))
	}
}

// spread puts a tasklist to one partition and back.
func (m *medley) spread(ctx context.Context) {
	for partitions := 1; ctx.Err() == nil; partitions = wideMost + 1 - partitions {
		wait(ctx, 5*time.Second)
		m.untilDone("spread", func(ctx context.Context) error {
			_, err := m.client.PutTasklist(ctx, yard.Tasklist{Name: wideList, Partitions: partitions})
			return err
		})
	}
}

// disturb has one fault after the other, for a time, and each at least once.
func (m *medley) disturb(seed *rand.Rand, s settings, crew []func()) {
	m.t.Helper()
	deck := m.deck(seed, s.long, crew)
	began := time.Now()
	for n := 0; n < len(deck) || s.long && time.Since(began) < s.lasts; n++ {
		if n%len(deck) == 0 {
			seed.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		from := time.Now()
		deck[n%len(deck)]()
		m.mu.Lock()
		m.faults = append(m.faults, window{from, time.Now()})
		m.mu.Unlock()
		wait(m.t.Context(), upTo(seed, peaceMax))
	}
}

// deck is all faults; the short form pauses matching, history and Redis only.
func (m *medley) deck(seed *rand.Rand, long bool, crew []func()) (deck []func()) {
	c := m.cluster
	for _, s := range cluster.Services() {
		deck = append(deck, func() { m.kill(s, seed.IntN(c.Instances(s)), seed) })
		if long || s == cluster.History || s == cluster.Matching {
			deck = append(deck, func() { m.pause(s, seed.IntN(c.Instances(s)), seed) })
		}
	}
	deck = append(deck, func() {
		m.t.Log("kill nats-server")
		c.KillNATS()
		wait(m.t.Context(), upTo(seed, serverAwayMax))
		c.StartNATS()
	}, func() { crew[seed.IntN(len(crew))]() }, func() { crew[seed.IntN(len(crew))]() })
	deck = append(deck, func() { m.loseRedis(seed, false) }, func() { m.loseRedis(seed, true) }, m.pauseRedis)
	return deck
}

func (m *medley) kill(s cluster.Service, i int, seed *rand.Rand) {
	m.t.Helper()
	m.t.Logf("kill %s-%d", s, i)
	m.cluster.Kill(s, i)
	wait(m.t.Context(), upTo(seed, awayMax))
	m.cluster.Restart(s, i)
	m.cluster.AwaitProcess(s, i)
}

// pause stops a process for a time, in which now and then another one is killed.
func (m *medley) pause(s cluster.Service, i int, seed *rand.Rand) {
	m.t.Helper()
	m.t.Logf("%s-%d is paused", s, i)
	m.cluster.Pause(s, i)
	until := time.Now().Add(medleyPaused)
	other := cluster.Services()[seed.IntN(len(cluster.Services()))]
	if j := seed.IntN(m.cluster.Instances(other)); (other != s || i != j) && seed.IntN(2) == 0 {
		m.kill(other, j, seed)
	}
	wait(m.t.Context(), time.Until(until))
	m.cluster.Resume(s, i)
	m.cluster.AwaitProcess(s, i)
}

// pauseRedis stops redis-server for a time: requests to it get no answer.
func (m *medley) pauseRedis() {
	m.t.Helper()
	m.t.Log("redis-server is paused")
	m.cluster.Redis.Pause(m.t)
	wait(m.t.Context(), medleyPaused/2)
	m.cluster.Redis.Resume(m.t)
}

// loseRedis empties Redis, or has it come back with what it saved last.
func (m *medley) loseRedis(seed *rand.Rand, restart bool) {
	m.t.Helper()
	if restart {
		m.t.Log("redis-server is killed, and comes back with what it saved last")
		m.cluster.Redis.Stop()
		wait(m.t.Context(), upTo(seed, serverAwayMax))
		m.cluster.Redis.Restart(m.t)
	} else {
		m.t.Log("redis-server is emptied")
		m.cluster.Redis.Flush(m.t)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = append(m.lost, time.Now().UnixMilli())
}
