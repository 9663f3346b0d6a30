package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The times that depend on each other.
func TestTimesRelate(t *testing.T) {
	for _, c := range []struct {
		name        string
		less, bound time.Duration
	}{
		{"a poll with a grant waits for a silent partition, but not long", grab.SilentAfter, waiting.PollGrace},
		{"a poll waits for a grab of a silent partition", 0, grab.DetachAfter},
		{"what rests goes while a poll waits for its verdicts", restMax, grab.SilentAfter},
		{"who is silent was waited for as long as a grab of one that is", grab.DetachAfter, grab.SilentAfter},
		{"a batch is repeated where its partition is silent", grab.SilentAfter, grab.ResendAfter},
		{"what does not answer is not asked all the time", 100 * time.Millisecond, tablecall.RetryEvery},
		{"an answer may be bounced after it counted as received", grab.HeardAfter, waiting.BouncedWithin},
		{"slots that are freed together are reported together", 0, limit.ReportAfter},
		{"who waits in a line shows itself before it loses its place", limit.LineEvery, table.LineStale},
		{"slots in use are shown before they expire", limit.RefreshAfter, table.ExpiryAfter},
		{"complaints become rare", hungryMin, hungryMax},
		{"the audit of a full limit is rare", limit.AuditSoon, limit.AuditEvery},
		{"a drain waits for verdicts", grab.SilentAfter, drainTimeout},
		{"an idle shard sleeps", sweepEvery, idleAfter},
	} {
		if c.less >= c.bound {
			t.Errorf("%s: %v is not less than %v", c.name, c.less, c.bound)
		}
	}
}

// runs is a shard of which one attempt of the limited type "a" runs: of two slots one is free.
func runs(t *testing.T) *solo {
	t.Helper()
	o := alone(t, 1)
	o.catalog.limits["d/a"] = 2
	o.step(0, Inputs{Limits: []string{"d"}})
	o.reply(limit.Running{
		Domain: "d", Type: "a", Path: []table.Ref{table.TypeRef("a")}, Member: booking(),
		DeadlineMS: o.now.MS + 600_000,
	})
	o.step(0, o.called())
	o.step(limit.AuditSoon, Inputs{})
	o.reply(limit.Running{Domain: "d", Type: "a", Member: booking()})
	o.step(sweepEvery, Inputs{})
	if c := o.s.Census(); c.Slots != 1 || c.Reported != 1 || c.Questions != 0 {
		t.Fatalf("%+v", c)
	}
	return o
}

// A shard with nothing to do but to show its slots now and then sleeps until then.
func TestShardWhoseAttemptsRunSleeps(t *testing.T) {
	o := runs(t)
	for range 3 {
		testkit.MustEqual(t, "it wakes in", o.fx.Wake-o.now.Mono, idleAfter)
		o.step(idleAfter, Inputs{})
		if len(o.fx.Calls) != 1 || o.fx.Calls[0].Stances[0].Held != 1 {
			t.Fatalf("it shows %+v", o.fx.Calls)
		}
		o.step(0, o.called())
		o.step(sweepEvery, Inputs{})
	}
}

// A limit that has no slot is tried again soon, though no poll waits any more.
func TestShardWithABlockedLimitWatches(t *testing.T) {
	o := runs(t)
	o.step(0, o.hint("a", 0, 1))
	o.step(0, o.called())
	o.step(0, o.poll(1, ms))
	c := o.fx.Calls[0]
	o.step(0, Inputs{Outcomes: []CallOutcome{{Domain: "d", Outcome: table.Outcome{
		Taken:  []table.Taken{{Heads: []table.Head{{Column: c.Wants[0].Candidates[0].Column, ReadyAt: 1000}}, Blocked: []table.Blocked{{By: table.TypeRef("a"), Why: table.InLine}}}},
		Limits: []table.LimitState{{Used: 1, Others: true}},
	}}}})
	o.step(time.Second-sweepEvery, Inputs{}) // the poll has ended
	for range 3 {
		if o.s.Census().Polls != 0 || o.fx.Wake > o.now.Mono+sweepEvery {
			t.Fatalf("it wakes in %v", o.fx.Wake-o.now.Mono)
		}
		if len(o.fx.Calls) > 0 {
			if st := o.fx.Calls[0].Stances[0]; st.Wait != 0 {
				t.Errorf("it waits in line with %d", st.Wait)
			}
			return
		}
		o.step(sweepEvery, Inputs{})
	}
	t.Error("it is not tried again")
}

// Tables that do not answer are opened again each RetryEvery, also if no one waits.
func TestTablesThatFailAreTriedAgain(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.hint("b", 0, 1))
	o.step(sweepEvery, Inputs{Outcomes: []CallOutcome{{Domain: "d", Failed: true}}})
	for range 3 {
		for _, c := range []struct {
			after time.Duration
			opens int
		}{{tablecall.RetryEvery - 1, 0}, {1, 1}, {10 * time.Second, 0}} {
			o.step(c.after, Inputs{})
			if len(o.fx.Opens) != c.opens || o.fx.Wake > o.now.Mono+sweepEvery {
				t.Fatalf("%v later %d are opened; it wakes in %v", c.after, len(o.fx.Opens), o.fx.Wake-o.now.Mono)
			}
		}
		o.step(0, Inputs{Opened: []OpenOutcome{{Domain: "d", Failed: true}}})
	}
}

// A question that waits to be asked again keeps the shard awake, beside one that is asked.
func TestShardWithQuestionsWatches(t *testing.T) {
	o := alone(t, 2)
	o.step(0, Inputs{HintsLost: true})
	first := o.fx.Asks[0]
	o.step(sweepEvery/2, Inputs{Answers: []question.Answer{{Question: first, Failed: true}}})
	o.step(sweepEvery/2, Inputs{})
	if len(o.fx.Asks) != 0 || o.fx.Wake > o.now.Mono+sweepEvery || o.s.Census().Questions != 2 {
		t.Fatalf("it wakes in %v; %+v", o.fx.Wake-o.now.Mono, o.s.Census())
	}
}

// I14: the tasklists of polls that do not wait are forgotten at once where there are many, and after
// idleAfter where they are few.
func TestI14_TasklistsOfPollsThatDoNotWaitAreForgotten(t *testing.T) {
	o := alone(t, 1)
	lists := func(n int) {
		for first := 0; first < n; first += 50 {
			var in Inputs
			for i := range min(50, n-first) {
				in.Polls = append(in.Polls, waiting.Poll{Domain: "d", Tasklist: fmt.Sprint("l", first+i), Max: 1})
			}
			o.step(0, in)
		}
		o.step(sweepEvery, Inputs{})
	}
	lists(idleListsMax - 1) // there is one from the start
	testkit.MustEqual(t, "tasklists", o.s.Census().Lists, idleListsMax)
	lists(idleListsMax + 1)
	testkit.MustEqual(t, "tasklists", o.s.Census().Lists, 0)
}
