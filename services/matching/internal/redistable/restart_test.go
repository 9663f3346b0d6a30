package redistable_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/redistable"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tables"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/tabletest"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// shards are two shards of domain "d" that use one limit of three, as matching does.
type shards struct {
	t      testing.TB
	tables [2]tables.Tables
	epochs [2]string
	held   [2]int
	calls  uint64
	tasks  uint64
}

const payMax = 3

func newShards(t testing.TB, s store) *shards {
	all := &shards{t: t}
	for i := range all.tables {
		all.tables[i] = s.Shard(i)
		all.open(i)
	}
	return all
}

func (s *shards) open(i int) table.Opened {
	s.t.Helper()
	opened, err := s.tables[i].Open(context.Background(), "d")
	testkit.NoError(s.t, err)
	s.epochs[i] = opened.Epoch
	return opened
}

// book has a shard state what it holds, and take n of as many triggers.
func (s *shards) book(i, n int) (table.Outcome, error) {
	s.calls++
	c := table.Chunk{Tasklist: table.Tasklist{Domain: "d", Name: fmt.Sprint("l", i)}, Column: table.Column{Priority: 3, Type: "pay"}, ReadyAt: 1}
	for range n {
		s.tasks++
		c.Triggers = ids.AppendTrigger(c.Triggers, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, s.tasks)})
	}
	call := table.Call{
		Domain: "d", Shard: i, Shards: 2, Epoch: s.epochs[i], Seq: table.Seq{Epoch: 1, Call: s.calls},
		Stances: []table.Stance{{Ref: "type/pay", Max: payMax, Held: s.held[i], TTL: time.Minute}}, Put: []table.Chunk{c},
		Wants: []table.Want{{Tasklist: c.Tasklist, N: n, Candidates: []table.Candidate{{Column: c.Column, Path: []int{0}}}}},
	}
	outcomes, errs := s.tables[i].Do(context.Background(), []table.Call{call})
	if errs[0] == nil {
		for _, taken := range outcomes[0].Taken {
			for _, b := range taken.Batches {
				s.held[i] += len(b.Triggers) / ids.TriggerBytes
			}
		}
	}
	return outcomes[0], errs[0]
}

func (s *shards) mustBook(i, n int) table.Outcome {
	s.t.Helper()
	out, err := s.book(i, n)
	testkit.NoError(s.t, err)
	if s.held[0]+s.held[1] > payMax {
		s.t.Fatalf("I8: %v are held, at most %d", s.held, payMax)
	}
	return out
}

// comesBack checks that a server that lost what happened last grants nothing until each
// shard has said again what it holds. It had granted two slots then, and one more since.
func (s *shards) comesBack() {
	s.t.Helper()
	for i := range s.tables {
		if out := s.mustBook(i, 3); !out.Lost {
			s.t.Fatalf("shard %d: %+v, want a lost epoch", i, out)
		}
		if opened := s.open(i); len(opened.Columns) > 0 {
			s.t.Fatalf("shard %d found triggers of another life: %+v", i, opened.Columns)
		}
	}
	for range 2 {
		if out := s.mustBook(1, 3); !out.Limits[0].Restoring || len(out.Taken[0].Batches) > 0 {
			s.t.Fatalf("granted before all shards have said what they hold: %+v", out)
		}
	}
	if out := s.mustBook(0, 3); out.Limits[0] != (table.LimitState{Used: payMax}) {
		s.t.Fatalf("all shards have said what they hold: %+v", out.Limits)
	}
	s.held[0]--
	s.mustBook(0, 0)
	s.mustBook(1, 3)
	if s.held[0]+s.held[1] != payMax {
		s.t.Fatalf("a free slot was not granted: %v", s.held)
	}
}

func await(t testing.TB, client redis.UniversalClient) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() error { return client.Ping(context.Background()).Err() })
}

// R32, I8: killed, and started again from a snapshot that is older than what it granted.
func TestI8_R32_ARestartFromASnapshotOverbooksNothing(t *testing.T) {
	t.Parallel()
	s, server := run(t, "--save", "3600 1")
	all := newShards(t, s)
	all.mustBook(1, 0)
	all.mustBook(0, 2)
	testkit.NoError(t, s.client.Save(t.Context()).Err())
	all.mustBook(1, 3)
	server.Restart(t)
	await(t, s.client)
	testkit.MustEqual(t, "the snapshot was not loaded, so this test shows nothing", s.client.Exists(t.Context(), topology.SlotsKey("d", "type/pay")).Val(), 1)
	if counts, err := all.tables[0].Slots(t.Context(), "d", []table.Ref{"type/pay"}); err != nil || counts[0] != 0 {
		t.Fatalf("slots of another run are counted: %v %v", counts, err)
	}
	all.comesBack()
}

// snapshots is a store that loses its memory by starting again from a snapshot: of just now, or of any earlier life.
type snapshots struct {
	store
	server *testkit.Redis
	random *rand.Rand
	// newest and older count the snapshots of each kind that were loaded with keys in them.
	newest, older int
}

func (s *snapshots) Forget() {
	s.t.Helper()
	fresh := s.random.IntN(2) == 0
	if fresh {
		testkit.NoError(s.t, s.client.Save(context.Background()).Err())
	}
	s.server.Restart(s.t)
	await(s.t, s.client)
	for _, node := range s.nodes { // they connect again
		await(s.t, node)
	}
	switch n := s.client.DBSize(context.Background()).Val(); {
	case n > 0 && fresh:
		s.newest++
	case n > 0:
		s.older++
	}
}

// I8: whatever snapshot a server starts from, and whenever, it answers as one that has lost everything. So what holds in the storms of
// core/match, whose tables forget all, holds for snapshots too.
func TestI8_R32_AnySnapshotIsAsGoodAsNone(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "runs the suite of tables once more, or many times")
	s, server := run(t, "--save", "")
	old := &snapshots{store: s, server: server, random: testkit.Seed(t)}
	tabletest.ExerciseRandomly(t, old)
	if old.newest == 0 || old.older == 0 {
		t.Errorf("%d snapshots of just now were loaded, %d older ones", old.newest, old.older)
	}
}

// I8: all keys are lost while the server goes on.
func TestI8_AFlushOverbooksNothing(t *testing.T) {
	t.Parallel()
	s, _ := run(t)
	all := newShards(t, s)
	all.mustBook(1, 0)
	all.mustBook(0, 2)
	all.mustBook(1, 3)
	s.Forget()
	all.comesBack()
}

// I8: a replica is promoted that has not seen the last that was granted.
func TestI8_APromotedReplicaOverbooksNothing(t *testing.T) {
	t.Parallel()
	s, server := run(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(server.Addr, ":")
	replica, _ := run(t, "--replicaof", host+" "+port)
	all := newShards(t, s)
	all.mustBook(1, 0)
	all.mustBook(0, 2)
	testkit.Eventually(t, 20*time.Second, func() error {
		if all := replica.client.HGet(t.Context(), topology.SlotsKey("d", "type/pay"), "all").Val(); !strings.Contains(all, " 2 2 ") {
			return fmt.Errorf("%q has come to the replica", all)
		}
		return nil
	})
	testkit.NoError(t, replica.client.ReplicaOf(t.Context(), "NO", "ONE").Err())
	all.mustBook(1, 3)
	server.Stop()
	for i := range all.tables {
		all.tables[i] = replica.Shard(i)
	}
	all.comesBack()
}

// Tables of a life that is over are cleared when a new one begins: their triggers
// come again from history, and would be there twice. What is of another shard stays.
func TestALifeThatIsOverLeavesNothing(t *testing.T) {
	t.Parallel()
	testkit.Slow(t, "restarts a Redis with thousands of keys")
	s, server := run(t, "--save", "3600 1")
	tables := s.Shard(0)
	opened, err := tables.Open(t.Context(), "d")
	testkit.NoError(t, err)
	call := table.Call{Domain: "d", Shards: 2, Epoch: opened.Epoch}
	for i := range 2500 {
		c := table.Chunk{Tasklist: table.Tasklist{Domain: "d", Name: fmt.Sprint("l", i)}, Column: table.Column{Priority: 1 + i%5, Type: "a"}, ReadyAt: 1}
		c.Triggers = ids.AppendTrigger(nil, ids.Trigger{Version: uint32(i)})
		call.Put = append(call.Put, c)
	}
	if outcomes, errs := tables.Do(t.Context(), []table.Call{call}); errs[0] != nil || outcomes[0].Lost {
		t.Fatal(outcomes, errs)
	}
	testkit.NoError(t, s.client.Save(t.Context()).Err())
	server.Restart(t)
	await(t, s.client)
	testkit.MustEqual(t, "keys were loaded", len(s.keys()), 5001)
	if other, err := s.Shard(1).Open(t.Context(), "d"); err != nil || len(other.Columns) > 0 || len(s.keys()) != 5001 {
		t.Fatalf("another shard: %v %v, %d keys", other.Columns, err, len(s.keys()))
	}
	again, err := tables.Open(t.Context(), "d")
	if err != nil || again.Epoch == opened.Epoch || len(again.Columns) > 0 {
		t.Fatalf("%+v %v", again, err)
	}
	if keys := s.keys(); len(keys) > 0 {
		t.Fatalf("%d keys are left, such as %s", len(keys), keys[0])
	}
}

// A server that no longer knows the scripts gets them in one more round trip.
func TestAScriptIsSentAgainWhereTheServerDoesNotKnowIt(t *testing.T) {
	t.Parallel()
	s, _ := run(t)
	trips := 0
	tables := redistable.New(s.client, 0, func(string, time.Duration) { trips++ })
	calls := make([]table.Call, 3)
	for i := range calls {
		opened, err := tables.Open(t.Context(), fmt.Sprint("d", i))
		testkit.NoError(t, err)
		calls[i] = table.Call{Domain: fmt.Sprint("d", i), Shards: 1, Epoch: opened.Epoch}
	}
	for round, want := range []int{2, 1, 2} {
		if round == 2 {
			testkit.NoError(t, s.client.ScriptFlush(t.Context()).Err())
		}
		trips = 0
		outcomes, errs := tables.Do(t.Context(), calls)
		for i := range calls {
			if errs[i] != nil || outcomes[i].Lost {
				t.Fatalf("round %d: %+v %v", round, outcomes[i], errs[i])
			}
		}
		testkit.MustEqual(t, fmt.Sprintf("round %d: round trips", round), trips, want)
	}
}

// R8: a node of a cluster that is away fails its own domains and no others.
func TestR8_ANodeThatIsAwayHarmsItsOwnDomainsOnly(t *testing.T) {
	t.Parallel()
	s, servers := cluster(t, 3)
	tables := s.Shard(0)
	var calls []table.Call
	byGroup := map[string]int{}
	for i := range 30 {
		domain := fmt.Sprint("d", i)
		opened, err := tables.Open(t.Context(), domain)
		testkit.NoError(t, err)
		calls = append(calls, table.Call{Domain: domain, Shards: 1, Epoch: opened.Epoch})
		byGroup[tables.Group(domain)]++
	}
	if len(byGroup) != 3 {
		t.Fatalf("domains by group: %v", byGroup)
	}
	owner := func(domain string) string {
		node, err := s.client.(*redis.ClusterClient).MasterForKey(t.Context(), topology.EpochKey(domain, 0))
		testkit.NoError(t, err)
		return node.Options().Addr
	}
	away := make([]bool, len(calls))
	groups := map[string]string{}
	for i, c := range calls {
		away[i] = owner(c.Domain) == servers[1].Addr
		if g, known := groups[owner(c.Domain)]; known && g != tables.Group(c.Domain) {
			t.Fatalf("%s is in group %q, others of its node in %q", c.Domain, tables.Group(c.Domain), g)
		}
		groups[owner(c.Domain)] = tables.Group(c.Domain)
	}
	servers[1].Stop()
	outcomes, errs := tables.Do(t.Context(), calls)
	for i := range calls {
		if failed := errs[i] != nil; failed != away[i] || outcomes[i].Lost || outcomes[i].Overtaken {
			t.Fatalf("%s, node away: %v: %v %+v", calls[i].Domain, away[i], errs[i], outcomes[i])
		}
	}
}

// A call that fails on the server fails alone.
func TestACallThatFailsLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	s, _ := run(t)
	tables := s.Shard(0)
	var calls []table.Call
	for _, domain := range []string{"a", "b", "c"} {
		opened, err := tables.Open(t.Context(), domain)
		testkit.NoError(t, err)
		calls = append(calls, table.Call{
			Domain: domain, Shards: 1, Epoch: opened.Epoch, Seq: table.Seq{Epoch: 1, Call: 1}, Stances: []table.Stance{{Ref: "type/x", Max: 1, Held: 1}},
		})
	}
	testkit.NoError(t, s.client.Set(t.Context(), topology.SlotsKey("b", "type/x"), "not a hash", 0).Err())
	outcomes, errs := tables.Do(t.Context(), calls)
	for i := range calls {
		if failed := errs[i] != nil; failed != (i == 1) || !failed && outcomes[i].Limits[0].Used != 1 {
			t.Fatalf("call %d: %v %+v", i, errs[i], outcomes[i])
		}
	}
}
