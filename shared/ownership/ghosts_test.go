package ownership

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const ghosts = 200

// haunt shows heartbeats of nodes that are dead by the time it returns.
func haunt(t *testing.T, kv jetstream.KeyValue) {
	t.Helper()
	for i := range ghosts {
		testkit.NoError(t, testkit.Err(kv.Put(t.Context(), fmt.Sprintf("test.ghost-%d", i), Announcement{LogVersion: 1, EveryMs: beat.Milliseconds()}.encode())))
	}
	<-time.After(expiry + beat) // how long the server has to know of no other
}

// TestR37WhoIsReadyHasItsShare although many nodes died without a word.
func TestR37WhoIsReadyHasItsShare(t *testing.T) {
	srv := server(t)
	haunt(t, bucket(t, srv.Connect(t)))
	a := join(t, srv, "a", normal)
	if owned := a.Owned(); len(owned) != count {
		t.Errorf("ready with %v", owned)
	}
	b := join(t, srv, "b", normal)
	if owned := b.Owned(); len(owned) != count/2 {
		t.Errorf("ready with %v", owned)
	}
}

// TestR37GhostsAreRemoved, and no one else: not who is alive, not those of another service.
func TestR37GhostsAreRemoved(t *testing.T) {
	testkit.Slow(t, "waits until a node is believed to be away")
	srv := server(t)
	kv := bucket(t, srv.Connect(t))
	testkit.NoError(t, testkit.Err(kv.Put(t.Context(), "other.ghost", nil)))
	haunt(t, kv)
	join(t, srv, "a", normal)
	m := newMembers(kv, "test", "b", beat, slog.New(slog.DiscardHandler))
	if _, err := kv.Put(t.Context(), "test.late", nil); err != nil { // it may live
		t.Fatal(err)
	}
	testkit.NoError(t, m.sweepOnce(t.Context(), expiry))
	keys, err := kv.Keys(t.Context())
	slices.Sort(keys)
	if err != nil || !slices.Equal(keys, []string{"other.ghost", "test.a", "test.late"}) {
		t.Errorf("%d keys left: %v, %v", len(keys), keys, err)
	}
}

// TestAJoiningNodeWaitsForTheDrain: a partition that moves is never served twice, and the new
// owner begins with it when the one before is done, no matter who is slow.
func TestAJoiningNodeWaitsForTheDrain(t *testing.T) {
	srv := server(t)
	release := make(chan struct{})
	var both serving // what a and b serve together
	a := joinWith(t, srv, "a", func(c *Config, s *serving) {
		c.Expiry = soon // it lives, however busy the machine is
		c.Serve = both.with(s, release)
	})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free) // before a is stopped
	balanced(t, map[string]*node{"a": a})
	b := start(t, srv, "b", func(c *Config, s *serving) {
		c.Expiry, c.Serve = soon, both.with(s, nil)
	})
	for moved := 1; moved <= count/2; moved++ {
		select {
		case <-b.Ready():
			t.Fatalf("ready with %v", b.Owned())
		case release <- struct{}{}:
		}
		testkit.Eventually(t, soon, func() error {
			if n := len(b.serving.partitions()); n != moved {
				return fmt.Errorf("%d are drained, b serves %d", moved, n)
			}
			return nil
		})
	}
	free()
	balanced(t, map[string]*node{"a": a, "b": b})
	<-b.Ready()
	if both.max > 1 {
		t.Error("a partition was served twice at once")
	}
}

// lateShow is a members bucket that stores a node's first claim late: when it is released.
type lateShow struct {
	jetstream.KeyValue
	claims  chan struct{} // one for each claim that waits
	release chan struct{} // closed: nothing waits any more
}

func (l lateShow) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if len(readAnnouncement(value).Holds) > 0 {
		select {
		case l.claims <- struct{}{}:
		default:
		}
		<-l.release
	}
	return l.KeyValue.Put(context.WithoutCancel(ctx), key, value)
}

// TestANodeServesWhatOthersKnowOf: a node that joins before the other one's heartbeat shows what it
// is about to serve gets its share, and nothing is served twice.
func TestANodeServesWhatOthersKnowOf(t *testing.T) {
	srv := server(t)
	late := lateShow{claims: make(chan struct{}, 1), release: make(chan struct{})}
	release := sync.OnceFunc(func() { close(late.release) })
	t.Cleanup(release)
	var both serving // what a and b serve together
	join := func(name string, kv func(jetstream.KeyValue) jetstream.KeyValue) *node {
		return start(t, srv, name, func(c *Config, s *serving) {
			c.Expiry, c.KV, c.Serve = soon, kv(c.KV), both.with(s, late.release)
		})
	}
	a := join("a", func(kv jetstream.KeyValue) jetstream.KeyValue { late.KeyValue = kv; return late })
	<-late.claims
	b := join("b", func(kv jetstream.KeyValue) jetstream.KeyValue { return kv })
	testkit.Eventually(t, soon, func() error {
		if n := len(b.serving.partitions()); n != count/2 {
			return fmt.Errorf("b serves %d", n)
		}
		return nil
	})
	release()
	balanced(t, map[string]*node{"a": a, "b": b})
	if both.max > 1 {
		t.Error("a partition was served twice at once")
	}
}

// TestAHeldPartitionIsNotWaitedForForEver: who holds it may be ill.
func TestAHeldPartitionIsNotWaitedForForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s serving
		ctx, cancel := context.WithCancel(t.Context())
		a := newAssignment(ctx, Config{Node: "me", Count: 2, Log: slog.New(slog.DiscardHandler), Serve: s.serve}, func() uint64 { return 0 })
		nodes, held, claimed := []Candidate{{Node: "me"}}, []int{1}, []int{0, 1}
		step := func(what string, whole bool, want ...int) {
			t.Helper()
			if got := a.reconcile(nodes, held, claimed); got != whole || !slices.Equal(partitions(a.serving()), want) {
				t.Errorf("%s: whole is %t, serving %v", what, got, partitions(a.serving()))
			}
		}
		step("it is held", false, 0)
		time.Sleep(handoverMax - 1)
		if a.overdue(time.Now()) {
			t.Error("overdue too soon")
		}
		step("it is held still", false, 0)
		time.Sleep(time.Nanosecond)
		if !a.overdue(time.Now()) {
			t.Error("not overdue")
		}
		step("long enough", true, 0, 1)
		if a.overdue(time.Now()) {
			t.Error("overdue although it is served")
		}
		cancel()
		for a.busy() {
			a.forget(<-a.ended)
		}
	})
}

// TestDrainPassesEachPartitionOnAsItIsDone: the next owner begins with each as soon as it is
// drained, and with none before.
func TestDrainPassesEachPartitionOnAsItIsDone(t *testing.T) {
	srv := server(t)
	release := make(chan struct{})
	var both serving // what a and b serve together
	b := joinWith(t, srv, "b", func(c *Config, s *serving) { c.Serve = both.with(s, nil) })
	a := joinWith(t, srv, "a", func(c *Config, s *serving) { c.Serve = both.with(s, release) })
	balanced(t, map[string]*node{"a": a, "b": b})
	both.mu.Lock()
	both.max = 0
	both.mu.Unlock()
	t.Cleanup(func() { close(release) })
	left := make(chan error, 1)
	go func() { left <- a.stop() }()
	for done := 1; done <= count/2; done++ {
		release <- struct{}{}
		testkit.Eventually(t, soon, func() error {
			if n := len(b.serving.partitions()); n != count/2+done {
				return fmt.Errorf("%d are drained, b serves %d", done, n)
			}
			return nil
		})
	}
	testkit.Check(t, <-left)
	if both.max > 1 {
		t.Error("a partition was served before it was drained")
	}
}

// TestWhatIsUnfencedEndsWhileTheNodeIsAway, and begins again when it hears itself.
func TestWhatIsUnfencedEndsWhileTheNodeIsAway(t *testing.T) {
	testkit.Slow(t, "waits until a node is believed to be away")
	srv := server(t)
	a := joinWith(t, srv, "a", func(c *Config, s *serving) { c.Unfenced, c.Serve = true, s.serve })
	balanced(t, map[string]*node{"a": a})
	srv.Stop()
	testkit.Eventually(t, soon, func() error {
		if n, said := len(a.serving.partitions()), len(a.Owned()); n+said > 0 {
			return fmt.Errorf("it serves %d and says %d", n, said)
		}
		return nil
	})
	srv.Restart(t)
	balanced(t, map[string]*node{"a": a})
	testkit.Equal(t, "Serve was called times", a.serving.total(), 2*count)
}
