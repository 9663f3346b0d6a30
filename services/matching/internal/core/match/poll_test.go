package match

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

func appendTrigger(b []byte, t *task) []byte {
	return ids.AppendTrigger(b, ids.Trigger{ID: t.id, Version: t.version + 1})
}

// First come, first served; who accepts other types is passed over.
func TestFirstComeFirstServed(t *testing.T) {
	w, _ := begun(t, 1)
	w.wait("a", 1, "x")
	w.waits(5)
	w.run(ms)
	for range 5 {
		w.ready("d", "l0", "b", 1, 1)
		w.run(10 * ms)
	}
	for i := range 4 {
		if p, q := w.polls[fmt.Sprint("p", i)], w.polls[fmt.Sprint("p", i+1)]; p.at >= q.at {
			t.Errorf("poll %d was answered at %v, the next one at %v", i, p.at, q.at)
		}
	}
	testkit.Equal(t, "a poll got a type that it does not accept", w.polls["a"].answered, 0)
	w.ready("d", "l0", "x", 1, 1)
	w.run(10 * ms)
	if w.polls["a"].tasks != 1 {
		t.Errorf("%+v", w.polls["a"])
	}
}

// A poll whose grabs were all refused keeps its place.
func TestRefusedPollKeepsItsPlace(t *testing.T) {
	w, o := begun(t, 1)
	w.wait("first", 1)
	w.run(ms)
	gone := w.task("d", "l0", "b", 1, 0)
	gone.version = 5
	o.deliveries[900] = true
	o.give(func(in *Inputs) {
		in.Hints = []Hints{{Delivery: 900, Triggers: []arrival.Triggers{{
			Tasklist: table.Tasklist{Domain: "d", Name: "l0"},
			Column:   table.Column{Priority: 1, Type: "b"},
			ReadyAt:  1,
			Packed:   ids.AppendTrigger(nil, ids.Trigger{ID: gone.id, Version: 2}),
		}}}}
	})
	w.wait("second", 1)
	w.run(10 * ms)
	testkit.MustEqual(t, "grabs were refused", w.counts.GrabsRefused, 1)
	w.ready("d", "l0", "b", 1, 1)
	w.run(10 * ms)
	if w.polls["first"].tasks != 1 || w.polls["second"].answered != 0 {
		t.Fatalf("%+v, %+v", w.polls["first"], w.polls["second"])
	}
}

// A poll that may not wait gets one look at the table, also at one that is yet to be opened.
func TestPollWithoutTimeLooksOnce(t *testing.T) {
	w, _ := begun(t, 1)
	w.poll("new", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 5})
	w.ready("d", "l0", "b", 1, 5)
	w.run(50 * ms)
	w.poll("some", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 3})
	w.poll("rest", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 5})
	w.poll("none", waiting.Poll{Domain: "d", Tasklist: "l2", Max: 5, For: -time.Second})
	w.run(20 * ms)
	for inbox, want := range map[string]int{"some": 3, "rest": 2, "none": 0, "new": 0} {
		if p := w.polls[inbox]; p.answered != 1 || p.tasks != want {
			t.Errorf("%s: %+v, want %d tasks", inbox, p, want)
		}
	}
}

// R40: a clock that is set neither ends a poll nor prolongs it.
func TestR40_PollsWaitWhateverTheClockShows(t *testing.T) {
	const hour = int64(time.Hour / ms)
	for _, set := range []int64{-hour, hour} {
		w, _ := begun(t, 1)
		began := w.now
		w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: 2 * time.Second})
		w.run(time.Second)
		w.skewMS = set
		w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: 2 * time.Second})
		w.run(10 * time.Second)
		for name, until := range map[string]time.Duration{"p": began + 2*time.Second, "q": began + 3*time.Second} {
			if p := w.polls[name]; p.answered != 1 || p.at < until || p.at > until+10*ms {
				t.Errorf("clock set by %d ms: poll %s was answered %d times, %v after its time", set, name, p.answered, p.at-until)
			}
		}
	}
}

// A poll whose time is over waits for verdicts, but not forever.
func TestExpiredPollWaitsForVerdicts(t *testing.T) {
	w, o := begun(t, 1)
	w.delay = func() time.Duration { return 40 * ms }
	w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: 100 * ms})
	w.run(10 * ms)
	w.ready("d", "l0", "b", 1, 1)
	w.run(200 * ms)
	w.wantTasks("p", 1)
	// All that it gets is refused: it tries again a few times, then it ends.
	w.delay = func() time.Duration { return ms }
	gone := w.task("d", "l0", "b", 1, 0)
	gone.state = "done"
	var groups []arrival.Triggers
	for v := range uint32(200) {
		groups = append(groups, arrival.Triggers{
			Tasklist: table.Tasklist{Domain: "d", Name: "l0"},
			Column:   table.Column{Priority: 1, Type: "b"},
			ReadyAt:  int64(v),
			Packed:   ids.AppendTrigger(nil, ids.Trigger{ID: gone.id, Version: v + 7}),
		})
	}
	o.deliveries[901] = true
	o.give(func(in *Inputs) { in.Hints = []Hints{{Delivery: 901, Triggers: groups}} })
	w.run(50 * ms)
	w.counts.GrabsRefused = 0
	w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 1, For: 4 * ms}) // until the first refusal
	w.run(500 * ms)
	if p := w.polls["q"]; p.answered != 1 || w.counts.GrabsRefused != waiting.WastedRounds+1 {
		t.Fatalf("%+v after %d refused grabs", p, w.counts.GrabsRefused)
	}
}

// A grant that does not fit into an answer is handed back; JSON has half of the room, and the next poll is not
// given more than fits.
func TestAnswersAreBounded(t *testing.T) {
	for _, json := range []bool{false, true} {
		w, o := begun(t, 1, func(c *Config) { c.AnswerBytesMax = 10 * 28 })
		w.work = func() time.Duration { return time.Hour }
		l := o.s.list(table.Tasklist{Domain: "d", Name: "l0"})
		light(l) // a wrong guess
		w.poll("p", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 50, JSON: json, For: time.Minute})
		w.run(ms)
		w.ready("d", "l0", "b", 1, 16)
		w.run(10 * ms)
		want := 10
		if json {
			want = 5
		}
		if w.polls["p"].tasks != want || w.counts.HandedBack != int64(16-want) {
			t.Fatalf("%+v, %d handed back, want %d", w.polls["p"], w.counts.HandedBack, want)
		}
		w.counts.HandedBack = 0
		w.poll("q", waiting.Poll{Domain: "d", Tasklist: "l0", Max: 50, JSON: json, For: time.Minute})
		w.run(50 * ms)
		if w.polls["q"].tasks == 0 || w.polls["q"].tasks > want || w.counts.HandedBack > 0 {
			t.Fatalf("%+v, %d handed back", w.polls["q"], w.counts.HandedBack)
		}
	}
}

// Polls are refused where they make no sense, or too many wait.
func TestPollsAreRefused(t *testing.T) {
	w, _ := begun(t, 1, func(c *Config) { c.PollsMax = 2 })
	w.wait("p", 1)
	w.wait("q", 1)
	w.run(ms)
	w.wait("r", 1)
	w.poll("s", waiting.Poll{Domain: "d", Tasklist: "l0"})
	w.poll("t", waiting.Poll{Tasklist: "l0", Max: 1})
	w.run(ms)
	var got []string
	for _, r := range w.refusals {
		got = append(got, r.ReplyTo+" "+string(r.Why.Code)+" "+r.Why.RetryAfter.String())
	}
	if want := []string{"r RESOURCE_EXHAUSTED 1s", "s INVALID_ARGUMENT 0s", "t INVALID_ARGUMENT 0s"}; !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	if w.counts.PollsRefused != 1 || w.counts.WaitingPolls != 2 || w.counts.Polls != 6 {
		t.Fatalf("%+v", w.counts)
	}
}

// A message is acknowledged when all of it is stored or matched; what cannot be meant is dropped.
func TestMalformedHintsAreDropped(t *testing.T) {
	w, o := begun(t, 1)
	l, c := table.Tasklist{Domain: "d", Name: "l0"}, table.Column{Priority: 9, Type: "b"}
	far := w.task("d", "l0", "b", 1, 9)
	good := w.task("d", "l0", "b", 1, 0)
	id := w.hint(0, Hints{
		Releases: []Release{{Domain: "d"}, {Domain: "d", Type: "a", Bookings: []byte("x")}, {Domain: "z", Type: "a", Bookings: make([]byte, 20)}},
		Triggers: []arrival.Triggers{
			{Tasklist: l, Column: c, ReadyAt: 1},
			{Tasklist: l, Column: c, ReadyAt: 1, Packed: []byte("x")},
			{Column: c, ReadyAt: 1},
			{Tasklist: l, Column: c, ReadyAt: 1, Packed: appendTrigger(nil, good), Groups: []string{"a", "b"}},
			{Tasklist: l, Column: c, ReadyAt: 1, Packed: appendTrigger(appendTrigger(nil, far), good)},
		},
	})
	w.run(50 * ms)
	if !w.acks[id] {
		t.Fatal("the message was not acknowledged")
	}
	w.wait("p", 5)
	w.run(50 * ms)
	if w.polls["p"].tasks != 1 || w.counts.Malformed != 7 {
		t.Fatalf("%+v, %d malformed", w.polls["p"], w.counts.Malformed)
	}
	if o.s.domains["z"] != nil {
		t.Error("a release of nothing opened a domain")
	}
}

// Small chunks of one column are stored as one; many go in several calls.
func TestChunksAreJoined(t *testing.T) {
	w, o := begun(t, 1)
	for range 300 {
		w.ready("d", "l0", "b", 1, 1)
	}
	calls := len(w.calls)
	w.run(50 * ms)
	puts := 0
	for _, c := range w.calls[calls:] {
		puts += len(c.Put)
		for _, p := range c.Put {
			if p.Len() > table.ChunkTriggersMax {
				t.Errorf("a chunk of %d", p.Len())
			}
		}
	}
	if puts > 5 {
		t.Errorf("%d chunks", puts)
	}
	for i := range 2500 {
		w.ready("d", fmt.Sprint("list ", i*2), "b", 1, 1)
	}
	calls = len(w.calls)
	w.run(50 * ms)
	for _, c := range w.calls[calls:] {
		if len(c.Put) > 512 {
			t.Errorf("a call with %d chunks", len(c.Put))
		}
	}
	if ready, _ := counts(o.s, "d", "list 4998"); ready != 1 {
		t.Errorf("%d are stored", ready)
	}
}

// Chunks that wait for a domain to be opened are bounded; what is let go of comes again.
func TestHeldChunksAreBounded(t *testing.T) {
	w, o := begun(t, 1)
	w.delay = func() time.Duration { return 50 * ms }
	for i := range tablecall.WaitingChunksMax + 10 {
		w.ready("e", fmt.Sprint("list ", i%20*2), "b", 1, 1)
	}
	w.run(70 * ms)
	testkit.MustEqual(t, "chunks wait", o.s.domains["e"].Chunks(), tablecall.WaitingChunksMax)
	w.delay = func() time.Duration { return ms }
	w.run(time.Second)
	if len(w.retrigs) == 0 || len(o.deliveries) != 0 {
		t.Fatalf("%d retriggers, %d messages not acknowledged", len(w.retrigs), len(o.deliveries))
	}
}

// A shard that is given up ends its polls, stores what it has and hands back what no one takes.
func TestDrain(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w, o := begun(t, 2, func(c *Config) { c.GrabEventsMax = 1 })
		w.ends = false
		w.wait("heard", 1)
		w.run(ms)
		w.ready("d", "l0", "b", 1, 1)
		w.run(20 * ms)
		w.partitions[1].silent = silent
		w.waits(6)
		w.run(ms)
		for range 5 {
			w.trigger(w.task("d", "l0", "b", 1, 1))
		}
		w.run(1500 * time.Microsecond)
		began := w.now
		o.give(func(in *Inputs) { in.Drain = true })
		w.run(ms)
		o.give(func(in *Inputs) { in.Drain = true })
		w.wait("late", 1)
		w.run(400 * ms)
		if w.polls["late"].at-began > 10*ms {
			t.Fatal("a poll waits at a shard that is given up")
		}
		if silent == o.drained {
			t.Fatalf("after 400 ms it is drained: %v", o.drained)
		}
		w.run(1700 * ms)
		if !o.drained {
			t.Fatalf("after %v it is not drained", w.now-began)
		}
		if len(o.live) > 0 || len(o.deliveries) > 0 {
			t.Fatalf("%d polls are not answered, %d messages not acknowledged", len(o.live), len(o.deliveries))
		}
		if last := w.batches[len(w.batches)-1]; !silent && last.Delivered+1 < last.Number {
			t.Fatalf("the last batch is %+v", last)
		}
		w.speak(1)
		w.run(100 * ms)
		if n := w.running["d/b"]; silent && n != 1 {
			t.Fatalf("%d attempts run that no one has", n-1)
		}
		o.deliveries[77] = true
		o.give(func(in *Inputs) { in.Hints = []Hints{{Delivery: 77}} })
		w.wait("too late", 1)
		w.run(10 * ms)
		testkit.MustEqual(t, "a poll after the end was not answered", w.polls["too late"].answered, 1)
		next := w.own(0, 2)
		w.wait("look", 1, "x")
		w.run(100 * ms)
		if ready, _ := counts(next.s, "d", "l0"); ready < 3 {
			t.Fatalf("%d triggers were stored", ready)
		}
		w.wait("next", 10)
		w.run(2 * time.Second)
		if w.polls["next"].tasks < 3 {
			t.Fatalf("the next owner's poll got %+v", w.polls["next"])
		}
	}
}

// A traced grab is shown when it is decided.
func TestTraced(t *testing.T) {
	w, _ := begun(t, 1)
	w.wait("p", 1)
	w.run(ms)
	w.ready("d", "l0", "mail", 1, 1)
	w.run(20 * ms)
	if len(w.traced) != 1 {
		t.Fatalf("%+v", w.traced)
	}
	x := w.traced[0]
	if x.Type != "mail" || x.Tasklist != "l0" || x.Domain != "d" || x.Code != "" || x.Matched > x.Sent || x.Sent >= x.Decided {
		t.Errorf("%+v", x)
	}
}

// A poll whose time is over while a call about another tasklist of its domain is under way is
// answered once its own tasklist has been looked at, also if there is nothing to ask for.
func TestLastLookThatHasNothingToAsk(t *testing.T) {
	w, _ := begun(t, 1)
	w.run(time.Second)
	w.delay = func() time.Duration { return 20 * ms }
	w.ready("d", "l0", "b", 1, 1) // is stored: a call is under way
	w.run(30 * ms)
	testkit.MustEqual(t, "calls", len(w.calls), 1)
	began := w.now
	w.poll("none", waiting.Poll{Domain: "d", Tasklist: "l2", Max: 5})
	w.run(5 * time.Second)
	if p := w.polls["none"]; p.answered != 1 || p.at-began > 100*ms {
		t.Errorf("answered %d times, after %v", p.answered, p.at-began)
	}
}

// What one call looks at is bounded, however many tasklists of a domain have polls: the next calls
// look at the rest, but not at what is full (I14).
func TestCallsOfManyTasklistsAreBounded(t *testing.T) {
	const lists = 3 * tablecall.CallCandidatesMax
	w, _ := begun(t, 1)
	w.limit("d/a", 1)
	w.work = func() time.Duration { return time.Hour }
	for _, typ := range []string{"a", "b"} {
		for i := range lists {
			w.ready("d", fmt.Sprint(typ, i), typ, 1, 1)
		}
	}
	w.run(time.Second)
	got := func(typ string) (tasks, calls, columns int) {
		w.calls = nil
		for i := range lists {
			w.poll(fmt.Sprint(typ, i), waiting.Poll{Domain: "d", Tasklist: fmt.Sprint(typ, i), Max: 1, For: time.Minute})
		}
		w.run(100 * ms)
		for i := range lists {
			tasks += w.polls[fmt.Sprint(typ, i)].tasks
		}
		for _, c := range w.calls {
			n := 0
			for _, want := range c.Wants {
				n += len(want.Candidates)
			}
			columns += n
			if n > tablecall.CallCandidatesMax {
				t.Errorf("a call looks at %d columns", n)
			}
		}
		return tasks, len(w.calls), columns
	}
	if tasks, calls, columns := got("a"); tasks != 1 || calls > 3 || columns > 3 {
		t.Errorf("%d tasks of the full type run after %d calls, which looked at %d columns", tasks, calls, columns)
	}
	if tasks, calls, _ := got("b"); tasks != lists || calls < 3 {
		t.Errorf("%d of %d tasks run after %d calls", tasks, lists, calls)
	}
}

// A call that asks for as many triggers of a limit as there are slots leaves out other tasklists, but
// the shard stands in line with the most urgent of them all.
func TestWhatACallLeavesOutWaitsInLine(t *testing.T) {
	w, _ := begun(t, 1)
	w.limit("d/a", 1)
	w.work = func() time.Duration { return time.Hour }
	w.ready("d", "l0", "a", 4, 2)
	w.ready("d", "l1", "a", 2, 1)
	w.run(time.Second)
	w.calls = nil
	for _, name := range []string{"l0", "l1"} {
		w.poll("p"+name, waiting.Poll{Domain: "d", Tasklist: name, Max: 2, For: time.Minute})
	}
	w.run(ms)
	if len(w.calls) != 1 || len(w.calls[0].Wants) != 1 || w.calls[0].Stances[0].Wait != 2 {
		t.Fatalf("%+v", w.calls)
	}
}

// The types that the polls of a domain name are bounded, those of equal polls counted once; other
// domains and polls that name none are let in (I14).
func TestI14_PollsThatNameTooManyTypes(t *testing.T) {
	const types = 64
	w, _ := begun(t, 1)
	set := func(n int) (all []string) {
		for i := range types {
			all = append(all, fmt.Sprint("t", n, ".", i))
		}
		return append(all, all...) // a type that is named twice is one
	}
	for n := range 16_384 / types {
		w.wait(fmt.Sprint("p", n), 1, set(n)...)
		w.wait(fmt.Sprint("same", n), 1, set(n)...)
	}
	w.wait("over", 1, "one")
	w.wait("all", 1)
	w.poll("other", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 1, Types: set(0), For: time.Minute})
	w.run(ms)
	if len(w.refusals) != 1 || w.refusals[0].ReplyTo != "over" || w.refusals[0].Why.RetryAfter <= 0 {
		t.Fatalf("%d are refused: %+v", len(w.refusals), w.refusals[:min(2, len(w.refusals))])
	}
	w.ready("d", "l0", "t0.5", 1, 1) // one of two ends: the set is there still
	w.run(10 * ms)
	w.wait("again", 1, "one")
	w.run(ms)
	testkit.Equal(t, "are refused", len(w.refusals), 2)
	w.ready("d", "l0", "t0.5", 1, 1)
	w.run(10 * ms)
	w.wait("room", 1, "one")
	w.run(ms)
	w.ready("d", "l0", "one", 1, 1)
	w.run(10 * ms)
	if len(w.refusals) != 2 || w.counts.PollsRefused != 2 || w.polls["all"].tasks+w.polls["room"].tasks != 1 {
		t.Errorf("%d are refused, %+v, %+v", len(w.refusals), w.polls["all"], w.polls["room"])
	}
}

// I14: polls of ever new tasklists leave none behind for long. Few are remembered for a while.
func TestI14TasklistsOfPollsAreForgotten(t *testing.T) {
	w, o := begun(t, 1)
	for i := range 3 * idleListsMax {
		w.poll(fmt.Sprint("p", i), waiting.Poll{Domain: "d", Tasklist: fmt.Sprint("l", i), Max: 1, For: ms})
		if i%100 == 0 {
			w.run(ms)
		}
	}
	w.run(time.Second)
	if n := len(o.s.lists); n != 0 || len(o.s.domains["d"].Sources) != 0 {
		t.Fatalf("%d tasklists are remembered", n)
	}
	for i := range 10 {
		w.poll(fmt.Sprint("q", i), waiting.Poll{Domain: "d", Tasklist: fmt.Sprint("l", i), Max: 1, For: ms})
	}
	w.run(time.Second)
	testkit.MustEqual(t, "of 10 tasklists are remembered", len(o.s.lists), 10)
}

// light has the tasks of a tasklist look smaller than they are.
func light(l *list) {
	for range 100 {
		l.queue.Weigh(1, 1)
	}
}
