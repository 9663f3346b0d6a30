package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/tablecall"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// stored is a shard whose table holds n triggers of each of some types.
func stored(t *testing.T, n int, types ...string) *solo {
	t.Helper()
	o := alone(t, 1)
	var in Inputs
	for _, typ := range types {
		in = join(in, o.hint(typ, 0, n))
	}
	o.step(0, in)
	o.step(0, o.called())
	if ready, _ := counts(o.s, "d", "l"); ready != n*len(types) || o.s.Census().Calls != 0 {
		t.Fatalf("%d triggers are stored", ready)
	}
	return o
}

// wants are what the only call of the last turn wants.
func (o *solo) wants() []table.Want {
	o.Helper()
	testkit.MustEqual(o, "calls", len(o.fx.Calls), 1)
	return o.fx.Calls[0].Wants
}

// Chunks of one column that come together are joined up to the size of a chunk, and not beyond.
func TestChunksAreJoinedUpToTheirSize(t *testing.T) {
	for last, want := range map[int][]int{table.ChunkTriggersMax / 2: {table.ChunkTriggersMax}, table.ChunkTriggersMax/2 + 1: {64, 65}} {
		o := alone(t, 1)
		o.step(0, join(o.hint("b", 0, table.ChunkTriggersMax/2), o.hint("b", 0, last)))
		var got []int
		for _, c := range o.fx.Calls[0].Put {
			got = append(got, c.Len())
		}
		testkit.Equal(t, "stored are", got, want)
	}
}

// All polls of a tasklist together ask for PopMax triggers at most.
func TestPollsTogetherAskForABoundedNumber(t *testing.T) {
	o := stored(t, 30, "b")
	o.step(0, join(join(o.poll(6, time.Hour), o.poll(8, time.Hour, "b")), o.poll(8, time.Hour)))
	n := 0
	for _, w := range o.wants() {
		n += w.N
	}
	if n != o.s.cfg.PopMax {
		t.Fatalf("it asks for %d: %+v", n, o.wants())
	}
}

// One call looks at a bounded number of columns, also for the polls of one tasklist.
func TestPollsOfOneTasklistLookAtABoundedNumberOfColumns(t *testing.T) {
	const polls = tablecall.CallCandidatesMax/32 + 1
	var types []string
	for i := range polls * 32 {
		types = append(types, fmt.Sprint("t", i))
	}
	o := stored(t, 1, types...)
	var in Inputs
	for i := range polls {
		in = join(in, o.poll(1, time.Hour, types[i*32:(i+1)*32]...))
	}
	o.step(0, in)
	n := 0
	for _, w := range o.wants() {
		n += len(w.Candidates)
	}
	if n != tablecall.CallCandidatesMax {
		t.Fatalf("it looks at %d columns for %d polls", n, len(o.wants()))
	}
}

// A poll without room is passed over; those behind it are asked for.
func TestAPollWithoutRoomIsPassedOver(t *testing.T) {
	o := alone(t, 2, func(c *Config) { c.GrabsInFlight = 1 })
	o.step(0, o.poll(2, time.Hour, "b"))
	o.step(0, o.hint("b", 0, 1))
	late := o.granted(0, 10)
	o.step(grab.SilentAfter, Inputs{})
	o.step(0, join(o.poll(1, time.Hour, "other"), o.hint("other", 1, 1)))
	o.step(0, o.hint("b", 1, 1))
	o.step(0, late)
	o.step(0, o.hint("b", 1, 2))
	if len(o.wants()) != 0 {
		t.Fatalf("without room it asks for %+v", o.wants())
	}
	o.step(0, o.called())
	o.step(0, o.poll(1, time.Hour, "b"))
	if w := o.wants(); len(w) != 1 || w[0].N != 1 {
		t.Fatalf("it asks for %+v", w)
	}
}

// A poll that may not wait comes while a call is under way: it is answered when that comes back, if the
// table holds only what the poll does not accept.
func TestALastLookFindsNothingThatIsAccepted(t *testing.T) {
	o := alone(t, 1)
	o.step(0, o.hint("b", 0, 1))
	call := o.called()
	if o.step(ms, o.poll(1, 0, "other")); len(o.fx.Answers) != 0 {
		t.Fatal("it is answered at once")
	}
	if o.step(ms, call); len(o.fx.Answers) != 1 {
		t.Fatal("it is not answered")
	}
}

// Where the table gave nothing it is not asked again; where a limit has no slot, without that type.
func TestWhatIsAskedForNext(t *testing.T) {
	o := stored(t, 3, "a", "b")
	o.limit(5)
	o.step(0, o.poll(1, time.Hour))
	w := o.wants()
	if len(w) != 1 || len(w[0].Candidates) != 2 {
		t.Fatalf("it asks for %+v", w)
	}
	if o.step(0, o.called()); len(o.fx.Calls) != 0 {
		t.Fatalf("it asks again for %+v", o.wants())
	}
	o.step(0, o.poll(1, time.Hour))
	in := o.called()
	in.Outcomes[0].Outcome.Taken[0].Blocked = []table.Blocked{{By: table.TypeRef("a"), Why: table.InLine}}
	o.step(0, in)
	if w := o.wants(); len(w) != 1 || len(w[0].Candidates) != 1 || w[0].Candidates[0].Type != "b" {
		t.Fatalf("it asks for %+v", w)
	}
}

// A call asks for as many triggers of a limit as there are slots, and for no more.
func TestACallAsksForNoMoreThanTheSlots(t *testing.T) {
	for polls, wants := range map[int]int{1: 2, 2: 1} {
		o := alone(t, 1)
		o.limit(2)
		var in Inputs
		for i := range 2 {
			g := o.group("a", 3, 0, 3)
			g.Name = fmt.Sprint("l", i)
			in.Hints = append(in.Hints, Hints{Delivery: uint64(i + 1), Triggers: []arrival.Triggers{g}})
		}
		o.step(0, in)
		o.step(0, o.called())
		in = Inputs{}
		for i := range 2 {
			in.Polls = append(in.Polls, waiting.Poll{Domain: "d", Tasklist: fmt.Sprint("l", i), Max: polls, For: time.Hour})
		}
		o.step(0, in)
		if len(o.wants()) != wants {
			t.Errorf("for 2 polls of %d it wants %+v", polls, o.wants())
		}
	}
}

// An outcome that says nothing about limits changes none.
func TestAnOutcomeWithoutLimits(t *testing.T) {
	o := runs(t)
	o.step(idleAfter, Inputs{})
	in := o.called()
	in.Outcomes[0].Outcome.Limits = nil
	o.step(0, in)
	if c := o.s.Census(); c.Slots != 1 || c.Reported != 1 || c.Calls != 0 {
		t.Fatalf("%+v", c)
	}
}
