package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tree"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// upAfter is when a poll goes up from a quiet partition, upBusyAfter from one that is not.
const upAfter, upBusyAfter = 10 * ms, 100 * ms

// spreadOver is a world of so many shards, with a tasklist l0 of so many partitions.
func spreadOver(t *testing.T, shards, partitions int) *world {
	w := newWorld(t, shards, 2)
	w.spread["l0"] = partitions
	for shard := range shards {
		w.own(shard, 1)
	}
	w.run(20 * ms)
	return w
}

// pollAt polls a partition of l0.
func (w *world) pollAt(inbox string, partition int, types ...string) {
	w.poll(inbox, waiting.Poll{Domain: "d", Tasklist: "l0", Partition: partition, Max: 1, Types: types, For: 30 * time.Second})
}

// readyAt makes tasks of l0 in a partition.
func (w *world) readyAt(partition int, typ string, n int) []*task {
	var made []*task
	for range n {
		t := w.task("d", "l0", typ, 1, len(w.tasks)%len(w.partitions))
		t.part, t.shard = partition, w.shardOf("l0", partition)
		made = append(made, t)
	}
	w.trigger(made...)
	return made
}

// at is the partition in which a poll waits, -1 if it does not.
func (w *world) at(inbox string) int {
	for _, o := range w.owners {
		if _, waits := o.live[inbox]; waits {
			return w.polls[inbox].poll.Partition
		}
	}
	return -1
}

// A poll that finds nothing goes up after 10 ms, and from there to the partition where a trigger comes, through all levels of the tree: a
// task waits for a few messages only, wherever its worker is.
func TestATaskFindsAPollInAnyPartition(t *testing.T) {
	for _, from := range []int{0, 3, 21, 40, 63} {
		for _, to := range []int{0, 1, 5, 22, 59} {
			w := spreadOver(t, 4, 64)
			w.pollAt("p", from)
			w.run(50 * ms)
			testkit.MustEqual(t, fmt.Sprintf("the poll of partition %d waits in", from), w.at("p"), 0)
			made := w.readyAt(to, "a", 1)[0]
			w.run(15 * ms)
			testkit.Equal(t, fmt.Sprintf("a task of partition %d did not come to the poll of %d: %s", to, from, made.state), w.polls["p"].tasks, 1)
		}
	}
}

// In a partition to which triggers come, or where some wait for slots, a poll waits for longer.
func TestHowLongAPollStays(t *testing.T) {
	w := spreadOver(t, 2, 2)
	for i := range 12 { // each 8 ms
		w.after(time.Duration(i)*8*ms, func() {
			w.readyAt(1, "a", 1)
			w.pollAt(fmt.Sprint("taker", i), 1, "a")
		})
	}
	w.run(5 * ms)
	w.pollAt("p", 1, "b")
	for _, until := range []time.Duration{40, 90} {
		w.run(until*ms - w.now + 20*ms)
		if at := w.at("p"); at != 1 {
			t.Fatalf("after %v it waits in %d", w.now-25*ms, at)
		}
	}
	w.run(40 * ms)
	testkit.Equal(t, fmt.Sprintf("it stays for longer than %v", upBusyAfter), w.at("p"), 0)

	w = newWorld(t, 1, 1)
	w.limits["d/a"], w.ends = 1, false
	w.own(0, 1)
	w.run(20 * ms)
	w.pollAt("runs", 1)
	w.readyAt(1, "a", 5)
	w.run(20 * ms)
	w.pollAt("p", 1)
	w.run(80 * ms)
	testkit.Equal(t, "with triggers that wait for slots it waits in", w.at("p"), 1)
	w.run(40 * ms)
	testkit.Equal(t, fmt.Sprintf("it stays for longer than %v", upBusyAfter), w.at("p"), 0)
}

// A root with work of its own sends polls down to what is older in a partition that is no more, and keeps them for what is younger: that
// drains in its turn, however much comes.
func TestPartitionsThatAreNoMoreDrainByAge(t *testing.T) {
	w := spreadOver(t, 2, 1)
	w.readyAt(0, "a", 20)
	w.run(50 * ms)
	old := w.readyAt(1, "a", 20)
	w.run(50 * ms)
	young := w.readyAt(0, "a", 100)
	w.run(50 * ms)
	for i := range 45 {
		w.pollAt(fmt.Sprint("p", i), 0)
		w.run(20 * ms)
		if i == 15 && done(old) > 0 {
			t.Errorf("%d of partition 1 came before older ones of the root", done(old))
		}
	}
	if n := done(old); n < 19 || done(young) > 6 {
		t.Errorf("%d of 20 older tasks of partition 1 are done, and %d younger ones of the root", n, done(young))
	}
}

// A root with work of its own keeps its polls for it, though something as urgent waits for longer in a partition that gets polls, too: else a
// flood there would have them all. What is more urgent gets one.
func TestI11_ARootKeepsItsPollsForWhatIsAsUrgent(t *testing.T) {
	for _, c := range []struct {
		name string
		own  int
		want int
	}{{"as urgent", 1, 0}, {"less urgent", 2, 10}} {
		w := spreadOver(t, 2, 2)
		old := w.readyAt(1, "a", 20)
		w.run(50 * ms)
		var own []*task
		for i := range 20 {
			own = append(own, w.task("d", "l0", "a", c.own, i%len(w.partitions)))
			own[i].part, own[i].shard = 0, w.shardOf("l0", 0)
		}
		w.trigger(own...)
		w.run(50 * ms)
		for i := range 10 {
			w.pollAt(fmt.Sprint("p", i), 0)
			w.run(20 * ms)
		}
		if n := done(old); n != c.want || done(own) != 10-n {
			t.Errorf("%s: polls of the root got %d of partition 1 and %d of its own", c.name, n, done(own))
		}
	}
}

// done counts the tasks that are done.
func done(all []*task) (n int) {
	for _, t := range all {
		if t.state == "done" {
			n++
		}
	}
	return n
}

// A poll is sent down only for what it takes, and only as many as are wanted.
func TestPollsAreSentForWhatTheyTake(t *testing.T) {
	w := spreadOver(t, 2, 2)
	for i := range 5 {
		w.pollAt(fmt.Sprint("b", i), 0, "b")
		w.pollAt(fmt.Sprint("a", i), 0, "a")
	}
	w.run(20 * ms)
	w.readyAt(1, "a", 2)
	w.run(9 * ms)
	if w.moves != 2 || w.counts.PollsDown != 2 || w.done() != 0 && w.grantedN != 2 {
		t.Errorf("%d polls were sent for 2 tasks, %d granted", w.moves, w.grantedN)
	}
	w.run(100 * ms)
	for i := range 5 {
		testkit.Equal(t, fmt.Sprintf("poll b%d was sent away", i), w.at(fmt.Sprint("b", i)), 0)
	}
}

// A poll that no frontend takes is answered empty.
func TestAPollThatNoFrontendTakesIsAnswered(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.mute = func(string) bool { return true }
	w.pollAt("p", 1)
	w.run(50 * ms)
	testkit.Equal(t, "moves", w.moves, 0)
	testkit.Equal(t, "answers", w.polls["p"].answered, 1)
	testkit.Equal(t, "where it waits", w.at("p"), -1)
}

// Polls do not go round while nothing can be had: a limit that is full for a minute costs a few messages a second.
func TestPollsDoNotGoRound(t *testing.T) {
	w := spreadOver(t, 2, 8)
	w.limits["d/a"], w.ends = 1, false
	w.limitsChanged()
	w.run(100 * ms)
	for p := range 8 {
		w.readyAt(p, "a", 20)
	}
	for i := range 16 {
		w.poll(fmt.Sprint("p", i), waiting.Poll{Domain: "d", Tasklist: "l0", Partition: i % 8, Max: 1, For: time.Minute})
	}
	w.run(50 * time.Second)
	testkit.MustEqual(t, "run", w.grantedN, 1)
	if w.moves > 50*16 {
		t.Errorf("16 polls moved %d times in 50 s", w.moves)
	}
	if len(w.hungry) > 0 && w.hungry[len(w.hungry)-1].Present[0] != "a" {
		t.Errorf("history was asked for what partitions hold: %+v", w.hungry)
	}
}

// What partitions below hold is not asked of history, though their triggers wait for slots.
func TestR33WhatPartitionsHoldIsNotAskedFor(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.limits["d/a"], w.ends = 1, false
	w.limitsChanged()
	w.run(100 * ms)
	w.readyAt(1, "a", 20)
	w.keepPolling(500*ms, "l0", "a", "b")
	w.run(2 * time.Minute)
	for _, h := range w.hungry {
		if !slices.Equal(h.Present, []string{"a"}) {
			t.Fatalf("asked for %+v", h)
		}
	}
	if len(w.hungry) == 0 {
		t.Fatal("history was not asked at all")
	}
	n := 0
	for _, o := range w.owners {
		ready, _ := counts(o.s, "d", "l0")
		n += ready
	}
	testkit.Equal(t, "the tables hold triggers of 19 tasks", n, 19)
}

// What a partition has said counts for a while only, and its parent forgets it.
func TestWhatIsSaidIsForgotten(t *testing.T) {
	w := spreadOver(t, 1, 1)
	o := w.owners[0]
	for p := 1; p < 64; p++ {
		b := tree.Branch{Tasklist: table.Tasklist{Domain: "d", Name: "l0", Partition: p}, Wanted: []tree.Wanted{{Column: table.Column{Priority: 1, Type: "a"}, ReadyAt: 1, Triggers: 5}}}
		o.give(func(in *Inputs) { in.Branches = append(in.Branches, b) })
	}
	for _, bad := range []table.Tasklist{{Domain: "d", Name: "l0"}, {Domain: "d", Name: "l0", Partition: 64}, {Name: "l0", Partition: 1}, {Domain: "d", Partition: 1}} {
		o.give(func(in *Inputs) { in.Branches = append(in.Branches, tree.Branch{Tasklist: bad}) })
	}
	w.run(10 * ms)
	if o.s.lists[table.Tasklist{Domain: "d", Name: "l0"}].node.Idle() || w.counts.Malformed != 4 {
		t.Fatalf("%d hints were malformed", w.counts.Malformed)
	}
	w.run(5 * time.Minute)
	checkEmpty(t, o.s)
}

// Frontends hear each second what waits in each partition of a tasklist that has several, and how many came; of others as long as something waits.
func TestFrontendsHearWhatWaits(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.ready("d", "l0", "b", 1, 2) // opens the domain at both shards
	w.ready("d", "l1", "a", 1, 5)
	w.run(50 * ms)
	w.readyAt(0, "a", 20)
	for i := range 30 {
		w.after(time.Duration(i)*100*ms, func() { w.readyAt(1, "a", 2) })
	}
	w.run(3500 * ms)
	n := map[table.Tasklist][]tree.Load{}
	for _, l := range w.loads {
		n[l.Tasklist] = append(n[l.Tasklist], l)
	}
	if got := n[table.Tasklist{Domain: "d", Name: "l0"}]; len(got) < 3 || len(got) > 4 || got[1].Triggers < 20 || got[1].Triggers > 22 || got[2].PerSecond != 0 {
		t.Errorf("of partition 0: %+v", got)
	}
	if got := n[table.Tasklist{Domain: "d", Name: "l0", Partition: 1}]; len(got) < 2 || len(got) > 4 || got[1].PerSecond < 15 || got[1].PerSecond > 25 {
		t.Errorf("of partition 1: %+v", got)
	}
	if got := n[table.Tasklist{Domain: "d", Name: "l1"}]; len(n) != 3 || len(got) < 3 || got[0].Triggers != 5 || got[2].Triggers < 5 {
		t.Errorf("heard of %v", n)
	}
}

// Of a tasklist whose number of partitions the engine sets, frontends hear also while it has one, and go on hearing when nothing comes and
// no one polls, of as many partitions as there are: one that is not reported would be unknown. Once it is set by no one it is forgotten.
func TestFrontendsHearOfTasklistsThatScale(t *testing.T) {
	w := spreadOver(t, 1, 2)
	w.scales["l0"] = true
	w.ready("d", "l1", "a", 1, 5)
	w.readyAt(0, "a", 20)
	serve := func(list string, partition, until int) {
		t.Helper()
		for i := 0; w.done() < until; i++ {
			if i > 100 {
				t.Fatalf("%d of %d are done", w.done(), until)
			}
			w.poll(fmt.Sprint(list, until, i), waiting.Poll{Domain: "d", Tasklist: list, Partition: partition, Max: 100, For: 50 * ms})
			w.run(100 * ms)
			w.finishAll()
		}
	}
	serve("l1", 0, 5)
	serve("l0", 0, 25)
	heard := func() map[int]int {
		n := map[int]int{}
		w.loads = nil
		w.run(5 * time.Minute)
		for _, l := range w.loads {
			if l.Name != "l0" {
				t.Errorf("heard of %v", l)
			}
			n[l.Partition]++
		}
		return n
	}
	if n := heard(); n[0] < 100 || len(n) != 1 {
		t.Errorf("one partition: so many reports of each %v", n)
	}
	w.spread["l0"] = 2
	w.readyAt(1, "a", 5)
	serve("l0", 1, 30)
	if n := heard(); n[0] < 100 || n[1] < 100 {
		t.Errorf("two partitions: %v", n)
	}
	w.spread["l0"] = 1
	heard()
	if n := heard(); n[0] < 100 || n[1] > 0 {
		t.Errorf("one partition again: %v", n)
	}
	w.scales["l0"] = false
	heard()
	if n := heard(); len(n) > 0 {
		t.Errorf("its number is set by no one: %v", n)
	}
	for shard := range w.shards {
		checkEmpty(t, w.newest(shard).s)
	}
}

// A poll that came back stays for a second: its parent has no owner.
func TestAPollThatCameBackStays(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Partition: 1, Max: 1, For: time.Minute, Moved: true, Back: true})
	w.run(900 * ms)
	testkit.Equal(t, "it was given up again", w.at("p"), 1)
	w.run(200 * ms)
	testkit.Equal(t, "it stays", w.at("p"), 0)
}

// In a partition to which no trigger came recently a poll goes up at once, one that another partition gave up after as long: it was sent for
// something, and is not to go round.
func TestPollsLeaveAQuietPartitionAtOnce(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.readyAt(1, "b", 1)
	w.run(upAfter + 10*ms)
	w.pollAt("new", 1, "a")
	w.poll("moved", waiting.Poll{Domain: "d", Tasklist: "l0", Partition: 1, Max: 1, Types: []string{"a"}, For: time.Minute, Moved: true})
	w.run(5 * ms)
	if w.at("new") != 0 || w.at("moved") != 1 {
		t.Errorf("after 5 ms a new poll waits in %d, one that was moved in %d", w.at("new"), w.at("moved"))
	}
	w.run(upAfter)
	testkit.Equal(t, "one that was moved stays", w.at("moved"), 0)
}

// An owner that has ended answers polls that it gave up to a frontend that is gone: no one else would.
func TestPollsGivenUpAtTheEndAreAnswered(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.mute = func(string) bool { return true }
	w.delay = func() time.Duration { return 5 * ms }
	w.pollAt("p", 1)
	w.run(ms)
	o := w.newest(w.shardOf("l0", 1))
	o.give(func(in *Inputs) { in.Drain = true })
	w.run(ms)
	if !o.drained {
		t.Fatal("it has something under way")
	}
	w.run(20 * ms)
	testkit.Equal(t, "the poll was answered", w.polls["p"].answered, 1)
}

// A trigger that waits until it can be stored, since a call to the tables is under way, is news when it is.
func TestWhatIsStoredLateIsNews(t *testing.T) {
	w := spreadOver(t, 2, 2)
	w.pollAt("p", 0, "a")
	w.readyAt(1, "b", 1) // opens the domain
	w.run(50 * ms)
	w.delay = func() time.Duration { return 20 * ms }
	w.readyAt(1, "b", 1)
	w.run(20 * ms)
	w.readyAt(1, "a", 1)
	w.run(400 * ms)
	testkit.Equal(t, "the poll waits at the root, and a trigger of its type in the partition below", w.polls["p"].tasks, 1)
}

// Frontends keep polls of a tasklist until they hear that something waits: they hear of it at once, unless a poll is here that takes it, again each second, and
// soon that nothing waits any more.
func TestPollsAreCalledForWhatWaits(t *testing.T) {
	w := spreadOver(t, 1, 1)
	w.ready("d", "l0", "a", 1, 1) // opens the domain
	w.poll("p1", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 10, For: time.Second})
	w.run(3 * time.Second)
	w.loads = nil
	w.poll("p2", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 10, For: time.Second})
	w.run(50 * ms)
	w.readyAt(0, "a", 3)
	w.run(3 * time.Second)
	if len(w.loads) > 0 {
		t.Fatalf("a poll was here, and frontends hear of %v", w.loads)
	}
	w.readyAt(0, "a", 3)
	w.run(5 * ms)
	if len(w.loads) != 1 || w.loads[0].Triggers != 3 {
		t.Fatalf("at once they hear of %v", w.loads)
	}
	w.run(2 * time.Second)
	if n := len(w.loads); n < 2 || n > 4 || w.loads[n-1].Triggers != 3 {
		t.Fatalf("while it waits they hear of %v", w.loads)
	}
	w.poll("p3", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 10, For: time.Second})
	w.run(2 * sweepEvery)
	n := len(w.loads)
	if w.loads[n-1].Triggers != 0 {
		t.Fatalf("in the end they hear of %v", w.loads)
	}
	w.run(5 * time.Minute)
	if len(w.loads) != n {
		t.Errorf("and then of %v", w.loads[n:])
	}
	checkEmpty(t, w.owners[0].s)
}

// idleWorld has a shard that has served a poll, and then slept.
func idleWorld(t *testing.T) *world {
	w := spreadOver(t, 1, 1)
	w.readyAt(0, "a", 1)
	w.poll("first", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Second})
	w.run(30 * time.Second)
	w.loads = nil
	return w
}

// A poll may take less than frontends sent it for, as its answer has no room: they hear soon what is left, since their polls stay with them else.
func TestFrontendsHearSoonWhatAPollHasLeft(t *testing.T) {
	w := idleWorld(t)
	w.readyAt(0, "a", 30)
	w.run(1600 * ms)
	before := len(w.loads)
	w.poll("p1", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 3, For: time.Second})
	w.run(100 * ms)
	if n := len(w.loads); n != before+1 || w.loads[n-1].Triggers != 27 {
		t.Errorf("they hear of %v", w.loads[before:])
	}
	for i := range 5 {
		w.poll(fmt.Sprint("q", i), waiting.Poll{Domain: "d", Tasklist: "l0", Max: 3, For: time.Second})
		w.run(20 * ms)
	}
	w.run(sweepEvery)
	if n := len(w.loads); n > before+4 || w.loads[n-1].Triggers != 12 {
		t.Errorf("not each time, but in the end: %v", w.loads[before:])
	}
}

// Frontends hear which type has come, before it is stored, and of another type that comes a moment later; what comes in one turn calls once.
func TestFrontendsHearOfEachTypeThatComes(t *testing.T) {
	w := idleWorld(t)
	w.readyAt(0, "a", 2)
	w.readyAt(0, "b", 2)
	w.run(ms)
	if len(w.loads) != 1 || !slices.Contains(w.loads[0].Types, "a") {
		t.Fatalf("they hear of %v", w.loads)
	}
	w.run(5 * ms)
	w.readyAt(0, "c", 2)
	w.run(ms)
	if n := len(w.loads); n != 2 || !slices.Contains(w.loads[1].Types, "c") || w.loads[1].Triggers != 6 {
		t.Fatalf("they hear of %v", w.loads)
	}
}
