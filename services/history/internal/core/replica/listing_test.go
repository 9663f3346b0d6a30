package replica

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/dispatch"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/line"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// list goes through all steps of a listing.
func (b *bench) list(l *Listing) (tasks []*taskstate.Task, more bool) {
	b.Helper()
	for !b.r.List(l) {
	}
	tasks, _, more = l.Found()
	return tasks, more
}

// anyTask is each task.
func anyTask(*taskstate.Task) bool { return true }

// wide is a bench with n ready tasks, more than a step of a listing looks at.
func wide(t *testing.T, n int) *bench {
	b := newBench(t, Config{Shards: 2, WindowTasks: 1 << 20, WindowBytes: 1 << 40, CheckpointEveryMS: 1 << 50, PurgeEveryMS: 1 << 50, SnapshotBytes: 1 << 50, SnapshotEveryMS: 1 << 50})
	b.submit(nil, upFrom(1, n)...)
	return b
}

// numbersOf are those of tasks.
func numbersOf(tasks []*taskstate.Task) (all []int) {
	for _, t := range tasks {
		all = append(all, int(t.ID[14])<<8|int(t.ID[15]))
	}
	return all
}

// S15: a listing looks at some thousand tasks at a time, and at none of another domain.
func TestS15AListingTakesSteps(t *testing.T) {
	b := wide(t, 10_000)
	looked := 0
	l := Newest("shop", 3, func(*taskstate.Task) bool { looked++; return true })
	steps := 1
	for most := 0; !b.r.List(l); steps++ {
		if most = max(most, looked); looked > 5000 {
			t.Fatalf("one step looks at %d tasks", looked)
		}
		looked = 0
	}
	tasks, last, more := l.Found()
	testkit.Equal(t, "steps", steps, 3)
	testkit.Equal(t, "the newest", fmt.Sprint(numbersOf(tasks), more, last.ID == tasks[2].ID), "[10000 9999 9998] true true")
	if other := Newest("bank", 3, func(*taskstate.Task) bool { t.Error("it looks at a task of another domain"); return true }); !b.r.List(other) {
		t.Error("a domain without tasks takes a second step")
	}
}

// S15: between the steps tasks begin, end and come. Those that match all the time are listed, each once; those that match no more are not.
func TestS15AListingAmongChanges(t *testing.T) {
	const n = 9000
	b := wide(t, n)
	active, ready := Newest("shop", 2*n, func(t *taskstate.Task) bool { return t.State.Active() }), NextToStart("shop", 2*n, anyTask)
	ended := map[int]bool{}
	for last, at := false, 0; !last; {
		one, two := b.r.List(active), b.r.List(ready)
		last = one && two
		b.seq++
		begin, end := &Events{Seq: b.seq, At: b.now.MS}, &Events{Seq: b.seq + 1, At: b.now.MS}
		for range 300 {
			at += 7
			k := at%n + 1
			e := b.r.tasks[id(k)]
			if ended[k] = true; e.State == taskstate.Ready {
				fence := ids.Token{Position: e.Position, Version: 1, Nonce: 1}
				begin.Events = append(begin.Events, taskstate.Event{Kind: taskstate.Started, ID: e.ID, Fence: fence})
				end.Events = append(end.Events, taskstate.Event{Kind: taskstate.Succeeded, ID: e.ID, Fence: fence})
			}
		}
		b.step(begin)
		b.seq++
		b.step(end)
		b.submit(nil, upFrom(n+at, 50)...)
	}
	for name, l := range map[string]*Listing{"active": active, "ready": ready} {
		times := map[int]int{}
		tasks, _, _ := l.Found()
		for _, k := range numbersOf(tasks) {
			times[k]++
		}
		for k := 1; k <= n; k++ {
			if want := map[bool]int{false: 1}[ended[k]]; times[k] != want {
				t.Fatalf("%s: task %d, ended %t, is listed %d times", name, k, ended[k], times[k])
			}
		}
	}
}

// S15: the first task of an order key ends between two steps. The key is listed all the same: it has tasks all the time.
func TestS15AKeyIsListedWhoseFirstTaskEndsBetweenSteps(t *testing.T) {
	b := wide(t, 0)
	b.keyed("a", nil, 1)
	b.submit(nil, upFrom(10, 5000)...)
	b.keyed("a", nil, 2)
	walk, found := dispatch.Walk{Domain: "shop"}, map[string]bool{}
	step := func() bool {
		return b.r.Walk(&walk, func(e *dispatch.Entry) {
			if l, ok := (&line.Query{}).Pick(e.Seat); ok {
				found[l.Key] = true
			}
		})
	}
	if step() {
		t.Fatal("one step is the last")
	}
	b.start(1)
	b.finish(taskstate.Succeeded, 1)
	for !step() {
	}
	if !found["a"] {
		t.Error("it is not listed")
	}
}
