package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/question"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// solo is a shard without a world: what comes in, and at which instant, is up to the test.
type solo struct {
	*testing.T
	s   *Shard
	now Now
	fx  Effects
	// catalog holds limits by domain and type.
	catalog *world
	// delivery and task count hints and triggers.
	delivery uint64
	task     uint64
	// unproven: no round trip ends but those of the test.
	unproven bool
}

// alone is a shard that has fenced its partitions, has no questions, and whose domain "d" is open.
func alone(t *testing.T, partitions int, change ...func(*Config)) *solo {
	t.Helper()
	return aloneAt(t, time.Hour, partitions, change...)
}

// aloneAt is one that begins at some time.
func aloneAt(t *testing.T, begins time.Duration, partitions int, change ...func(*Config)) *solo {
	t.Helper()
	cfg := Config{
		Shards: 1, Partitions: partitions, Epoch: 1, AnswerBytesMax: 100_000, PollsMax: 100, GrabEventsMax: 10,
		GrabsInFlight: 1, PopMax: 10,
	}
	for _, f := range change {
		f(&cfg)
	}
	o := &solo{T: t, catalog: &world{t: t, limits: map[string]int{}, byHand: true}}
	o.s = New(cfg, o.catalog, Now{Mono: begins})
	o.step(begins, Inputs{})
	var fenced Inputs
	for p := range partitions {
		fenced.Verdicts = append(fenced.Verdicts, grab.Verdicts{Partition: p, Batch: 1, All: []grab.Verdict{{}}})
	}
	o.step(0, fenced)
	o.reply()
	o.step(0, Inputs{Polls: []waiting.Poll{{Domain: "d", Tasklist: "l", Max: 1}}})
	o.step(0, Inputs{Opened: []OpenOutcome{{Domain: "d", Opened: table.Opened{Epoch: "e"}}}})
	if !o.s.start.open || !o.s.domains["d"].Open || len(o.fx.Answers) != 1 {
		t.Fatal("it has not started")
	}
	return o
}

// step is one turn, some time after the one before.
func (o *solo) step(after time.Duration, in Inputs) {
	o.Helper()
	o.now.Mono += after
	o.now.MS = 1_000_000 + o.now.Mono.Milliseconds()
	if !o.unproven {
		in.Proven = o.now.Mono
	}
	o.s.Step(&in, o.now, &o.fx)
	check(o.catalog, o.s)
}

// reply answers the questions of the last turn: nothing runs, nothing is to be sent again.
func (o *solo) reply(held ...limit.Running) {
	o.Helper()
	var in Inputs
	for _, a := range o.fx.Asks {
		out := question.Answer{Question: a}
		if a.Kind == question.Running {
			out.Running = held
		}
		in.Answers = append(in.Answers, out)
	}
	o.step(0, in)
}

// poll is for so many tasks of tasklist "l" of domain "d".
func (o *solo) poll(most int, wait time.Duration, types ...string) Inputs {
	return Inputs{Polls: []waiting.Poll{{Domain: "d", Tasklist: "l", Max: most, For: wait, Types: types, ReplyTo: "inbox"}}}
}

// hint is one message with n new triggers of a partition.
func (o *solo) hint(typ string, partition, n int) Inputs {
	o.delivery++
	return Inputs{Hints: []Hints{{Delivery: o.delivery, Triggers: []arrival.Triggers{o.group(typ, 3, partition, n)}}}}
}

func (o *solo) group(typ string, priority, partition, n int) arrival.Triggers {
	g := arrival.Triggers{Tasklist: table.Tasklist{Domain: "d", Name: "l"}, Column: table.Column{Priority: priority, Type: typ}, ReadyAt: 1000}
	for range n {
		o.task++
		g.Packed = ids.AppendTrigger(g.Packed, ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), partition, o.task), Version: 1})
	}
	return g
}

// called is what a call came to that found nothing out of the ordinary.
func (o *solo) called() Inputs {
	o.Helper()
	testkit.MustEqual(o, "calls", len(o.fx.Calls), 1)
	c := o.fx.Calls[0]
	out := table.Outcome{Taken: make([]table.Taken, len(c.Wants)), Limits: make([]table.LimitState, len(c.Stances))}
	for i, st := range c.Stances {
		out.Limits[i].Used = st.Held
	}
	return Inputs{Outcomes: []CallOutcome{{Domain: c.Domain, Outcome: out}}}
}

// granted is a verdict about all grabs of a batch of the last turn: they got tasks of so many bytes.
func (o *solo) granted(batch, bytes int) Inputs {
	o.Helper()
	if batch >= len(o.fx.Batches) {
		o.Fatalf("%d batches", len(o.fx.Batches))
	}
	b := o.fx.Batches[batch]
	v := grab.Verdicts{Partition: b.Partition, Batch: b.Number}
	for range b.Grabs {
		v.All = append(v.All, grab.Verdict{Task: make([]byte, bytes), DeadlineMS: o.now.MS + 60_000})
	}
	return Inputs{Verdicts: []grab.Verdicts{v}}
}

// grab has a poll be given a trigger of partition 0.
func (o *solo) grab() {
	o.Helper()
	o.step(0, o.poll(1, time.Hour))
	o.step(0, o.hint("b", 0, 1))
}

// limit has type a be limited, and nothing of it run.
func (o *solo) limit(most int) {
	o.Helper()
	o.catalog.limits["d/a"] = most
	o.step(0, Inputs{Limits: []string{"d"}})
	o.reply()
	o.step(0, o.called())
}

// join puts two inputs into one.
func join(a, b Inputs) Inputs {
	a.Outcomes, a.Verdicts = append(a.Outcomes, b.Outcomes...), append(a.Verdicts, b.Verdicts...)
	a.Hints, a.Polls = append(a.Hints, b.Hints...), append(a.Polls, b.Polls...)
	return a
}

// I14: three quarters of the places are for anybody, the others for domains that have a sixteenth of all at
// most.
func TestI14_TheLastPlacesAreForDomainsThatHaveFew(t *testing.T) {
	o := alone(t, 1, func(c *Config) { c.PollsMax = 32 })
	for _, c := range []struct {
		domain       string
		polls, taken int
	}{{"greedy", 30, 24}, {"a", 3, 2}, {"b", 3, 2}, {"c", 2, 2}, {"d", 3, 2}, {"e", 1, 0}} {
		taken := 0
		for range c.polls {
			o.step(0, Inputs{Polls: []waiting.Poll{{Domain: c.domain, Tasklist: "l", Max: 1, For: time.Minute}}})
			if o.fx.Counts.Polls != 1 || o.fx.Counts.PollsRefused != int64(len(o.fx.Refusals)) {
				t.Errorf("counted %+v of %d refusals", o.fx.Counts, len(o.fx.Refusals))
			}
			taken += 1 - len(o.fx.Refusals)
		}
		if taken != c.taken {
			t.Errorf("%d polls of %s wait, want %d", taken, c.domain, c.taken)
		}
	}
}

// A poll that may not wait is answered in its turn where the table holds nothing, however young the clock is.
func TestPollWithoutTimeDoesNotWait(t *testing.T) {
	o := aloneAt(t, 0, 1)
	o.step(ms, o.poll(1, 0))
	testkit.MustEqual(t, "it waits", len(o.fx.Answers), 1)
}

// S22: a poll waits for the verdicts on all its grabs, though its own time is over: a grant that comes late is not handed back.
func TestPollWaitsForAllItsGrants(t *testing.T) {
	o := alone(t, 2)
	o.step(0, o.poll(2, 30*ms))
	o.step(0, join(o.hint("b", 0, 1), o.hint("b", 1, 1)))
	first, last := o.granted(0, 10), o.granted(1, 10)
	o.step(10*ms, first)
	o.step(grab.SilentAfter-10*ms-1, Inputs{})
	testkit.MustEqual(t, "answers while a verdict is missing", len(o.fx.Answers), 0)
	o.step(0, last)
	if len(o.fx.Answers) != 1 || len(o.fx.Answers[0].Tasks) != 2 || o.fx.Counts.HandedBack != 0 {
		t.Fatalf("%+v, %+v, want one answer with 2 tasks", o.fx.Answers, o.fx.Counts)
	}
}

// A poll with a grant does not wait for a silent partition. A grant that comes later is handed back.
func TestPollWithAGrantDoesNotWaitForASilentPartition(t *testing.T) {
	o := alone(t, 2)
	o.step(0, o.poll(2, time.Minute))
	o.step(0, join(o.hint("b", 0, 1), o.hint("b", 1, 1)))
	first, last := o.granted(0, 10), o.granted(1, 10)
	o.step(10*ms, first)
	o.step(grab.SilentAfter-10*ms, Inputs{})
	if len(o.fx.Answers) != 1 || len(o.fx.Answers[0].Tasks) != 1 {
		t.Fatalf("%+v, want one answer with a task", o.fx.Answers)
	}
	o.step(10*ms, last)
	testkit.Equal(t, "handed back", o.fx.Counts.HandedBack, 1)
}

// A poll whose time is over waits for a last look at the table, but no longer than PollGrace.
func TestPollWaitsForACallOnlySoLong(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.hint("b", 0, 1))
	o.step(0, o.called())
	o.step(0, o.poll(1, 20*ms))
	if len(o.fx.Calls) != 1 || len(o.fx.Calls[0].Wants) != 1 {
		t.Fatalf("it calls %+v", o.fx.Calls)
	}
	for _, after := range []time.Duration{20 * ms, waiting.PollGrace - 1} {
		if o.step(after, Inputs{}); len(o.fx.Answers) != 0 {
			t.Fatalf("after %v it is answered", after)
		}
	}
	if o.step(1, Inputs{}); len(o.fx.Answers) != 1 {
		t.Fatal("it waits still")
	}
}

// A poll that may not wait gets one look at the table, which may have to wait for another call; and one
// only.
func TestPollWithoutTimeGetsOneLook(t *testing.T) {
	o := stored(t, 5, "b")
	o.step(0, o.poll(1, ms))
	o.step(0, o.called())
	if o.step(ms, Inputs{}); len(o.fx.Answers) != 1 { // so a call has taken nothing before
		t.Fatal("it waits")
	}
	o.step(0, o.hint("b", 0, 1))
	call := o.called()
	if o.step(0, o.poll(1, 0)); len(o.fx.Answers) != 0 {
		t.Fatal("it got no look")
	}
	o.step(0, call)
	if len(o.fx.Answers) != 0 || len(o.wants()) != 1 {
		t.Fatalf("%d answers, it asks for %+v", len(o.fx.Answers), o.wants())
	}
	if o.step(0, join(o.called(), o.poll(1, time.Hour))); len(o.fx.Answers) != 1 || len(o.wants()) != 1 {
		t.Fatalf("%d answers, it asks for %+v", len(o.fx.Answers), o.wants())
	}
}

// A task that is larger than an answer may be is an answer of its own.
func TestATaskThatIsTooLargeIsAnswered(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.poll(3, time.Hour))
	o.step(0, o.hint("b", 0, 3))
	o.step(0, o.granted(0, o.s.cfg.AnswerBytesMax+1))
	if len(o.fx.Answers) != 1 || len(o.fx.Answers[0].Tasks) != 1 || o.fx.Counts.HandedBack != 2 {
		t.Fatalf("%d answers; %+v", len(o.fx.Answers), o.fx.Counts)
	}
}

// Of what comes in one turn the most urgent and oldest goes to a poll, wherever it stands in its message.
func TestWhatComesTogetherIsMatchedInOrder(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.poll(1, time.Minute))
	late, urgent, old := o.group("b", 2, 0, 1), o.group("b", 1, 0, 1), o.group("b", 1, 0, 1)
	old.ReadyAt--
	o.step(0, Inputs{Hints: []Hints{{Delivery: 1, Triggers: []arrival.Triggers{late, urgent, old}}}})
	if len(o.fx.Batches) != 1 || len(o.fx.Batches[0].Grabs) != 1 || o.fx.Batches[0].Grabs[0].Trigger != ids.TriggerAt(old.Packed, 0) {
		t.Fatalf("it asks for %+v", o.fx.Batches)
	}
}

// A large group is stored as chunks, of which each counts as a little younger than the one before.
func TestChunksOfAGroupKeepTheirOrder(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.hint("b", 0, 2*table.ChunkTriggersMax+1))
	testkit.Equal(t, "triggers are counted", o.fx.Counts.Triggers, 2*table.ChunkTriggersMax+1)
	got := ""
	for _, c := range o.fx.Calls[0].Put {
		got += fmt.Sprint(c.ReadyAt, ":", c.Len(), " ")
	}
	testkit.Equal(t, "stored", got, "1000:128 1001:128 1002:1 ")
}
