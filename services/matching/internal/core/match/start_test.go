package match

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// R41: what an owner was granted and did not send, or this is unknown, its successor sends again: each inbox
// gets one answer, with all of it; then the shard is open.
func TestR41GrantsAreSentAgain(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w, _ := begun(t, 3)
		w.wait("p", 10)
		w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l2", Max: 10, JSON: true, For: time.Minute})
		w.run(ms)
		w.delay = func() time.Duration { return 10 * ms }
		w.ready("d", "l0", "b", 1, 6)
		w.ready("d", "l2", "b", 1, 3)
		w.run(25 * ms) // history has granted them, and its verdicts are on their way
		w.kill(0)
		w.delay = func() time.Duration { return ms }
		w.partitions[2].silent = silent
		o := w.own(0, 2)
		w.run(20 * ms)
		if !silent {
			if w.polls["p"].tasks != 6 || w.polls["q"].tasks != 3 || !o.open {
				t.Fatalf("%+v, %+v, open: %v", w.polls["p"], w.polls["q"], o.open)
			}
			w.run(10 * time.Second)
			if w.done() != 9 || w.grantedN != 9 {
				t.Fatalf("%d are done, %d were granted", w.done(), w.grantedN)
			}
			continue
		}
		w.run(900 * ms)
		if o.open || w.polls["p"].answered > 0 {
			t.Fatal("it did not wait for all partitions")
		}
		w.run(200 * ms)
		if !o.open || w.polls["p"].tasks != 4 {
			t.Fatalf("a second later: open: %v, %+v", o.open, w.polls["p"])
		}
		w.speak(2)
		w.run(time.Second) // too late for these inboxes
		w.wantTasks("p", 4)
	}
}

// What does not fit into one answer is not sent again.
func TestRedeliveryIsBounded(t *testing.T) {
	w, _ := begun(t, 1)
	w.wait("p", 10)
	w.run(ms)
	w.delay = func() time.Duration { return 10 * ms }
	w.ready("d", "l0", "b", 1, 6)
	w.run(25 * ms)
	w.kill(0)
	w.own(0, 2, func(c *Config) { c.AnswerBytesMax = 2 * 28 })
	w.run(200 * ms)
	w.wantTasks("p", 2)
}

// Nothing goes to a partition before its fence, which is repeated until it counts.
func TestFenceComesFirst(t *testing.T) {
	w := newWorld(t, 1, 2)
	w.partitions[1].silent = true
	o := w.own(0, 1)
	w.wait("p", 5)
	w.run(20 * ms)
	w.ready("d", "l0", "b", 1, 4)
	w.run(3 * time.Second)
	w.wantTasks("p", 2)
	w.wait("only", 1) // what it is not fenced for keeps no poll from others
	w.trigger(w.task("d", "l0", "b", 1, 1))
	w.run(20 * ms)
	w.trigger(w.task("d", "l0", "b", 1, 0))
	w.run(20 * ms)
	w.wantTasks("only", 1)
	for _, a := range w.asked {
		if a.Partition == 1 {
			t.Fatalf("asked before the fence: %+v", a)
		}
	}
	fences := 0
	for _, b := range w.batches {
		if b.Partition == 1 && !b.Fence {
			t.Fatalf("a batch before the fence: %+v", b)
		}
		if b.Partition == 1 {
			fences++
		}
	}
	if fences < 3 || fences > 4 {
		t.Fatalf("%d fences in 3 s", fences)
	}
	w.wait("q", 5)
	w.speak(1)
	w.run(100 * ms)
	if w.polls["q"].tasks != 3 || !o.open {
		t.Fatalf("%+v", w.polls["q"])
	}
}

// A fence that is refused is sent again; nothing is open before one counts.
func TestRefusedFence(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.partitions[0].silent = true
	o := w.own(0, 1)
	w.run(10 * ms)
	o.give(func(in *Inputs) {
		in.Verdicts = []grab.Verdicts{{Partition: 0, Batch: 1, All: []grab.Verdict{{Refused: "UNAVAILABLE"}}}, {Partition: 1}, {Partition: -1}}
	})
	w.run(10 * time.Second)
	if o.open || len(w.batches) < 5 {
		t.Fatalf("open: %v after %d fences", o.open, len(w.batches))
	}
	w.speak(0)
	w.run(time.Second)
	if !o.open {
		t.Fatal("it is not open")
	}
}

// A grab of an owner that was overtaken ends it: nothing goes out any more, and what it has of
// the hint stream comes again.
func TestOvertakenStops(t *testing.T) {
	w, old := begun(t, 1)
	w.limits["d/a"] = 1
	old.give(func(in *Inputs) { in.Limits = []string{"d"} })
	w.run(50 * ms)
	w.down["d"], w.down["e"] = true, true
	w.poll("e", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 1, For: time.Minute})
	w.ready("d", "l0", "a", 1, 1)
	w.run(ms)
	w.wait("p", 1)
	w.run(ms)
	w.own(0, 2)
	w.run(2 * ms)
	x := w.task("d", "l0", "b", 1, 0)
	group := arrival.Triggers{Tasklist: table.Tasklist{Domain: "d", Name: "l0"}, Column: table.Column{Priority: 1, Type: "b"}, ReadyAt: 1}
	group.Packed = appendTrigger(nil, x)
	old.deliveries[1000], old.deliveries[1001] = true, true
	old.give(func(in *Inputs) { in.Hints = []Hints{{Delivery: 1000, Triggers: []arrival.Triggers{group}}} })
	w.run(300 * ms)
	if !old.overtaken {
		t.Fatal("it goes on")
	}
	n := len(w.batches)
	old.give(func(in *Inputs) { in.Hints = []Hints{{Delivery: 1001, Triggers: []arrival.Triggers{group}}} })
	w.run(5 * time.Second)
	if w.acks[1001] {
		t.Fatal("a message does not come again to the next owner")
	}
	for _, b := range w.batches[n:] {
		if len(b.Grabs) > 0 && b.Polls[0].ReplyTo == "p" {
			t.Fatal("it sends still")
		}
	}
}

// What has been delivered is reported with the next batch, or alone, once.
func TestDeliveredIsTold(t *testing.T) {
	w, _ := begun(t, 1)
	w.ends = false
	w.wait("p", 2)
	w.run(ms)
	w.ready("d", "l0", "b", 1, 2)
	w.run(20 * ms)
	sent := w.batches[len(w.batches)-1]
	w.run(200 * ms)
	if n := len(w.batches); w.batches[n-1].Number != sent.Number {
		t.Fatalf("too early: %+v", w.batches[n-1])
	}
	w.run(100 * ms)
	last := w.batches[len(w.batches)-1]
	if last.Number != sent.Number+1 || last.Delivered != sent.Number || len(last.Grabs)+len(last.HandBacks) > 0 {
		t.Fatalf("%+v", last)
	}
	w.run(10 * time.Second)
	if n := len(w.batches); w.batches[n-1].Number != last.Number {
		t.Fatalf("it is said again: %+v", w.batches[n-1])
	}
}

// withADeafPoll is a world in which a poll is about to get so many tasks, and does not hear of it.
func withADeafPoll(t *testing.T, n int) (*world, *owner) {
	w, o := begun(t, 1)
	w.ends = false
	w.deaf = func(inbox string) bool { return inbox == "deaf" }
	w.wait("deaf", n)
	w.run(ms)
	w.ready("d", "l0", "b", 1, n)
	return w, o
}

// An answer that was not delivered is handed back; another poll gets it.
func TestABouncedAnswerIsHandedBack(t *testing.T) {
	w, o := withADeafPoll(t, 2)
	w.run(50 * ms)
	o.give(func(in *Inputs) { in.Bounced = []uint64{1, 2, 3} }) // no one knows these
	w.wait("p", 5)
	w.run(100 * ms)
	if w.polls["p"].tasks != 2 || w.counts.HandedBack != 2 || w.counts.Bounced != 2 {
		t.Fatalf("%+v; %d handed back", w.polls["p"], w.counts.HandedBack)
	}
}

// The word that an answer was not delivered counts also after the answer counted as received, up to
// waiting.BouncedWithin; once.
func TestHowLateAnAnswerBounces(t *testing.T) {
	for after, backs := range map[time.Duration]int{0: 1, grab.HeardAfter: 1, waiting.BouncedWithin - 1: 1, waiting.BouncedWithin: 0} {
		o := alone(t, 1)
		o.grab()
		o.step(0, o.granted(0, 10))
		answer := o.fx.Answers[0].ID
		for left := after; left > 0; left -= grab.HeardAfter { // it is never stopped
			o.step(min(left, grab.HeardAfter), Inputs{})
		}
		o.step(0, Inputs{Bounced: []uint64{answer, answer}})
		got := 0
		for _, b := range o.fx.Batches {
			got += len(b.HandBacks)
		}
		if got != backs || o.fx.Counts.Bounced != int64(backs) {
			t.Errorf("after %v %d are handed back, want %d; %+v", after, got, backs, o.fx.Counts)
		}
		o.step(grab.HeardAfter, Inputs{Verdicts: []grab.Verdicts{{Batch: 3, All: []grab.Verdict{{}}}, {Batch: 4, All: []grab.Verdict{{}}}}})
		o.step(grab.HeardAfter, Inputs{})
		if o.step(0, Inputs{}); o.s.Census().Receipts != 0 {
			t.Errorf("after %v: %+v", after, o.s.Census())
		}
	}
}

// R41: an owner that was stopped hears that there was no subscriber when it goes on, a little after its first turn: until then
// its answer does not count as received.
func TestR41StoppedOwnerHearsLate(t *testing.T) {
	w, o := withADeafPoll(t, 2)
	w.delay = func() time.Duration {
		if w.polls["deaf"].answered > 0 {
			return 5 * time.Second
		}
		return ms
	}
	for w.polls["deaf"].answered == 0 {
		w.run(100 * time.Microsecond)
	}
	w.delay = func() time.Duration { return ms }
	o.stop(4990 * ms)
	w.run(5010 * ms)
	w.wait("p", 5)
	w.run(100 * ms)
	if w.polls["p"].tasks != 2 || w.counts.HandedBack != 2 {
		t.Fatalf("%+v; %d handed back", w.polls["p"], w.counts.HandedBack)
	}
	if last := w.batches[len(w.batches)-1]; last.Delivered >= last.Number {
		t.Fatalf("%+v", last)
	}
}

// A hand-back that history could not look at is repeated.
func TestHandBackIsRepeated(t *testing.T) {
	w, o := withADeafPoll(t, 1)
	w.run(3 * ms)
	w.partitions[0].silent = true
	w.run(50 * ms)
	back := w.batches[len(w.batches)-1]
	if len(back.HandBacks) != 1 {
		t.Fatalf("%+v", back)
	}
	if w.partitions[0].kept == nil {
		t.Fatal("it was heard")
	}
	w.partitions[0].kept = nil
	o.give(func(in *Inputs) {
		in.Verdicts = []grab.Verdicts{{Partition: 0, Batch: back.Number, All: []grab.Verdict{{Refused: "UNAVAILABLE"}, {}}}}
	})
	w.run(10 * ms)
	if last := w.batches[len(w.batches)-1]; len(last.HandBacks) != 1 || last.Number != back.Number+1 {
		t.Fatalf("%+v", last)
	}
	w.speak(0)
	w.wait("p", 1)
	w.run(100 * ms)
	if w.polls["p"].tasks != 1 {
		t.Fatalf("%+v; %s", w.polls["p"], fmt.Sprint(w.batches))
	}
}

// R41: an answer counts as received only by a round trip to the server that began grab.HeardAfter later. If the connection
// broke before, it is sent again to the same inbox, and not handed back where the repeat finds no subscriber.
func TestR41AnswersAreSentAgainWhenTheConnectionBroke(t *testing.T) {
	o := alone(t, 1)
	o.grab()
	o.step(0, o.granted(0, 10))
	first := o.fx.Answers[0]
	o.unproven = true
	o.step(grab.HeardAfter-1, Inputs{})
	if o.fx.Prove {
		t.Error("a round trip is too early")
	}
	o.step(1, Inputs{})
	if !o.fx.Prove {
		t.Error("no round trip is asked for")
	}
	o.step(2*grab.HeardAfter, Inputs{Proven: o.now.Mono - 1})
	if receipts := o.s.Census().Receipts; receipts == 0 {
		t.Error("a round trip from too early a time resolves it")
	}
	o.step(0, Inputs{Broke: true})
	testkit.MustEqual(t, "answers are sent", len(o.fx.Answers), 1)
	again := o.fx.Answers[0]
	if again.ID != 0 || again.ReplyTo != first.ReplyTo || again.JSON != first.JSON || !slices.EqualFunc(again.Tasks, first.Tasks, bytes.Equal) {
		t.Errorf("sent again is %+v, first was %+v", again, first)
	}
	o.unproven = false
	o.step(grab.HeardAfter, Inputs{})
	if o.step(0, Inputs{}); o.s.Census().Receipts != 0 || o.fx.Counts.HandedBack != 0 {
		t.Errorf("%+v, %+v", o.s.Census(), o.fx.Counts)
	}
	if o.step(0, Inputs{Broke: true}); len(o.fx.Answers) != 0 {
		t.Error("what was received is sent again")
	}
}

// R41: what was sent so long ago that another may have the attempt soon is not sent again.
func TestR41OldAnswersAreNotSentAgain(t *testing.T) {
	for after, want := range map[time.Duration]int{grab.RepeatWithin - 1: 1, grab.RepeatWithin: 0} {
		o := alone(t, 1)
		o.grab()
		o.step(0, o.granted(0, 10))
		o.unproven = true
		for left := after; left > 0; left -= grab.HeardAfter {
			o.step(min(left, grab.HeardAfter), Inputs{Broke: left == after}) // a repeat does not make it younger
		}
		if o.step(0, Inputs{Broke: true}); len(o.fx.Answers) != want {
			t.Errorf("after %v: %d answers are sent again", after, len(o.fx.Answers))
		}
	}
}

// R41: a poll that was given up ends, also if its worker's server would take an answer for delivered: what is granted to it is handed back, and what comes
// later goes to others.
func TestR41AGivenUpPollThatWaitsEnds(t *testing.T) {
	for _, grabs := range []bool{false, true} {
		o := alone(t, 1)
		first := o.poll(1, time.Hour)
		first.Polls[0].ReplyTo = "inbox"
		o.step(0, first)
		verdict := Inputs{}
		if grabs {
			o.step(0, o.hint("b", 0, 1))
			verdict = o.granted(0, 10)
		}
		o.step(0, Inputs{GivenUp: []waiting.GivenUp{{Domain: "e", Inboxes: []string{"inbox"}}}})
		testkit.Equal(t, "answers when another domain says so", len(o.fx.Answers), 0)
		o.step(0, Inputs{GivenUp: []waiting.GivenUp{{Domain: "d", Inboxes: []string{"inbox"}}}})
		if len(o.fx.Answers) != 1 || len(o.fx.Answers[0].Tasks) > 0 {
			t.Errorf("grabs %v: %d answers", grabs, len(o.fx.Answers))
		}
		backs := 0
		for _, in := range []Inputs{verdict, o.hint("b", 0, 1), {}} {
			o.step(0, in)
			for _, b := range o.fx.Batches {
				if backs += len(b.HandBacks); len(b.Grabs) > 0 {
					t.Errorf("grabs %v: it is given %d tasks", grabs, len(b.Grabs))
				}
			}
		}
		testkit.Equal(t, "handed back", backs, map[bool]int{true: 1}[grabs])
	}
}

// R41: a worker that lost its connection tells of the inboxes that it has given up: what was sent there is handed back,
// also after it counted as received, if it is of the same domain.
func TestR41WhatAGivenUpPollWasSentIsHandedBack(t *testing.T) {
	for _, c := range []struct {
		domain, inbox string
		after         time.Duration
		backs         int
	}{
		{"d", "inbox", 0, 1},
		{"d", "inbox", waiting.BouncedWithin - 1, 1},
		{"d", "inbox", waiting.BouncedWithin, 0},
		{"d", "another", 0, 0},
		{"e", "inbox", 0, 0},
	} {
		o := alone(t, 1)
		first := o.poll(1, time.Hour)
		first.Polls[0].ReplyTo = "inbox"
		o.step(0, first)
		o.step(0, o.hint("b", 0, 1))
		o.step(0, o.granted(0, 10))
		for left := c.after; left > 0; left -= grab.HeardAfter {
			o.step(min(left, grab.HeardAfter), Inputs{})
		}
		o.step(0, Inputs{GivenUp: []waiting.GivenUp{{Domain: c.domain, Inboxes: []string{c.inbox, c.inbox}}}})
		got := 0
		for _, b := range o.fx.Batches {
			got += len(b.HandBacks)
		}
		if got != c.backs || o.fx.Counts.Bounced != int64(c.backs) {
			t.Errorf("%+v: %d are handed back; %+v", c, got, o.fx.Counts)
		}
	}
}
