package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/history/historysim"
	"github.com/yardmaster-io/yardmaster/services/matching/matchingsim"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// stage is a run without faults and with eager workers, in which the test makes what goes wrong.
func stage(seed uint64, parts int, length time.Duration) *world {
	w := newWorld(plan{seed: seed, parts: parts, length: length, window: 1000, snapshot: 1 << 40, chunk: 10, job: 100}, true)
	w.match.eager = true
	return w
}

// mustRun ends the test if a run violates an invariant.
func mustRun(t *testing.T, seed uint64, w *world) {
	t.Helper()
	if broken := w.run(); broken != "" {
		t.Fatalf("seed %d: %s\n%s", seed, broken, strings.Join(w.lines, "\n"))
	}
}

// every submits a task again and again, from an instant on until another one.
func (w *world) every(pause, from, until time.Duration, at task) {
	for when := from; when < until; when += pause {
		w.at(when, func() { w.submitAt(at, 0) })
	}
}

// slowest is how long the slowest of some tasks took, from its submit on.
func (w *world) slowest(which func(t *historysim.Task) bool) (most time.Duration) {
	for _, t := range w.archived {
		if which(t) {
			most = max(most, time.Duration(t.FinishedAt-t.CreatedAt())*time.Millisecond)
		}
	}
	return most
}

// slower counts some tasks, and those of them that took longer than d.
func (w *world) slower(d time.Duration, which func(t *historysim.Task) bool) (all, slow int) {
	for _, t := range w.archived {
		if which(t) {
			all++
			if time.Duration(t.FinishedAt-t.CreatedAt())*time.Millisecond > d {
				slow++
			}
		}
	}
	return all, slow
}

// othersMost is how long a task may take while something fails that does not concern it; it is ready at
// once, and runs for up to 400 ms.
const othersMost = 2 * time.Second

// TestR31_ASilentPartitionDelaysNobodyElse: the second partition has no owner for ten seconds. Tasks of the
// first one, which the same polls wait for, go on.
func TestR31_ASilentPartitionDelaysNobodyElse(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 12, 3)) {
		w := stage(seed, 2, 20*time.Second)
		at := task{"shop", tasklists["shop"][0], free}
		for _, part := range w.parts {
			part.every(200*time.Millisecond, time.Second, 14*time.Second, at)
		}
		w.at(4*time.Second, func() {
			for _, p := range w.parts[1].living() {
				p.kill()
			}
		})
		w.at(14*time.Second, func() { w.parts[1].spawn() })
		mustRun(t, seed, w)
		if took := w.slowest(func(*historysim.Task) bool { return true }); took > othersMost {
			t.Fatalf("seed %d: a task of the partition that serves took %v\n%s", seed, took, strings.Join(w.lines, "\n"))
		}
	}
}

// TestR8_TablesThatAreAwayDelayNobodyElse: the tables of one domain do not answer, or say at once that they
// cannot. All tasks of the other domain go on, and so do nearly all of the first that have no limit.
func TestR8_TablesThatAreAwayDelayNobodyElse(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 12, 3)) {
		w := stage(seed, 1, 20*time.Second)
		for _, d := range domains {
			for shard := range shards {
				w.every(300*time.Millisecond, time.Second, 14*time.Second, task{d, tasklists[d][shard], free})
				w.every(2*time.Second, time.Second, 14*time.Second, task{d, tasklists[d][shard], few})
			}
		}
		w.at(3*time.Second, func() { w.match.nodes["mall"].away = 14 * time.Second })
		mustRun(t, seed, w)
		if took := w.slowest(func(t *historysim.Task) bool { return t.Domain == "shop" }); took > othersMost {
			t.Fatalf("seed %d: a task of the other domain took %v\n%s", seed, took, strings.Join(w.lines, "\n"))
		}
		if all, slow := w.slower(othersMost, func(t *historysim.Task) bool { return t.Domain == "mall" && t.Type == free }); slow > all/10 {
			t.Fatalf("seed %d: %d of %d unlimited tasks took longer than %v\n%s", seed, slow, all, othersMost, strings.Join(w.lines, "\n"))
		}
	}
}

// TestR34_ShardsShareALimit: two shards have a backlog for the one slot of a limit. Of the first half of what
// ends, each has a third at least, and a freed slot is in use again soon: shards tell each other.
func TestR34_ShardsShareALimit(t *testing.T) {
	const each, handOver = 30, 300 * time.Millisecond
	for seed := range uint64(testkit.Rounds(t, 12, 3)) {
		w := stage(seed, 1, 30*time.Second)
		w.work = 50 * time.Millisecond
		w.at(500*time.Millisecond, func() {
			for range each {
				for shard := range shards {
					w.submitAt(task{"shop", tasklists["shop"][shard], one}, 0)
				}
			}
		})
		mustRun(t, seed, w)
		var all []*historysim.Task
		for _, id := range w.order {
			all = append(all, w.archived[id])
		}
		slices.SortStableFunc(all, func(a, b *historysim.Task) int { return int(a.FinishedAt - b.FinishedAt) })
		var of [shards]int
		lists := tasklists["shop"]
		for _, done := range all[:each] {
			of[slices.Index(lists[:], done.Tasklist)]++
		}
		if took := w.slowest(func(*historysim.Task) bool { return true }); took > 2*each*handOver {
			t.Fatalf("seed %d: the last one took %v\n%s", seed, took, strings.Join(w.lines, "\n"))
		}
		if min(of[0], of[1]) < each/3 {
			t.Fatalf("seed %d: of the first %d that ended the shards had %v\n%s", seed, each, of, strings.Join(w.lines, "\n"))
		}
	}
}

// TestR38_ANewLimitCountsWhatRuns: three tasks run when their type gets a limit of two, at both shards. Nothing is
// granted before two of them are over.
func TestR38_ANewLimitCountsWhatRuns(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 12, 3)) {
		w := stage(seed, 2, 20*time.Second)
		for _, part := range w.parts {
			part.work = 2500 * time.Millisecond
		}
		at := func(shard int) task { return task{"shop", tasklists["shop"][shard], free} }
		w.at(time.Second, func() {
			w.submitAt(at(0), 0)
			w.submitAt(at(1), 0)
			w.parts[1].submitAt(at(1), 0)
		})
		w.at(1500*time.Millisecond, func() { w.match.edit("shop", free, 2) })
		w.at(2200*time.Millisecond, func() {
			for _, part := range w.parts {
				part.submitAt(at(0), 0)
				part.submitAt(at(1), 0)
			}
		})
		mustRun(t, seed, w)
		for _, late := range w.match.check.grants {
			if granted := late.w.storedAt[late.seq-1]; late.path != nil {
				if n := w.match.check.runningAt(granted, late); n > 2 {
					t.Fatalf("seed %d: %d attempts run with %s at %v\n%s", seed, n, w.name(late.id), granted, strings.Join(w.lines, "\n"))
				}
			}
		}
	}
}

// runningAt counts the attempts that run at an instant of the log, g among them.
func (c *matchChecker) runningAt(now time.Duration, g *grantOf) (n int) {
	for _, o := range c.grants {
		if o == g || o.w.storedAt[o.seq-1] <= now && (o.end == 0 || o.w.storedAt[o.end-1] > now) {
			n++
		}
	}
	return n
}

// TestR32_LostSlotsAreNotBookedTwice: the tables lose everything while the slots of a limit are in use. Nothing
// more is granted than it has.
func TestR32_LostSlotsAreNotBookedTwice(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 12, 3)) {
		w := stage(seed, 1, 12*time.Second)
		w.work = 900 * time.Millisecond
		for shard := range shards {
			w.every(100*time.Millisecond, time.Second, 4*time.Second, task{"shop", tasklists["shop"][shard], few})
		}
		for when := 1500 * time.Millisecond; when < 8*time.Second; when += w.dice.upTo(time.Second) {
			w.at(when, w.match.nodes["shop"].tables.Forget)
		}
		mustRun(t, seed, w) // I8
		if used := w.match.nodes["shop"].tables.Slots("shop", matchingsim.TypeRef(few), w.match.nodes["shop"].clock()); used != 0 {
			t.Fatalf("seed %d: %d slots are left", seed, used)
		}
	}
}

// TestR41_WhatNobodyReceivedIsSentAgain: an owner dies when history has granted, and before it hears so. The next
// one sends the attempt to the inbox that waits for it. No worker begins another one.
func TestR41_WhatNobodyReceivedIsSentAgain(t *testing.T) {
	for seed := range uint64(testkit.Rounds(t, 12, 3)) {
		w := stage(seed, 1, 10*time.Second)
		w.at(time.Second, func() {
			w.submitAt(w.match.someTask(), 0)
			w.granted = func(p *matchProc) {
				w.granted = nil
				p.kill()
				w.after(w.dice.upTo(500*time.Millisecond), p.shard.spawnIfNone)
			}
		})
		mustRun(t, seed, w)
		if task := w.archived[w.order[0]]; task.Version != 1 {
			t.Fatalf("seed %d: it took %d attempts\n%s", seed, task.Version, strings.Join(w.lines, "\n"))
		}
	}
}
