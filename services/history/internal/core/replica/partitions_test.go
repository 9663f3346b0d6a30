package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// spreadShards is how many matching shards a bench with partitions has.
const spreadShards = 8

// spreadConfig has tasklists of as many partitions as count says when it is asked.
func spreadConfig(count *int) Config {
	cfg := smallConfig()
	cfg.Shards, cfg.Partitions = spreadShards, func(string, string) int { return *count }
	return cfg
}

// mailShard is the shard of a partition of the tasklist that benches submit to.
func mailShard(partition int) int { return ids.MatchingShard("shop", "mail", partition, spreadShards) }

// partitions spells where triggers go: the partition and the tasks of each batch.
func partitions(t *testing.T, fx *Effects) (all []string) {
	t.Helper()
	for i := range fx.Triggers {
		g := &fx.Triggers[i]
		testkit.Equal(t, fmt.Sprintf("a batch for partition %d goes to shard", g.Partition), g.Shard, ids.MatchingShard(g.Domain, g.Tasklist, int(g.Partition), spreadShards))
		all = append(all, fmt.Sprint(g.Partition, ":", triggered(&Effects{Effects: dispatch.Effects{Triggers: fx.Triggers[i : i+1]}})))
	}
	return all
}

// goTo reports whether triggers go elsewhere than wanted.
func (b *bench) goTo(what string, fx *Effects, want ...string) {
	b.Helper()
	if got := partitions(b.T, fx); !slices.Equal(got, want) {
		b.Errorf("%s: %q, want %q", what, got, want)
	}
}

// grant grants a task by a batch of a matching shard.
func (b *bench) grant(shard, n int, limits *taskstate.Path) *Effects {
	b.Helper()
	e := b.r.tasks[id(n)]
	b.seq++
	fx := b.step(&Events{
		Seq: b.seq, At: b.now.MS, Bytes: 10, ReplyTo: "matching", Shard: uint32(shard) + 1, Epoch: 1, RequestID: b.seq, Delivered: b.seq,
		Events: []taskstate.Event{{
			Kind: taskstate.Started, ID: id(n), Fence: ids.Token{Position: e.Position, Version: e.Version + 1, Nonce: 5}, Limits: limits,
		}},
	})
	testkit.MustEqual(b, fmt.Sprintf("task %d", n), e.State, taskstate.Running)
	return fx
}

// Tasks are given partitions in turn; what comes in one turn stays together, so that it is one message to one shard.
func TestPartitionsTakeTurns(t *testing.T) {
	count := 3
	b := newBench(t, spreadConfig(&count))
	b.goTo("the first turn", b.submit(nil, 1, 2, 3), "0:[1 2 3]")
	b.goTo("the second", b.submit(nil, 4), "1:[4]")
	typed := func(t *taskstate.Task) { t.Type = fmt.Sprint("type", t.ID[15]%2); t.Priority = 3 }
	b.goTo("several types", b.submit(typed, 5, 6), "2:[5]", "2:[6]")
	b.goTo("another tasklist", b.submit(func(t *taskstate.Task) { t.Tasklist = "bulk" }, 7), "0:[7]")
	fx := b.submit(nil, upFrom(100, dispatch.PackTriggers+2)...)
	b.goTo("more than a batch", fx, fmt.Sprint("0:", upFrom(100, dispatch.PackTriggers)), fmt.Sprint("1:", upFrom(100+dispatch.PackTriggers, 2)))

	b = newBench(t, spreadConfig(&count))
	b.seq++
	other := ids.NewTaskID(time.UnixMilli(scenarioStart), 5, 1)
	fx = b.step(&Submits{Lane: 3, Seq: b.seq, At: b.now.MS, Bytes: 10, Tasks: []*Entry{
		{Task: taskstate.Task{ID: other, Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}},
	}})
	b.goTo("another history partition begins elsewhere", fx, "2:[1]")

	for _, none := range []int{-1, 0, 1} {
		count = none
		b = newBench(t, spreadConfig(&count))
		for n := 1; n <= 3; n++ {
			b.goTo("one partition", b.submit(nil, n), fmt.Sprintf("0:[%d]", n))
		}
	}
	count = ids.PartitionsMax + 1
	b = newBench(t, spreadConfig(&count))
	for n := range ids.PartitionsMax {
		b.goTo("as many as there can be", b.submit(nil, n+1), fmt.Sprintf("%d:[%d]", n, n+1))
	}
	b.goTo("then from the first one on", b.submit(nil, 99), "0:[99]")
}

// TestI5_APartitionThatIsNoMore: what is ready stays where its trigger is. Whatever makes a trigger be sent again, it is sent to a partition
// that there is, so no task is without one.
func TestI5_APartitionThatIsNoMore(t *testing.T) {
	for what, again := range map[string]func(b *bench) *Effects{
		"hungry": func(b *bench) *Effects {
			b.now.MS += dispatch.MissingAgeMS + 1
			return b.hungry("shop", "mail")
		},
		"retrigger": func(b *bench) *Effects {
			fx := new(Effects)
			b.r.Retrigger("shop", -1, b.now.MS, &fx.Effects)
			b.r.Flush(b.now, fx)
			return fx
		},
		"old": func(b *bench) *Effects {
			b.now.MS += dispatch.OldAgeMS + 1
			return b.step(Tick{})
		},
	} {
		count := 8
		b := newBench(t, spreadConfig(&count))
		for n := range count {
			b.goTo(what, b.submit(nil, n+1), fmt.Sprintf("%d:[%d]", n, n+1))
		}
		count = 1
		b.now.MS++
		b.goTo(what+": nothing is sent by itself", b.step(Tick{}))
		b.goTo(what, again(b), "0:[1 2 3 4 5 6 7 8]")
		if err := b.r.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for n := range 8 {
			b.grant(mailShard(n), n+1, nil) // by the trigger in its partition before
			b.finish(taskstate.Succeeded, n+1)
		}
		if n := b.r.Describe("shop", "mail"); n.Completed != 8 || n.Ready+n.Running != 0 {
			t.Errorf("%s: %+v", what, n)
		}
	}

	count := 8
	b := newBench(t, spreadConfig(&count))
	for n := range count {
		b.submit(nil, n+1)
	}
	b.grant(mailShard(6), 7, nil)
	count = 2
	b.goTo("handed back", b.finish(taskstate.Released, 7), "0:[7]")
	b.grant(mailShard(5), 6, nil)
	b.finish(taskstate.Failed, 6)
	b.now.MS = b.r.tasks[id(6)].DueAt
	b.goTo("tried again", b.step(Tick{}), "1:[6]")
	fx := new(Effects)
	b.r.Retrigger("", mailShard(7), b.now.MS, &fx.Effects)
	b.r.Flush(b.now, fx)
	b.goTo("its shard has lost it", fx, "0:[8]")
}

// TestI5_RetriggerOfAPartition: a shard that has lost its triggers gets those of its partitions, and no others.
func TestI5_RetriggerOfAPartition(t *testing.T) {
	count := spreadShards + 2 // two more than shards
	b := newBench(t, spreadConfig(&count))
	for n := range count {
		b.submit(nil, n+1)
	}
	for shard := range spreadShards {
		var want []string
		for n := range count {
			if mailShard(n) == shard {
				want = append(want, fmt.Sprintf("%d:[%d]", n, n+1))
			}
		}
		fx := new(Effects)
		sent := b.r.Retrigger("", shard, b.now.MS, &fx.Effects)
		b.r.Flush(b.now, fx)
		if b.goTo(fmt.Sprint("shard ", shard), fx, want...); sent != len(want) || sent == 0 {
			t.Errorf("%d sent", sent)
		}
	}
}

// TestI5_OvertakingIsPerPartition: partitions drain at different speeds, so what another one has been granted says nothing of a trigger; what
// its own has, does. A grant by a trigger that was left in another partition says nothing either.
func TestI5_OvertakingIsPerPartition(t *testing.T) {
	count := 2
	b := newBench(t, spreadConfig(&count))
	healed := func() []int {
		b.now.MS += dispatch.HealEveryMS
		return triggered(b.step(Tick{}))
	}
	b.submit(nil, 1)
	b.now.MS += dispatch.PassedOverMS + 1
	b.goTo("a later one in the other partition", b.submit(nil, 2), "1:[2]")
	b.goTo("two later ones", b.submit(nil, 3, 4), "0:[3 4]")
	b.now.MS += dispatch.MissingAgeMS + dispatch.PassedOverMS
	b.grant(mailShard(1), 2, nil)
	b.equal("the other partition has been granted a later one", healed(), nil)
	b.grant(mailShard(1), 3, nil)
	b.equal("the other one has had a trigger of this one", healed(), nil)
	b.grant(mailShard(0), 4, nil)
	b.equal("its own has", healed(), []int{1})
}

// held spells the bookings of each shard that has some.
func (b *bench) held() (all []string) {
	for shard := range spreadShards {
		pages, _ := b.pages(dispatch.BookingsQuery{Shard: shard, All: true, BytesMax: 1 << 20})
		for _, p := range pages {
			all = append(all, fmt.Sprint(shard, " ", p))
		}
	}
	return all
}

// takeover is a bench of an owner that takes over with a snapshot, and reads the messages behind it.
func (b *bench) takeover(cfg Config, snap *Snapshot, log ...Input) *bench {
	b.Helper()
	next := &bench{T: b.T, r: New(cfg, &Start{Snapshot: snap, ClaimedAt: time.Hour}), now: b.now, seq: b.seq}
	for _, in := range log {
		next.step(in)
	}
	next.step(Recovered{})
	return next
}

// spreadLog is three tasks of a tasklist, and their grants: tasks 1 and 2 by the shard of partition 3, task 3 by that of the first one; 1 and 3
// hold slots.
func spreadLog() []Input {
	in := &Submits{Lane: 3, Seq: 1, At: scenarioStart, Bytes: 10}
	for n := 1; n <= 3; n++ {
		in.Tasks = append(in.Tasks, &Entry{Task: taskstate.Task{ID: id(n), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy}})
	}
	granted := func(seq uint64, partition, n int, limits *taskstate.Path) *Events {
		return &Events{
			Seq: seq, At: scenarioStart, Shard: uint32(mailShard(partition)) + 1, Epoch: 1, RequestID: seq, Delivered: seq,
			Events: []taskstate.Event{{
				Kind: taskstate.Started, ID: id(n), Fence: ids.Token{Position: ids.NewPosition(1, 3), Version: 1, Nonce: 5}, Limits: limits,
			}},
		}
	}
	slots := taskstate.NewPath("type/send")
	return []Input{in, granted(2, 3, 1, slots), granted(3, 3, 2, nil), granted(4, 0, 3, slots)}
}

// TestI8_AnAttemptIsCountedWhereItWasGranted: an attempt that the shard of partition 3 was granted holds its slots there: after a takeover that
// reads the grant, and after one that begins with a snapshot behind it. The release goes there, too.
func TestI8_AnAttemptIsCountedWhereItWasGranted(t *testing.T) {
	count := 5
	cfg := spreadConfig(&count)
	at := func(partition int, task string) string {
		return fmt.Sprintf(`%d shop/mail/send in %s +9000`, mailShard(partition), task)
	}
	want := []string{at(0, `"type/send" [3]`), at(3, `"type/send" [1]`), at(3, `"" [2]`)}
	slices.Sort(want)
	check := func(what string, b *bench) {
		t.Helper()
		got := b.held()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
		for n, own := range map[int]uint16{1: uint16(mailShard(3)) + 1, 3: 0} {
			if shard := b.r.Get(id(n)).Attempt.Shard; shard != own {
				t.Errorf("%s: task %d is of shard %d, want %d", what, n, shard, own)
			}
		}
	}
	first := newBench(t, cfg)
	for _, in := range spreadLog() {
		first.step(in)
	}
	check("live", first)
	check("a takeover that reads the grants", first.takeover(cfg, new(Snapshot), spreadLog()...))
	first.seq = 4
	next := first.takeover(cfg, first.snapshot())
	check("a takeover with a snapshot", next)

	for n, partition := range map[int]int{1: 3, 3: 0} {
		fx := next.finish(taskstate.Succeeded, n)
		if len(fx.Releases) != 1 || fx.Releases[0].Shard != mailShard(partition) || string(fx.Releases[0].Packed) != ids.Booking(id(n), 1) {
			t.Errorf("task %d is released by %+v", n, fx.Releases)
		}
	}
	next.finish(taskstate.Failed, 2)
	if got := next.held(); len(got) != 0 {
		t.Errorf("all are over, and held are %q", got)
	}
	next.now.MS = next.r.tasks[id(2)].DueAt
	next.grant(mailShard(0), 2, nil)
	testkit.Equal(t, "the next attempt is of shard", next.r.Get(id(2)).Attempt.Shard, 0)
}

// A snapshot may name a shard that there is none of, or one for a task that does not run: it is then that of the first partition.
func TestAShardThatThereIsNoneOf(t *testing.T) {
	count := 1
	for state, shard := range map[taskstate.State]uint16{taskstate.Running: spreadShards + 1, taskstate.Ready: 3} {
		task := taskstate.Task{
			ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, State: state, Position: ids.NewPosition(1, 3), Version: 1,
			Attempt: taskstate.Attempt{Nonce: 5, DeadlineAt: scenarioStart + 9000, Limits: taskstate.NewPath("type/send"), Shard: shard},
		}
		b := newBench(t, spreadConfig(&count)).takeover(spreadConfig(&count), &Snapshot{Seq: 4, Tasks: []SnapshotTask{{Task: task}}})
		if got := b.r.Get(id(1)); got == nil || got.State != state || got.Attempt.Shard != 0 {
			t.Errorf("%s: %+v", state, got)
		}
	}
}
