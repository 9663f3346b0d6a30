package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
)

// resting is a world of two shards in which a poll of four tasklists has visited all of them, and rests.
func resting(t *testing.T, change func(w *world), types ...string) *world {
	w := newWorld(t, 2, 2)
	change(w)
	for shard := range 2 {
		w.own(shard, 1)
	}
	w.run(20 * ms)
	w.pollSeveral("p", "f1", Poll{Domain: "d", Max: 1, Types: types, For: time.Minute}, "l0", "l1", "l2", "l3")
	w.run(100 * ms)
	if _, s := w.several("p"); !s.rests || w.polls["p"].answered > 0 {
		t.Fatalf("it does not rest: %+v", s)
	}
	return w
}

func nothingElse(*world) {}

// A poll of several tasklists gets what comes to any of them within some messages, also in a partition that it has not visited.
func TestASparseTaskFindsAPollOfSeveralTasklists(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"unlimited":  nothingElse,
		"limited":    func(w *world) { w.limits["d/a"], w.limits["d"] = 3, 5 },
		"rated":      func(w *world) { w.rates["d"] = table.Rate{EveryUS: 1e6, Burst: 2} },
		"grouped":    func(w *world) { w.limits["d/a*"], w.group = 1, func() string { return "g" } },
		"partitions": func(w *world) { w.spread["l0"], w.spread["l2"] = 30, 3 },
		"typed":      nothingElse,
	} {
		for i := range 4 {
			list := fmt.Sprint("l", i)
			t.Run(name+" "+list, func(t *testing.T) {
				w := resting(t, change, map[bool][]string{true: {"a"}}[name == "typed"]...)
				w.turn[list] = 21 // so it is in the partition behind
				task := w.ready("d", list, "a", 1, 1)[0]
				w.run(40 * ms)
				if w.polls["p"].tasks != 1 {
					t.Errorf("it got nothing: the task of partition %d is %s", task.part, task.state)
				}
			})
		}
	}
}

// A visit gets what is there, and is given up in the same turn where there is nothing: it costs two messages.
func TestAVisitIsShort(t *testing.T) {
	w := resting(t, nothingElse)
	began := w.now
	s := w.pollSeveral("q", "f2", Poll{Domain: "d", Max: 1, For: time.Minute}, "l0", "l1", "l2", "l3")
	w.run(7 * ms)
	if !s.rests || s.visits != 4 || w.now-began > 7*ms {
		t.Errorf("after %v it has made %d visits", w.now-began, s.visits)
	}
	w.ready("d", "l3", "b", 1, 5)
	w.ready("d", "l3", "a", 1, 5)
	w.run(100 * ms)
	w.pollSeveral("r", "f2", Poll{Domain: "d", Max: 3, Types: []string{"b"}}, "l0", "l1", "l2", "l3") // it may not wait
	w.run(100 * ms)
	if w.polls["r"].tasks != 3 {
		t.Errorf("it got %d tasks of 3", w.polls["r"].tasks)
	}
}

// A poll that may not wait goes to each tasklist once, and to the partition of one that has something.
func TestAPollOfSeveralThatMayNotWait(t *testing.T) {
	w := newWorld(t, 2, 2)
	w.spread["l2"] = 30
	for shard := range 2 {
		w.own(shard, 1)
	}
	w.run(20 * ms)
	for part := range 3 {
		task := w.task("d", "l2", "a", 1, 0)
		task.part, task.shard = 10*part+9, w.shardOf("l2", 10*part+9)
		w.trigger(task)
	}
	w.run(50 * ms)
	for i := range 4 {
		w.pollSeveral(fmt.Sprint(i), "f", Poll{Domain: "d", Max: 1}, "l0", "l1", "l2")
		w.run(50 * ms)
	}
	if w.grantedN != 3 || w.polls["3"].answered != 1 || w.polls["3"].tasks != 0 {
		t.Errorf("%d were granted; the last poll: %+v", w.grantedN, w.polls["3"])
	}
}

// What held a tasklist up is notified of when it is over: a slot is free, a pause ends, a rate lets one more start.
func TestAPollComesWhenATaskMayStart(t *testing.T) {
	for name, c := range map[string]struct{ hold, free func(w *world) }{
		"slot": {func(w *world) { w.limits["d/a"] = 1 }, func(w *world) {
			for _, one := range w.sorted() {
				if one.state == "running" {
					w.finish(one)
				}
			}
		}},
		"group": {func(w *world) { w.limits["d/a*"], w.group = 1, func() string { return "g" } }, func(w *world) {
			for _, one := range w.sorted() {
				if one.state == "running" {
					w.finish(one)
				}
			}
		}},
		"pause": {func(w *world) { w.pauses["d#l2"] = true }, func(w *world) {
			delete(w.pauses, "d#l2")
			for _, o := range w.owners {
				o.give(func(in *Inputs) { in.Limits = append(in.Limits, "d") })
			}
		}},
		"rate": {func(w *world) { w.rates["d"] = table.Rate{EveryUS: 3e6, Burst: 1} }, func(w *world) { w.run(2500 * ms) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, 2)
			c.hold(w)
			w.ends = false
			for shard := range 2 {
				w.own(shard, 1)
			}
			w.run(20 * ms)
			w.pollSeveral("first", "f", Poll{Domain: "d", Max: 1, For: time.Minute}, "l0", "l1", "l2", "l3")
			w.ready("d", "l2", "a", 1, 2)
			w.run(300 * ms)
			w.pollSeveral("p", "f", Poll{Domain: "d", Max: 1, For: time.Minute}, "l0", "l1", "l2", "l3")
			w.run(100 * ms)
			held, visits := w.polls["p"].tasks == 0 && w.polls["p"].answered == 0, 0
			_, p := w.several("p")
			visits = p.visits
			w.run(400 * ms)
			if !held || p.visits-visits > 2 {
				t.Fatalf("it is held up: %v; %d visits in 400 ms", held, p.visits-visits)
			}
			before := w.grantedN
			c.free(w)
			w.run(100 * ms)
			if w.grantedN == before {
				t.Error("it did not come")
			}
		})
	}
}

// Frontends are notified one after the other, the one that was visited from last at first, until one has sent a poll.
func TestFrontendsAreToldInTurn(t *testing.T) {
	w := resting(t, nothingElse)
	for _, name := range []string{"f2", "f3"} {
		w.pollSeveral(name, name, Poll{Domain: "d", Max: 1, For: time.Minute}, "l0", "l1")
		w.run(100 * ms)
	}
	notified := func() string {
		return fmt.Sprint(w.front("f1").notified, w.front("f2").notified, w.front("f3").notified)
	}
	w.front("f3").deaf, w.front("f2").deaf = true, true
	w.ready("d", "l1", "a", 1, 1)
	w.run(8 * ms)
	if got := notified(); got != "0 0 1" {
		t.Errorf("at once were notified: %s", got)
	}
	w.run(20 * ms)
	if got := notified(); got != "0 1 1" {
		t.Errorf("after 20 ms were notified: %s", got)
	}
	w.run(30 * ms)
	if got := notified(); got != "1 1 1" || w.polls["p"].tasks != 1 {
		t.Errorf("after 50 ms were notified: %s", got)
	}
	w.front("f1").deaf = true
	w.ready("d", "l1", "a", 1, 1)
	w.run(300 * ms)
	if n := w.front("f1").notified + w.front("f2").notified + w.front("f3").notified - 3; n < 3 || n > 5 {
		t.Errorf("within 300 ms frontends were notified %d times", n)
	}
}

// Who is notified takes what waits, and as long as it sends no poll it is not notified each time.
func TestOnlyWhoTakesATypeIsTold(t *testing.T) {
	w := resting(t, nothingElse, "a")
	w.ready("d", "l1", "b", 1, 1)
	w.run(500 * ms)
	if n := w.front("f1").notified; n != 0 {
		t.Errorf("it was notified %d times of what it does not take", n)
	}
	w.pollSeveral("q", "f1", Poll{Domain: "d", Max: 1, Types: []string{"b", "c"}, For: time.Minute}, "l1", "l2")
	w.run(20 * ms)
	if w.polls["q"].tasks != 1 || w.polls["p"].answered != 0 {
		t.Errorf("%+v and %+v", w.polls["q"], w.polls["p"])
	}
}

// A poll that waits in the tasklist itself gets the task: no frontend is notified.
func TestAPollThatWaitsHereComesFirst(t *testing.T) {
	w := resting(t, nothingElse)
	w.poll("here", Poll{Domain: "d", Tasklist: "l1", Max: 1, For: time.Minute})
	w.run(10 * ms)
	w.ready("d", "l1", "a", 1, 1)
	w.run(50 * ms)
	if n := w.front("f1").notified; n != 0 || w.polls["here"].tasks != 1 {
		t.Errorf("notified %d times, the poll that waits got %d", n, w.polls["here"].tasks)
	}
}

// A new owner knows of no frontend: with the next visit it does. What was lost before is asked of history.
func TestANewOwnerLearnsWithTheNextVisit(t *testing.T) {
	w := resting(t, nothingElse)
	w.kill(1)
	w.own(1, 2)
	w.run(1200 * ms)
	w.ready("d", "l1", "a", 1, 1)
	w.run(40 * ms)
	if w.polls["p"].tasks != 1 {
		t.Error("it got nothing")
	}
}

// A trigger that was lost is asked for, though no poll waits in the tasklist itself.
func TestAFrontendsPollsMakeATasklistHungry(t *testing.T) {
	w := resting(t, nothingElse)
	w.task("d", "l2", "a", 1, 0) // its trigger is lost
	w.run(4 * time.Second)
	if w.polls["p"].tasks != 1 || len(w.hungry) == 0 {
		t.Errorf("it got nothing; history was asked %d times", len(w.hungry))
	}
}

// While the tables do not answer a visit stays for a second: only polls that are there get something.
func TestAVisitWithoutTables(t *testing.T) {
	w := resting(t, nothingElse)
	w.down["d"] = true
	w.ready("d", "l0", "a", 1, 1)
	w.ready("d", "l1", "a", 1, 1)
	w.run(200 * ms)
	w.pollSeveral("q", "f1", Poll{Domain: "d", Max: 1, Types: []string{"b"}, For: time.Minute}, "l1", "l2")
	w.run(100 * ms)
	if w.at("q") < 0 {
		t.Fatal("the visit is over")
	}
	w.ready("d", "l1", "b", 1, 1)
	w.run(50 * ms)
	if w.polls["q"].tasks != 1 {
		t.Error("it got nothing")
	}
	s := w.pollSeveral("r", "f1", Poll{Domain: "d", Max: 1, Types: []string{"b"}, For: time.Minute}, "l1", "l2")
	w.run(1100 * ms)
	if s.visits != 2 {
		t.Errorf("after a second it made %d visits", s.visits)
	}
	w.down["d"] = false
	w.run(5 * time.Second)
	if w.polls["p"].tasks != 1 {
		t.Error("the first poll got nothing when they were back")
	}
}

// A visit whose frontend is gone stays, and is a poll as every other.
func TestAVisitThatNoFrontendTakesBackStays(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.own(0, 1)
	w.run(20 * ms)
	w.mute = func(string) bool { return true }
	w.pollSeveral("p", "f", Poll{Domain: "d", Max: 1, For: time.Minute}, "l0", "l1")
	w.run(50 * ms)
	w.ready("d", "l0", "a", 1, 1)
	w.run(50 * ms)
	if w.polls["p"].tasks != 1 {
		t.Error("it got nothing")
	}
}

// Frontends are remembered for 3 s, so many of a shard, and a quarter of these of a domain.
func TestFrontendsAreForgotten(t *testing.T) {
	w := newWorld(t, 1, 1)
	o := w.own(0, 1)
	w.run(20 * ms)
	count := func(domain string) int {
		if of := o.s.interests.byDomain[domain]; of != nil {
			return of.Len()
		}
		return 0
	}
	visit := func(domain string, i int) {
		p := Poll{ID: uint64(i) + 1<<40, Domain: domain, Tasklist: fmt.Sprint("l", i%7), Max: 1, Visit: fmt.Sprint("f", i), For: time.Minute, ReplyTo: "x"}
		o.s.Step(&Inputs{Polls: []Poll{p}}, Now{Mono: w.now}, &o.fx)
	}
	for _, domain := range []string{"few", "d0", "d1", "d2", "d3", "d4"} {
		o.s.Step(&Inputs{Polls: []Poll{{ID: 1, Domain: domain, Tasklist: "l", Max: 1, ReplyTo: "x"}}}, Now{Mono: w.now}, &o.fx)
		o.s.Step(&Inputs{Opened: []OpenOutcome{{Domain: domain, Opened: table.Opened{Epoch: "e"}}}}, Now{Mono: w.now}, &o.fx)
	}
	for i := range 10 {
		visit("few", i)
	}
	for d := range 5 {
		for i := range interestsMax/4 + 50 {
			visit(fmt.Sprint("d", d), i)
			visit(fmt.Sprint("d", d), i) // is one
		}
		if n := count(fmt.Sprint("d", d)); n > interestsMax/4 {
			t.Errorf("%d of a domain are remembered", n)
		}
	}
	if n := o.s.interests.all.Len(); n != interestsMax || count("few") != 10 || count("d0") > interestsMax/4 {
		t.Errorf("%d are remembered, %d of a domain with few, %d of one with many", n, count("few"), count("d0"))
	}
	w.now += interestFor
	o.s.Step(&Inputs{}, Now{Mono: w.now}, &o.fx)
	if n := o.s.interests.all.Len(); n != 0 || len(o.s.interests.byDomain) > 0 {
		t.Errorf("%d are remembered for too long", n)
	}
	for _, l := range o.s.lists {
		if len(l.interests) > 0 {
			t.Errorf("%v remembers some", l.Tasklist)
		}
	}
}

// Of what a tasklist holds a frontend hears all types, the most urgent first, in one message.
func TestWhatAFrontendIsTold(t *testing.T) {
	w := resting(t, nothingElse)
	w.front("f1").deaf = true
	o := w.owners[0]
	w.ready("d", "l2", "b", 2, 3)
	w.ready("d", "l2", "a", 1, 5)
	var notified []PollsWanted
	for range 40 {
		w.run(500 * time.Microsecond)
		notified = append(notified, slices.Clone(o.fx.PollsWanted)...)
		o.fx.PollsWanted = nil
	}
	if len(notified) == 0 {
		t.Fatal("it was notified nothing")
	}
	got := notified[0]
	if got.Frontend != "f1" || got.Tasklist != "l2" || got.Domain != "d" || len(got.Wanted) != 2 || got.Wanted[0].Type != "a" || got.Wanted[0].Triggers != 5 || got.Wanted[1].Triggers != 3 {
		t.Errorf("it was notified %+v", got)
	}
}

// A tasklist of which a trigger comes while a limit is known to be full stands in its line for the polls that rest at frontends.
func TestATasklistStandsInLineForAFrontend(t *testing.T) {
	w := resting(t, func(w *world) { w.limits["d/a"], w.ends = 1, false })
	over := func() {
		for _, one := range w.sorted() {
			if one.state == "running" {
				w.finish(one)
			}
		}
	}
	for i := range 2 {
		w.poll(fmt.Sprint("here", i), Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
	}
	w.ready("d", "l0", "a", 1, 2)
	w.run(300 * ms)
	w.ready("d", "l2", "a", 1, 1)
	w.run(100 * ms)
	over()
	w.run(100 * ms)
	if w.grantedN != 2 || w.polls["p"].tasks != 0 {
		t.Fatalf("%d were granted", w.grantedN)
	}
	over()
	w.run(100 * ms)
	if w.polls["p"].tasks != 1 {
		t.Error("it did not come when the slot was free")
	}
}
