package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// A question that a partition does not answer is asked again until it does.
func TestQuestionsAreRepeated(t *testing.T) {
	w, o := begun(t, 1)
	w.partitions[0].silent = true
	w.limit("d/a", 1)
	w.asked = nil
	w.run(10 * time.Second) // an answer is waited for for 2 s
	if n := len(w.asked); n < 4 || n > 6 {
		t.Fatalf("asked %d times", n)
	}
	w.speak(0)
	w.wait("p", 1)
	w.ready("d", "l0", "a", 1, 1)
	w.run(3 * time.Second)
	w.wantTasks("p", 1)
	o.give(func(in *Inputs) { in.Answers = []question.Answer{{Question: question.Question{ID: 12345}}} }) // no one has asked
	w.run(ms)
}

// A limit of a domain that is not known here counts what runs, and its entry is set.
func TestLimitOfUnknownDomain(t *testing.T) {
	w, o := begun(t, 1)
	w.ends = false
	w.poll("p", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 5, For: time.Minute})
	w.ready("e", "l0", "a", 1, 2)
	w.run(3 * time.Minute) // the domain is forgotten
	if o.s.domains["e"] != nil {
		t.Fatal("it is known still")
	}
	w.limits["e/a"] = 3
	o.give(func(in *Inputs) { in.Limits = []string{"e", "unlimited"} })
	w.run(50 * ms)
	testkit.MustEqual(t, "slots are in use, 2 attempts run", w.tables.Slots("e", []table.Ref{"type/a"}, epochMS+w.now.Milliseconds())[0], 2)
	if o.s.domains["unlimited"] != nil {
		t.Error("a domain without limits was opened")
	}
}

// A limit that is raised is tried again at once, one that is lowered holds.
func TestLimitIsRaisedAndLowered(t *testing.T) {
	w, _ := limited(t, 1, 1)
	w.ends = false
	w.waits(4)
	made := w.ready("d", "l0", "a", 1, 4)
	w.run(100 * ms)
	w.limit("d/a", 3)
	w.run(20 * ms)
	testkit.MustEqual(t, "run, 3 may", w.running["d/a"], 3)
	w.limit("d/a", 2)
	w.run(20 * ms)
	for _, x := range made {
		if x.state == "running" {
			w.finish(x)
			break
		}
	}
	w.run(2 * time.Second)
	testkit.MustEqual(t, "run, 2 may", w.running["d/a"], 2)
}

// A freed slot is used at once, also if the word of it comes while a call is under way that finds none.
func TestSlotFreedDuringACall(t *testing.T) {
	w, _ := limited(t, 1, 1)
	first := w.begin(1)
	w.wait("q", 1)
	w.run(ms)
	w.delay = func() time.Duration { return 20 * ms }
	w.ready("d", "l0", "a", 1, 1)
	w.run(30 * ms) // the call is under way
	w.delay = func() time.Duration { return ms }
	w.finish(first[0])
	began := w.now
	w.run(400 * ms)
	if p := w.polls["q"]; p.tasks != 1 || p.at-began > 100*ms {
		t.Fatalf("after %v: %+v", p.at-began, p)
	}
}

// What a turn frees is counted before the same turn books.
func TestReleaseIsCountedInItsTurn(t *testing.T) {
	w, _ := limited(t, 1, 1)
	first := w.begin(1)
	w.wait("q", 1)
	w.ready("d", "l0", "a", 1, 1)
	w.run(100 * ms)
	calls := len(w.calls)
	w.finish(first[0])
	w.run(ms) // the hint arrives
	if len(w.calls) != calls+1 {
		t.Fatalf("%d calls", len(w.calls)-calls)
	}
	if c := w.calls[calls]; len(c.Wants) != 1 || c.Stances[0].Held != 0 {
		t.Fatalf("%+v", c)
	}
}

// The word that another shard has freed slots counts, also while a call is under way that finds none.
func TestFreedDuringACall(t *testing.T) {
	w, o := limited(t, 1, 1)
	w.begin(1)
	w.wait("q", 1)
	w.run(ms)
	w.delay = func() time.Duration { return 20 * ms }
	w.ready("d", "l0", "a", 1, 1)
	w.run(30 * ms) // the call is under way
	calls := len(w.calls)
	o.give(func(in *Inputs) { in.Freed = []LimitHint{{"d", []table.Ref{"type/a"}}} })
	w.run(50 * ms)
	if n := len(w.calls) - calls; n != 1 || len(w.calls[calls].Wants) != 1 {
		t.Fatalf("%d calls", n)
	}
	w.run(500 * ms)
	testkit.MustEqual(t, "calls", len(w.calls)-calls, 1)
}

// Slots of triggers that come to nothing are used again without delay.
func TestSlotsOfDoublesAreReused(t *testing.T) {
	w, _ := limited(t, 1, 1)
	w.ends = false
	gone := w.task("d", "l0", "a", 1, 0)
	gone.state = "done"
	for range 10 {
		gone.version++
		w.trigger(gone)
	}
	w.run(50 * ms)
	w.ready("d", "l0", "a", 1, 1)
	w.run(50 * ms)
	began := w.now
	w.wait("p", 1)
	w.run(time.Second)
	if p := w.polls["p"]; p.tasks != 1 || p.at-began > 300*ms {
		t.Fatalf("after %v: %+v", p.at-began, p)
	}
}

// A shard that waits in the line shows itself often enough to keep its place.
func TestLineIsKept(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.limits["d/a"] = 1
	w.own(0, 1)
	w.own(1, 1)
	w.ends = false
	w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
	first := w.ready("d", "l0", "a", 1, 1)
	w.run(2 * time.Second)
	w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l1", Max: 1, For: time.Minute})
	w.ready("d", "l1", "a", 4, 1)
	calls := len(w.calls)
	w.run(10 * time.Second)
	shown := 0
	for _, c := range w.calls[calls:] {
		for _, st := range c.Stances {
			if c.Shard == 1 && st.Wait > 0 {
				shown++
			}
		}
	}
	if shown < 7 || shown > 15 {
		t.Fatalf("it showed itself %d times in 10 s", shown)
	}
	began := w.now
	w.finish(first[0])
	w.run(500 * ms)
	if p := w.polls["q"]; p.tasks != 1 || p.at-began > 100*ms {
		t.Fatalf("after %v: %+v", p.at-began, p)
	}
}

// A shard that waits behind one that is gone does not ask in a circle: it gets the slot when that one has
// lost its place.
func TestLineBehindADeadShard(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.limits["d/a"] = 1
	w.own(0, 1)
	other := w.own(1, 1)
	w.ends = false
	w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
	first := w.ready("d", "l0", "a", 1, 1)
	w.run(2 * time.Second)
	w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l1", Max: 1, For: time.Minute})
	w.ready("d", "l1", "a", 1, 1)
	w.run(200 * ms)
	other.dead = true
	w.poll("r", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: time.Minute})
	w.ready("d", "l0", "a", 3, 1)
	w.run(200 * ms)
	calls := len(w.calls)
	w.finish(first[0])
	w.run(2 * time.Second)
	if n := len(w.calls) - calls; n > 10 {
		t.Fatalf("%d calls in 2 s", n)
	}
	w.run(4 * time.Second)
	w.wantTasks("r", 1)
}

// Grabs of a poll that was answered meanwhile are not sent; their triggers go back.
func TestGatheredGrabOfAnsweredPoll(t *testing.T) {
	w, o := begun(t, 2, func(c *Config) { c.GrabsInFlight = 1 })
	w.limit("d/a", 5)
	w.run(50 * ms)
	w.ends = false
	w.wait("block", 1)
	w.run(ms)
	w.trigger(w.task("d", "l0", "b", 1, 0))
	w.delay = func() time.Duration { return 40 * ms }
	w.run(2 * ms) // it is on its way to partition 0, and takes 80 ms in all
	w.delay = func() time.Duration { return ms }
	w.wait("p", 1)
	w.trigger(w.task("d", "l0", "a", 1, 0))
	w.run(30 * ms)
	o.give(func(in *Inputs) { in.GivenUp = []waiting.GivenUp{{Domain: "d", Inboxes: []string{"p"}}} })
	w.run(ms)
	if p := w.polls["p"]; p.answered != 1 || o.s.Census().Grabs != 2 {
		t.Fatalf("%+v; %+v", p, o.s.Census())
	}
	w.run(100 * ms)
	if n := o.s.Census().Slots; n != 0 || o.s.Census().Grabs != 0 {
		t.Fatalf("%d slots are in use", n)
	}
	w.wait("q", 1)
	w.run(20 * ms)
	if w.polls["q"].tasks != 1 || w.counts.Duplicates != 0 {
		t.Fatalf("%+v", w.polls["q"])
	}
}

// Two inputs about one domain that is gone, or was not asked, change nothing.
func TestAnswersOutOfPlace(t *testing.T) {
	w, o := begun(t, 1)
	o.give(func(in *Inputs) {
		in.Outcomes = []CallOutcome{{Domain: "d"}, {Domain: "nobody"}}
		in.Opened = []OpenOutcome{{Domain: "d"}, {Domain: "nobody"}}
		in.Drain = false
	})
	w.run(ms)
	w.wait("p", 1)
	w.ready("d", "l0", "b", 1, 1)
	w.run(20 * ms)
	w.wantTasks("p", 1)
}

// Tables that lose their memory under a shard are opened again, and history is asked at once.
func TestLostTablesAreAskedFor(t *testing.T) {
	w, _ := begun(t, 2)
	w.ready("d", "l0", "b", 1, 4)
	w.run(50 * ms)
	w.tables.Forget()
	w.retrigs = nil
	w.wait("p", 4)
	w.run(100 * ms)
	if w.polls["p"].tasks != 4 || len(w.retrigs) != 2 || w.counts.Losses != 1 {
		t.Fatalf("%+v; asked %d times", w.polls["p"], len(w.retrigs))
	}
}

// Two questions about the same triggers are one, asked again if the first may have looked too early.
func TestRetriggersAreJoined(t *testing.T) {
	w, o := begun(t, 1)
	w.partitions[0].silent = true
	w.asked, w.retrigs = nil, nil
	for range 5 {
		o.give(func(in *Inputs) { in.HintsLost = true })
		w.run(20 * ms)
	}
	testkit.MustEqual(t, "asked", len(w.retrigs), 1)
	w.speak(0)
	w.run(time.Second)
	testkit.MustEqual(t, "asked", len(w.retrigs), 2)
}

// An answer of history that cannot be read as attempts frees and counts nothing.
func TestMalformedAnswers(t *testing.T) {
	w, o := limited(t, 1, 1)
	w.begin(1)
	c, _, _ := o.s.limits.BeginCount(o.s.domains["d"].Met, true)
	malformed := c.Learn(0, 0, []limit.Running{{Type: "a", Member: "short"}, {Type: "b", Member: string(make([]byte, 20))}})
	if malformed != 1 || o.s.Census().Slots != 1 {
		t.Fatalf("%d malformed", malformed)
	}
}

// A release comes of a domain that is not known, and has no limit any more.
func TestReleaseWhileItsLimitIsLifted(t *testing.T) {
	s := New(Config{Shards: 1, Partitions: 1, Epoch: 1}, &world{}, Now{})
	in := Inputs{Hints: []Hints{{Delivery: 1, Releases: []Release{{
		Domain: "d", Type: "x", Path: []table.Ref{table.TypeRef("x")}, Bookings: make([]byte, ids.BookingBytes),
	}}}}}
	var fx Effects
	s.Step(&in, Now{}, &fx)
	if len(fx.Acks) != 1 {
		t.Errorf("%+v", fx.Acks)
	}
}
