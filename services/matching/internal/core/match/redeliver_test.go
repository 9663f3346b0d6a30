package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// S21: a poll was granted too many tasks, since a partition was silent for a while. The owner dies before it has answered. The next one sends no more tasks
// than the poll takes.
func TestS21APollGetsNoMoreThanItTakesFromTheNextOwner(t *testing.T) {
	w, _ := begun(t, 2)
	w.partitions[0].silent = true
	w.wait("p", 2)
	w.run(ms)
	w.trigger(w.task("d", "l0", "b", 1, 0), w.task("d", "l0", "b", 1, 0))
	w.run(grab.SilentAfter + 50*ms)
	w.delay = func() time.Duration { return 10 * ms }
	w.trigger(w.task("d", "l0", "b", 1, 1), w.task("d", "l0", "b", 1, 1))
	w.run(25 * ms)
	w.kill(0)
	w.speak(0)
	w.run(ms)
	if w.grantedN != 4 || w.polls["p"].answered != 0 {
		t.Fatalf("%d are granted, %+v", w.grantedN, w.polls["p"])
	}
	w.delay = func() time.Duration { return ms }
	w.own(0, 2)
	w.run(50 * ms)
	w.wantTasks("p", 2)
}

// diedBeforeItsAnswer is a world whose owner was granted n tasks for a poll and died before it answered, and the worker of the poll is away. There is a next owner.
func diedBeforeItsAnswer(t *testing.T, partitions, n int, change ...func(*Config)) *world {
	t.Helper()
	w, _ := begun(t, partitions)
	w.limit("d/a", n) // the attempts use slots
	w.run(50 * ms)
	w.deaf = func(inbox string) bool { return inbox == "p" }
	w.wait("p", n)
	w.run(ms)
	w.delay = func() time.Duration { return 10 * ms }
	w.ready("d", "l0", "a", 1, n)
	for range 100 {
		if w.grantedN < n {
			w.run(ms)
		}
	}
	if w.kill(0); w.grantedN != n || w.polls["p"].answered != 0 {
		t.Fatalf("%d are granted, %+v", w.grantedN, w.polls["p"])
	}
	w.delay = func() time.Duration { return ms }
	w.own(0, 2, change...)
	return w
}

// S20: the next owner sends grants again to an inbox that is gone. They go to another poll as soon as the worker says that it has got nothing there; also
// those that did not fit into the answer. The bounce alone says nothing: the worker may have got them from the owner before.
func TestS20GrantsThatAreSentAgainComeBackIfTheirPollIsGivenUp(t *testing.T) {
	for name, most := range map[string]int{"all fit": 100_000, "two fit": 2 * 28} {
		w := diedBeforeItsAnswer(t, 1, 4, func(c *Config) { c.AnswerBytesMax = most })
		w.run(time.Second)
		if p := w.polls["p"]; p.answered != 1 || w.counts.HandedBack != 0 {
			t.Fatalf("%s: %+v, %d are handed back", name, p, w.counts.HandedBack)
		}
		w.givenUp("e", "p")
		w.run(50 * ms)
		if w.counts.HandedBack != 0 {
			t.Fatalf("%s: another domain has %d handed back", name, w.counts.HandedBack)
		}
		got := 0
		for _, inbox := range []string{"r", "s", "t", "u"} { // an answer may have room for one task only
			w.givenUp("d", "p")
			w.poll(inbox, waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
			w.run(50 * ms)
			got += w.polls[inbox].tasks
		}
		if got != 4 || w.counts.HandedBack != 4 {
			t.Fatalf("%s: the next polls got %d tasks, %d are handed back", name, got, w.counts.HandedBack)
		}
	}
}

// S20: also a grant that its partition reports late comes back, whether its inbox was named before or is named afterwards.
func TestS20LateGrantsComeBack(t *testing.T) {
	for _, before := range []bool{true, false} {
		w, _ := begun(t, 2)
		w.deaf = func(inbox string) bool { return inbox == "p" }
		w.wait("p", 2)
		w.run(ms)
		w.delay = func() time.Duration { return 10 * ms }
		w.ready("d", "l0", "b", 1, 2)
		w.run(25 * ms)
		w.kill(0)
		w.delay = func() time.Duration { return ms }
		w.partitions[1].silent = true
		w.own(0, 2)
		w.run(startWait + 50*ms)
		name := func(inbox string) {
			w.givenUp("d", "p")
			w.poll(inbox, waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
		}
		if before {
			name("q")
			w.run(50 * ms)
			w.wantTasks("q", 1)
		}
		w.speak(1)
		w.run(time.Second)
		if !before {
			name("q")
		}
		name("r")
		w.run(100 * ms)
		if w.counts.HandedBack != 2 || w.polls["q"].tasks+w.polls["r"].tasks != 2 {
			t.Fatalf("named before %v: %d are handed back, %+v, %+v", before, w.counts.HandedBack, w.polls["q"], w.polls["r"])
		}
	}
}

// givenUp notifies all owners of an inbox whose poll was given up.
func (w *world) givenUp(domain, inbox string) {
	for _, o := range w.owners {
		o.give(func(in *Inputs) {
			in.GivenUp = append(in.GivenUp, waiting.GivenUp{Domain: domain, Inboxes: []string{inbox}})
		})
	}
}
