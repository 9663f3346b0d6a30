package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

const ms = time.Millisecond

// poll is for most tasks of the tasklist l0 of domain d, for a minute.
func (w *world) wait(inbox string, most int, types ...string) {
	w.poll(inbox, waiting.Poll{Domain: "d", Tasklist: "l0", Max: most, Types: types, For: time.Minute})
}

// waits has n polls of one task each wait: p0, p1 and so on.
func (w *world) waits(n int) {
	for i := range n {
		w.wait(fmt.Sprint("p", i), 1)
	}
}

// begin has n attempts of type a run until they are ended.
func (w *world) begin(n int) []*task {
	w.ends = false
	w.wait("p", n)
	w.run(ms)
	made := w.ready("d", "l0", "a", 1, n)
	w.run(50 * ms)
	return made
}

// wantTasks expects so many tasks in the answer to a poll.
func (w *world) wantTasks(inbox string, n int) {
	w.t.Helper()
	if p := w.polls[inbox]; p.tasks != n {
		w.t.Fatalf("%s got %+v, want %d tasks", inbox, p, n)
	}
}

// limit sets a limit of domain d, or lifts it.
func (w *world) limit(key string, most int) {
	w.limits[key] = most
	w.limitsChanged()
}

// begun is a world whose only shard has started.
func begun(t *testing.T, partitions int, change ...func(*Config)) (*world, *owner) {
	w := newWorld(t, 1, partitions)
	o := w.own(0, 1, change...)
	w.poll("first", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1})
	w.run(300 * ms)
	if !o.open || w.polls["first"].answered != 1 {
		t.Fatal("it has not started")
	}
	return w, o
}

// R31: what one partition has granted does not wait for another one that is silent.
func TestR31AnswersWithoutSilentPartition(t *testing.T) {
	w, _ := begun(t, 2)
	w.partitions[1].silent = true
	w.wait("p", 10)
	w.run(ms)
	w.ready("d", "l0", "b", 1, 2) // one in each partition
	w.run(grab.SilentAfter + 10*ms)
	if p := w.polls["p"]; p.answered != 1 || p.tasks != 1 {
		t.Fatalf("it is %+v", p)
	}
	// What is granted later is handed back, and goes to another poll.
	w.wait("q", 10)
	w.speak(1)
	w.run(200 * ms)
	if p := w.polls["q"]; p.tasks != 1 || w.counts.HandedBack != 1 {
		t.Fatalf("%+v, %d handed back", p, w.counts.HandedBack)
	}
}

// R31: a poll that has only grabs of silent partitions goes on waiting for others; a grab granted
// later is given to it if it waits still.
func TestR31PollWaitsForOthers(t *testing.T) {
	w, _ := begun(t, 2)
	w.partitions[0].silent = true
	w.wait("p", 1)
	w.run(ms)
	silent := w.task("d", "l0", "b", 1, 0)
	w.trigger(silent)
	w.run(120 * ms)
	live := w.task("d", "l0", "b", 1, 1)
	w.trigger(live)
	w.run(20 * ms)
	if w.polls["p"].tasks != 1 || live.state == "ready" {
		t.Fatalf("the poll got %+v", w.polls["p"])
	}
	w.wait("q", 1)
	w.speak(0)
	w.run(20 * ms)
	if w.polls["q"].tasks != 1 || silent.state == "ready" {
		t.Fatalf("the poll that waits got %+v", w.polls["q"])
	}
	w.partitions[0].silent, w.counts.HandedBack = true, 0
	w.wait("r", 1)
	late := w.task("d", "l0", "b", 1, 0)
	w.trigger(late)
	w.run(300 * ms) // it is silent: r is detached
	w.speak(0)
	w.run(20 * ms)
	if w.polls["r"].tasks != 1 || w.counts.HandedBack != 0 || late.state == "ready" {
		t.Fatalf("the poll that waited on got %+v", w.polls["r"])
	}
}

// R31: a silent partition gets few grabs; its triggers are kept aside, up to a bound, and
// come back when it speaks. Its batches are repeated as they are.
func TestR31SilentPartitionHasABudget(t *testing.T) {
	w, o := begun(t, 2, func(c *Config) { c.GrabsInFlight = 2 })
	w.partitions[0].silent = true
	w.work = func() time.Duration { return time.Millisecond }
	w.wait("first of it", 1)
	w.run(ms)
	w.trigger(w.task("d", "l0", "b", 1, 0))
	w.run(150 * ms)
	w.waits(300)
	w.run(ms)
	var silent []*task
	for range 200 {
		silent = append(silent, w.task("d", "l0", "b", 1, 0))
	}
	w.trigger(silent...)
	w.run(50 * ms)
	if c := o.s.Census(); c.Grabs != grab.SilentGrabsMax || c.Aside != 201-grab.SilentGrabsMax {
		t.Fatalf("%d grabs are undecided, %d aside", c.Grabs, c.Aside)
	}
	w.run(2500 * ms)
	if n := len(w.batches); n < 4 {
		t.Fatalf("%d batches: nothing was repeated", n)
	}
	for range 100 {
		w.trigger(w.task("d", "l0", "b", 1, 1)) // the others go on
	}
	w.run(50 * ms)
	testkit.MustEqual(t, "of 100 tasks of the live partition are done", w.done(), 100)
	w.speak(0)
	w.run(100 * ms)
	testkit.MustEqual(t, "of 301 tasks are done", w.done(), 301)
}

// R31: past the bound triggers are forgotten, and history is asked for them.
func TestR31AsideIsBounded(t *testing.T) {
	w, o := begun(t, 1)
	w.partitions[0].silent = true
	w.wait("p", 1)
	w.run(ms)
	w.trigger(w.task("d", "l0", "b", 1, 0))
	w.run(150 * ms)
	w.wait("q", 100)
	var all []*task
	for range grab.AsideMax + 100 {
		all = append(all, w.task("d", "l0", "b", 1, 0))
	}
	w.trigger(all...)
	w.run(50 * ms)
	testkit.MustEqual(t, "are aside", o.s.Census().Aside, grab.AsideMax)
	w.speak(0)
	w.run(20 * ms)
	if len(w.retrigs) == 0 || w.retrigs[len(w.retrigs)-1].Domain != "" {
		t.Fatalf("asked for %+v", w.retrigs)
	}
}

// A grab that waits behind full batches of a partition that falls silent is kept aside too, and its
// poll goes on.
func TestR31GatheredGrabsGoAside(t *testing.T) {
	w, o := begun(t, 2, func(c *Config) { c.GrabsInFlight, c.GrabEventsMax = 1, 2 })
	w.partitions[0].silent = true
	w.waits(5)
	w.run(ms)
	for range 5 {
		w.trigger(w.task("d", "l0", "b", 1, 0))
	}
	w.run(20 * ms)
	testkit.MustEqual(t, "grabs are gathered or under way", o.s.Census().Grabs, 5)
	w.run(150 * ms)
	if c := o.s.Census(); c.Grabs > 2 || c.Grabs+c.Aside != 5 {
		t.Fatalf("%+v", c)
	}
	for range 5 {
		w.trigger(w.task("d", "l0", "b", 1, 1))
	}
	w.run(30 * ms)
	for i := range 5 {
		if p := w.polls[fmt.Sprint("p", i)]; p.tasks != 1 {
			t.Errorf("poll %d got %+v", i, p)
		}
	}
}

// A slow partition that keeps answering is not silent.
func TestSlowIsNotSilent(t *testing.T) {
	w, o := begun(t, 1, func(c *Config) { c.GrabsInFlight = 64 })
	w.delay = func() time.Duration { return 60 * ms }
	w.waits(80)
	w.run(70 * ms)
	for range 80 {
		w.trigger(w.task("d", "l0", "b", 1, 0))
		w.run(5 * ms)
		o.s.grabs.Undecided(func(r *request) {
			if w.now > 650*ms && !r.Waits() {
				t.Fatal("it is silent")
			}
		})
	}
	w.run(time.Second)
	testkit.MustEqual(t, "of 80 tasks are done", w.done(), 80)
}

// The slot of a grab that is not decided is held, however long its partition is silent: it may
// yet be granted.
func TestUndecidedGrabHoldsItsSlot(t *testing.T) {
	w, _ := begun(t, 2)
	w.limit("d/a", 1)
	w.run(100 * ms)
	w.partitions[0].silent = true
	w.wait("p", 1)
	w.run(ms)
	w.trigger(w.task("d", "l0", "a", 1, 0))
	w.run(200 * ms)
	w.wait("q", 1)
	w.trigger(w.task("d", "l0", "a", 1, 1))
	w.run(20 * time.Second)
	if w.running["d/a"] > 0 {
		t.Fatal("the slot was given to another one")
	}
	w.speak(0)
	w.run(2 * time.Second)
	if w.done() != 2 || w.peak["d/a"] != 1 {
		t.Fatalf("%d are done, %d ran at once", w.done(), w.peak["d/a"])
	}
}

// A poll that got what it did not count on any more gets no more than it asked for.
func TestR31NoMoreThanAskedFor(t *testing.T) {
	w, _ := begun(t, 2)
	w.ends = false
	w.partitions[0].silent = true
	w.wait("p", 1)
	w.run(ms)
	w.trigger(w.task("d", "l0", "b", 1, 0))
	w.run(300 * ms) // it waits for others
	w.trigger(w.task("d", "l0", "b", 1, 1))
	w.delay = func() time.Duration { return 30 * ms }
	w.run(2 * ms) // its other grab is under way
	w.delay = func() time.Duration { return ms }
	w.speak(0)
	w.run(80 * ms)
	if p := w.polls["p"]; p.tasks != 1 || w.counts.HandedBack != 1 {
		t.Fatalf("%+v, %d handed back", p, w.counts.HandedBack)
	}
}
