package match

import (
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/dealing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
)

// holds compares what a shard holds, and what its last turn has counted.
func (o *solo) holds(when string, census Census, counts Counts) {
	o.Helper()
	if got := o.s.Census(); got != census {
		o.Errorf("%s: it holds %+v, want %+v", when, got, census)
	}
	got := o.fx.Counts
	if got.Looks = 0; got != counts { // waiter_test.go counts these
		o.Errorf("%s: it has counted %+v, want %+v", when, got, counts)
	}
}

// refused is a verdict that refuses all grabs of a batch of the last turn.
func (o *solo) refused(batch int, code fault.Code) Inputs {
	o.Helper()
	in := o.granted(batch, 0)
	for i := range in.Verdicts[0].All {
		in.Verdicts[0].All[i] = grab.Verdict{Refused: string(code)}
	}
	return in
}

// What a shard holds and what it has done, from the first trigger of a tasklist to the last.
func TestCensusAndCounts(t *testing.T) {
	o := alone(t, 1, func(c *Config) { c.GrabsInFlight = 1 })
	o.holds("at the start", Census{Domains: 1, Lists: 1}, Counts{})

	o.step(0, o.poll(2, time.Hour))
	o.holds("a poll waits", Census{Domains: 1, Lists: 1, Polls: 1}, Counts{PollCounts: waiting.PollCounts{Polls: 1}, WaitingPolls: 1})

	o.step(0, o.hint("b", 0, 3))
	o.holds(
		"two are grabbed, one is stored", Census{Domains: 1, Lists: 1, Polls: 1, Grabs: 2, Calls: 1, Receipts: 1},
		Counts{HintBatches: 1, Triggers: 3, DealCounts: dealing.DealCounts{SyncMatches: 2}, WaitingPolls: 1, Counts: grab.Counts{GrabBatches: 1}},
	)
	stored := o.fx.Calls[0]
	verdicts := o.granted(0, 10)
	verdicts.Verdicts[0].All[1] = grab.Verdict{Refused: string(fault.Stale)}

	o.step(0, join(o.poll(1, time.Hour), o.hint("b", 0, 2)))
	o.holds(
		"chunks wait for the call", Census{Domains: 1, Lists: 1, Polls: 2, Grabs: 2, Calls: 1, Receipts: 1, Chunks: 1},
		Counts{HintBatches: 1, Triggers: 2, PollCounts: waiting.PollCounts{Polls: 1}, WaitingPolls: 2},
	)

	o.step(0, verdicts)
	o.holds(
		"one is granted, the other refused", Census{Domains: 1, Lists: 1, Polls: 1, Calls: 1, Receipts: 1, Chunks: 1},
		Counts{WaitingPolls: 1, Counts: grab.Counts{Granted: 1, GrabsRefused: 1}},
	)
	if len(o.fx.Answers) != 1 || len(o.fx.Traced) != 0 {
		t.Fatalf("answers %+v, traced %+v", o.fx.Answers, o.fx.Traced)
	}
	answer := o.fx.Answers[0].ID

	o.step(0, Inputs{Bounced: []uint64{answer}})
	o.holds(
		"no one heard the answer", Census{Domains: 1, Lists: 1, Polls: 1, HandBacks: 1, Calls: 1, Receipts: 2, Chunks: 1},
		Counts{PollCounts: waiting.PollCounts{Bounced: 1}, WaitingPolls: 1, Counts: grab.Counts{HandedBack: 1}},
	)

	o.step(0, Inputs{Verdicts: []grab.Verdicts{{Batch: o.fx.Batches[0].Number, All: []grab.Verdict{{}}}}})
	o.step(grab.HeardAfter, Inputs{})
	o.step(0, Inputs{})
	o.holds("history knows", Census{Domains: 1, Lists: 1, Polls: 1, Calls: 1, Chunks: 1}, Counts{WaitingPolls: 1})

	o.step(0, Inputs{Outcomes: []CallOutcome{{Domain: "d", Outcome: table.Outcome{Taken: make([]table.Taken, len(stored.Wants))}}}})
	if len(o.fx.Calls) != 1 || len(o.fx.Calls[0].Put) != 1 || len(o.fx.Calls[0].Wants) != 1 {
		t.Fatalf("it calls %+v", o.fx.Calls)
	}
	put := stored.Put[0]
	o.step(0, Inputs{Outcomes: []CallOutcome{{Domain: "d", Outcome: table.Outcome{Taken: []table.Taken{{
		Batches: []table.Batch{{Chunk: put}},
		Heads:   []table.Head{{Column: put.Column, ReadyAt: put.ReadyAt, Gone: 1}},
	}}}}}})
	o.holds(
		"one comes out of the table", Census{Domains: 1, Lists: 1, Polls: 1, Grabs: 1, Receipts: 1},
		Counts{CallCounts: tablecall.CallCounts{Matches: 1}, WaitingPolls: 1, Counts: grab.Counts{GrabBatches: 1}},
	)
	if ready, polls := counts(o.s, "d", "l"); ready != 2 || polls != 1 {
		t.Errorf("%d triggers are ready, %d polls wait", ready, polls)
	}
}

// A trigger of an attempt that runs is of no use.
func TestTriggerOfAnAttemptThatRuns(t *testing.T) {
	o := runs(t)
	again := ids.AppendTrigger(nil, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, 99), Version: 1})
	g := o.group("a", 3, 0, 0)
	g.Packed = again
	o.step(0, Inputs{Hints: []Hints{{Delivery: 1, Triggers: []arrival.Triggers{g}}}})
	o.step(0, o.called())
	o.step(0, o.poll(1, time.Hour))
	o.step(0, Inputs{Outcomes: []CallOutcome{{Domain: "d", Outcome: table.Outcome{
		Taken: []table.Taken{{
			Batches: []table.Batch{{Chunk: table.Chunk{Tasklist: g.Tasklist, Column: g.Column, ReadyAt: g.ReadyAt, Triggers: again}, Booked: true}},
			Heads:   []table.Head{{Column: g.Column, Empty: true, Gone: 1}},
		}},
		Limits: []table.LimitState{{Used: 2}},
	}}}})
	o.holds(
		"it runs", Census{Domains: 1, Lists: 1, Polls: 1, Slots: 1, Reported: 2}, Counts{CallCounts: tablecall.CallCounts{Matches: 1}, DealCounts: dealing.DealCounts{Duplicates: 1}, WaitingPolls: 1},
	)
}

// A grab that is refused for now is handed back only if it was sent twice: history knows best.
func TestARefusedGrabThatWasSentOnceIsNotHandedBack(t *testing.T) {
	o := alone(t, 1)
	o.grab()
	o.step(0, o.refused(0, fault.FailedPrecondition))
	o.holds("it is refused", Census{Domains: 1, Lists: 1, Polls: 1}, Counts{WaitingPolls: 1, Counts: grab.Counts{GrabsRefused: 1}})
}

// A poll that was granted what it did not count on any more, while it waits for another grab, has that much
// less room.
func TestRoomOfAPollWithALateGrant(t *testing.T) {
	o := alone(t, 2, func(c *Config) { c.GrabsInFlight = 1 })
	o.step(0, o.poll(2, time.Hour, "b"))
	o.step(0, o.hint("b", 0, 1))
	late := o.granted(0, 10)
	o.step(grab.SilentAfter, Inputs{}) // it goes on without
	o.step(0, join(o.poll(1, time.Hour, "other"), o.hint("other", 1, 1)))
	o.step(0, o.hint("b", 1, 1)) // gathers behind the other grab
	o.step(0, late)
	o.step(0, o.hint("b", 1, 2)) // there is no room for these
	if c := o.s.Census(); c.Grabs != 2 || c.Calls != 1 || c.Polls != 2 {
		t.Fatalf("%+v", c)
	}
}

// counts is how many triggers of a tasklist, and how many polls, a shard has in all partitions.
func counts(s *Shard, domain, name string) (ready, polls int) {
	for _, p := range s.Tasklist(domain, name) {
		ready, polls = ready+p.Ready, polls+p.Polls
	}
	return ready, polls
}
