package api_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/gen/rpcv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func TestI5_LostTablesAreSentAgain(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.limits.set("pay", 2)
	s.start()
	s.history.submit("pay", 1, 3)
	s.history.submit("free", 3, 3)
	s.awaitReady(6)
	running := s.send(2, patience, func(p *rpcv1.Poll) { p.Types = []string{"pay"} }).tasks()
	if len(running) != 2 {
		t.Fatalf("got %v", running)
	}
	s.store.Forget()
	free := func(p *rpcv1.Poll) { p.Types = []string{"free"} }
	for got := 0; got < 3; {
		got += len(s.send(3, patience, free).tasks())
	}
	waiting := s.send(5, patience, nil)
	s.awaitPolls(1)
	s.await(func() error { // restored: the limit is full again
		d, err := s.describe()
		if err == nil && d.Slots["pay"] != 2 {
			err = fmt.Errorf("%v", d)
		}
		return err
	})
	s.history.complete(running[:1])
	if got := waiting.tasks(); len(got) != 1 || got[0].Type != "pay" {
		t.Fatalf("got %v", got)
	}
	if s.history.count(func() int { return s.history.most["pay"] }) > 2 {
		t.Fatal("the limit was exceeded")
	}
}

func TestHintStreamIsMadeAgain(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "waits for what is lost to be noticed")
	s := newStack(t)
	s.start()
	s.history.submit("a", 3, 1)
	s.poll(1)
	s.server.Restart(t)
	s.await(func() error {
		_, err := s.js.Stream(context.Background(), topology.MatchingStream(0))
		return err
	})
	s.await(func() error { _, err := s.describe(); return err })
	s.history.submit("a", 3, 1)
	s.poll(1)
}

// redisStack is a stack whose tables are in Redis.
func redisStack(t *testing.T) (*stack, *testkit.Redis) {
	r := testkit.RunRedis(t)
	client, err := redistable.Connect(redistable.Config{Addrs: []string{r.Addr}})
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	s := newStack(t)
	s.tables = func() tables.Tables { return redistable.New(client, 0, nil) }
	return s, r
}

// TestI5_RedisAwayAndBack: while Redis is away unlimited types meet waiting polls;
// when it is back, empty, everything goes on by itself.
func TestI5_RedisAwayAndBack(t *testing.T) {
	t.Parallel()
	s, r := redisStack(t)
	s.limits.set("pay", 2)
	s.start()
	s.history.submit("pay", 1, 4)
	s.history.submit("free", 3, 2)
	running := s.send(2, patience, func(p *rpcv1.Poll) { p.Types = []string{"pay"} }).tasks()
	if len(running) != 2 {
		t.Fatalf("got %v", running)
	}
	waiting := s.send(1, patience, func(p *rpcv1.Poll) { p.Types = []string{"other"} })
	s.awaitPolls(1)
	r.Stop()
	s.history.submit("other", 3, 1)
	if got := waiting.tasks(); len(got) != 1 {
		t.Fatalf("without Redis came %v", got)
	}
	s.history.complete(running)
	r.Restart(t)
	s.drainWith(3, 4)
	if most := s.history.count(func() int { return s.history.most["pay"] }); most > 2 {
		t.Fatalf("%d of a limit of 2 ran at once", most)
	}
}

func TestI8_ManyWorkersOnRedis(t *testing.T) {
	t.Parallel()
	s, _ := redisStack(t)
	s.limits.set("pay", 4)
	s.start()
	for i := range 30 {
		s.history.submit("pay", 1+i%3, 5)
		s.history.submit("free", 3, 20)
	}
	s.drainWith(10, 750)
	if most := s.history.count(func() int { return s.history.most["pay"] }); most > 4 {
		t.Fatalf("%d of a limit of 4 ran at once", most)
	}
	s.await(func() error {
		d, err := s.describe()
		if err == nil && (d.Slots["pay"] != 0 || d.Ready != 0) {
			err = fmt.Errorf("left behind: %v", d)
		}
		return err
	})
}
