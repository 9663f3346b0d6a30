package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// kinds counts the questions of one kind.
func kinds(asks []question.Question, kind question.Kind) (n int) {
	for _, a := range asks {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

// What came up again while it was asked is asked once more when it is answered, after a rest by how long that took: triggers of a domain
// that are sent again without end would hold up others (I14). What failed is asked again after question.RetryEvery.
func TestWhenAQuestionIsAskedAgain(t *testing.T) {
	o := alone(t, 1)
	o.step(0, Inputs{HintsLost: true})
	if kinds(o.fx.Asks, question.Retrigger) != 1 {
		t.Fatalf("%+v", o.fx.Asks)
	}
	first := o.fx.Asks[0]
	o.step(ms, Inputs{HintsLost: true})
	if len(o.fx.Asks) != 0 {
		t.Fatalf("%+v while it is asked", o.fx.Asks)
	}
	for _, c := range []struct{ took, rest time.Duration }{{0, question.AgainRest * ms}, {question.AgainRestMax, question.AgainRestMax}} { // the first took 1 ms
		o.step(c.took, Inputs{HintsLost: true})
		o.step(0, Inputs{Answers: []question.Answer{{Question: first}}})
		if o.step(c.rest-1, Inputs{}); len(o.fx.Asks) != 0 {
			t.Fatalf("it is asked again before %v", c.rest)
		}
		if o.step(1, Inputs{}); len(o.fx.Asks) != 1 {
			t.Fatalf("it is not asked again after %v", c.rest)
		}
		first = o.fx.Asks[0]
	}
	o.step(0, Inputs{Answers: []question.Answer{{Question: first, Failed: true}}})
	for _, c := range []struct {
		after time.Duration
		asked int
	}{{0, 0}, {question.RetryEvery - 1, 0}, {1, 1}} {
		if o.step(c.after, Inputs{}); len(o.fx.Asks) != c.asked {
			t.Fatalf("%v later: %+v", c.after, o.fx.Asks)
		}
	}
	o.reply()
	if o.step(time.Second, Inputs{}); len(o.fx.Asks) != 0 || o.s.Census().Questions != 0 {
		t.Fatalf("it is answered: %+v", o.fx.Asks)
	}
}

// A limit without attempts is asked about once, also if hints were lost.
func TestALimitThatNobodyUsesIsNotAudited(t *testing.T) {
	w, o := limited(t, 1, 1)
	o.give(func(in *Inputs) { in.HintsLost = true })
	w.run(40 * time.Second)
	if n := kinds(w.asked, question.Running); n != 1 || len(w.restores) != 0 {
		t.Errorf("asked %d times, others %d times", n, len(w.restores))
	}
}

// A new owner asks a second time about a limit that is in use, a second later, and then no more while the attempt may run.
func TestATakeoverAuditsOnce(t *testing.T) {
	w, _ := limited(t, 1, 2)
	w.begin(1)
	w.kill(0)
	w.asked = nil
	o := w.own(0, 2)
	for _, c := range []struct {
		after time.Duration
		asked int
	}{{limit.AuditSoon - sweepEvery, 1}, {2 * sweepEvery, 2}, {50 * time.Second, 2}} {
		w.run(c.after)
		if n := kinds(w.asked, question.Running); n != c.asked {
			t.Fatalf("asked %d times after %v more, want %d", n, c.after, c.asked)
		}
	}
	if c := o.s.Census(); c.Slots != 1 || c.Reported != 1 || c.Unbooked != 0 {
		t.Errorf("%+v", c)
	}
}

// Attempts for which nothing was booked are looked after each second: nothing tells of their end.
func TestUnbookedAttemptsAreAudited(t *testing.T) {
	w, o := begun(t, 1)
	w.begin(2)
	w.limit("d/a", 9)
	w.run(10500 * ms)
	if c := o.s.Census(); c.Slots != 2 || c.Unbooked != 2 {
		t.Errorf("%+v", c)
	}
	if n := kinds(w.asked, question.Running); n < 8 || n > 11 {
		t.Errorf("asked %d times in 10 s", n)
	}
}

// A limit that was shown to be full is audited each 30 s, also if no one waits for it.
func TestAFullLimitIsAudited(t *testing.T) {
	w, _ := limited(t, 1, 1)
	w.ends = false
	w.wait("p", 1)
	w.run(ms)
	w.ready("d", "l0", "a", 1, 1)
	w.run(61 * time.Second) // it is shown again
	w.asked = nil
	w.run(85 * time.Second)
	testkit.Equal(t, "asked in 85 s", kinds(w.asked, question.Running), 2)
	testkit.Equal(t, "others were asked for their entries, and no one waits", len(w.restores), 0)
}

// A shard that waits for slots asks the others for their entries before it compares with history: one of them may be too high.
func TestWhoWaitsForSlotsAsksOthersForTheirEntries(t *testing.T) {
	w, _ := limited(t, 1, 1)
	w.begin(2)
	w.wait("q", 1)
	w.run(29 * time.Second)
	testkit.MustEqual(t, "others were asked early", len(w.restores), 0)
	w.run(2 * time.Second)
	if len(w.restores) != 1 || w.restores[0].Domain != "d" || len(w.restores[0].Limits) != 1 || w.restores[0].Limits[0] != table.TypeRef("a") {
		t.Fatalf("others were asked for %+v", w.restores)
	}
}
