package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// restMax is how long grabs wait for others at most, restEnough how many do not.
const restMax, restEnough = 20 * ms, 100

// rests is a shard whose only partition has just granted n grabs of type "b" in one batch, which took a while.
func rests(t *testing.T, n int, took time.Duration) *solo {
	t.Helper()
	o := alone(t, 1, func(c *Config) { c.GrabEventsMax, c.AnswerBytesMax = 1000, 1_000_000 })
	o.rest(n, took)
	return o
}

// rest has a batch of n grabs take a while.
func (o *solo) rest(n int, took time.Duration) {
	o.Helper()
	o.step(0, o.poll(n, time.Hour, "b"))
	o.step(0, o.hint("b", 0, n))
	testkit.MustEqual(o, "grabs sent", o.grabs(), n)
	if o.step(took, o.granted(0, 10)); len(o.fx.Answers) != 1 {
		o.Fatalf("%d answers", len(o.fx.Answers))
	}
}

// grabs counts those that were sent in the last turn.
func (o *solo) grabs() (n int) {
	for _, b := range o.fx.Batches {
		n += len(b.Grabs)
	}
	return n
}

// After a batch of grabs the next one rests: not at all for one grab, then for longer the more there were, for three
// times what 25 of them took at most, and never longer than restMax. What comes meanwhile goes together.
func TestGrabsRestAfterABatchOfSeveral(t *testing.T) {
	for _, c := range []struct {
		n          int
		took, rest time.Duration
	}{
		{1, 10 * ms, 0},
		{2, 8 * ms, ms},
		{13, 4 * ms, 6 * ms},
		{25, 4 * ms, 12 * ms},
		{150, 4 * ms, 12 * ms},
		{25, 7 * ms, 20 * ms},
		{150, 90 * ms, 20 * ms},
	} {
		o := rests(t, c.n, c.took)
		o.step(0, o.poll(2, time.Hour))
		o.step(0, o.hint("b", 0, 1))
		if c.rest == 0 {
			if o.grabs() != 1 {
				t.Errorf("one alone is held up by %v", o.fx.Wake-o.now.Mono)
			}
			continue
		}
		if sleeps := o.fx.Wake - o.now.Mono; o.grabs() != 0 || sleeps != c.rest {
			t.Errorf("%d grabs, %v: %d are sent, it wakes in %v, want %v", c.n, c.took, o.grabs(), sleeps, c.rest)
		}
		if o.step(c.rest-1, o.hint("b", 0, 1)); o.grabs() != 0 {
			t.Errorf("%d grabs, %v: %d are sent too early", c.n, c.took, o.grabs())
		}
		if o.step(1, Inputs{}); len(o.fx.Batches) != 1 || o.grabs() != 2 {
			t.Errorf("%d grabs, %v: after the rest %d are sent", c.n, c.took, o.grabs())
		}
	}
}

// A shard with nothing to send does not wake for the end of a rest.
func TestARestAloneWakesNobody(t *testing.T) {
	o := rests(t, 25, 4*ms)
	if sleeps := o.fx.Wake - o.now.Mono; sleeps <= restMax {
		t.Errorf("it wakes in %v", sleeps)
	}
}

// A rest ends when restEnough grabs have gathered.
func TestARestEndsWhenManyHaveGathered(t *testing.T) {
	o := rests(t, 150, 90*ms)
	o.step(0, o.poll(2*restEnough, time.Hour))
	if o.step(0, o.hint("b", 0, restEnough-1)); o.grabs() != 0 {
		t.Fatalf("%d are sent too early", o.grabs())
	}
	if o.step(0, o.hint("b", 0, 1)); len(o.fx.Batches) != 1 || o.grabs() != restEnough {
		t.Fatalf("%d are sent", o.grabs())
	}
}

// booked is called with the triggers of one column, each of which books a slot; one is in use.
func (o *solo) booked(limited arrival.Triggers) Inputs {
	o.Helper()
	in := o.called()
	in.Outcomes[0].Outcome.Taken[0] = table.Taken{
		Batches: []table.Batch{{Chunk: table.Chunk{Tasklist: limited.Tasklist, Column: limited.Column, ReadyAt: limited.ReadyAt, Triggers: limited.Packed}, Booked: true}},
		Heads:   []table.Head{{Column: limited.Column, Empty: true, Gone: 1}},
	}
	in.Outcomes[0].Outcome.Limits = []table.LimitState{{Used: 1}}
	return in
}

// A grab that books a slot of a limit of which half are in use goes at once, since others may wait for the slot, and takes along what
// has gathered. Its nonce says so; that of what is handed back is the grab's, though the limit is lifted in between.
func TestAGrabOfAScarceSlotDoesNotRest(t *testing.T) {
	o := alone(t, 1, func(c *Config) { c.GrabEventsMax, c.AnswerBytesMax = 1000, 1_000_000 })
	o.limit(2)
	o.rest(25, 4*ms)
	o.step(0, o.poll(1, time.Hour, "b"))
	o.step(0, o.hint("b", 0, 1))
	limited := o.group("a", 3, 0, 1)
	o.step(0, Inputs{Hints: []Hints{{Delivery: 99, Triggers: []arrival.Triggers{limited}}}})
	o.step(0, o.called())
	o.step(0, o.poll(1, time.Hour, "a"))
	if o.grabs() != 0 || len(o.wants()) != 1 {
		t.Fatalf("%d are sent, it asks for %+v", o.grabs(), o.wants())
	}
	o.step(0, o.booked(limited))
	if len(o.fx.Batches) != 1 || o.grabs() != 2 {
		t.Fatalf("%d are sent", o.grabs())
	}
	nonces := map[ids.TaskID]uint64{}
	for _, g := range o.fx.Batches[0].Grabs {
		nonces[g.Trigger.ID] = g.Nonce
		if booked := g.Trigger == ids.TriggerAt(limited.Packed, 0); ids.Scarce(g.Nonce) != booked || (len(g.Path) > 0) != booked {
			t.Errorf("booked: %v, it says %v for %v", booked, ids.Scarce(g.Nonce), g.Path)
		}
	}
	o.step(0, o.granted(0, 10))
	var bounced Inputs
	for _, a := range o.fx.Answers {
		bounced.Bounced = append(bounced.Bounced, a.ID)
	}
	delete(o.catalog.limits, "d/a")
	o.step(0, Inputs{Limits: []string{"d"}})
	o.step(0, bounced)
	if len(o.fx.Batches) != 1 || len(o.fx.Batches[0].HandBacks) != 2 {
		t.Fatalf("handed back are %+v", o.fx.Batches)
	}
	for _, h := range o.fx.Batches[0].HandBacks {
		testkit.Equal(t, "handed back as asked for as", h.Nonce, nonces[h.ID])
	}
}

// One of a limit with slots to spare rests like others.
func TestAGrabOfASlotToSpareRests(t *testing.T) {
	o := alone(t, 1, func(c *Config) { c.GrabEventsMax, c.AnswerBytesMax = 1000, 1_000_000 })
	o.limit(5)
	o.rest(25, 4*ms)
	limited := o.group("a", 3, 0, 1)
	o.step(0, Inputs{Hints: []Hints{{Delivery: 99, Triggers: []arrival.Triggers{limited}}}})
	o.step(0, o.called())
	o.step(0, o.poll(1, time.Hour, "a"))
	if o.step(0, o.booked(limited)); o.grabs() != 0 {
		t.Fatalf("%d are sent", o.grabs())
	}
	if o.step(20*ms, Inputs{}); o.grabs() != 1 || ids.Scarce(o.fx.Batches[0].Grabs[0].Nonce) || len(o.fx.Batches[0].Grabs[0].Path) != 1 {
		t.Fatalf("then %+v", o.fx.Batches)
	}
}

// No two grabs of a batch have the same nonce, booked or not.
func TestGrabsOfABatchHaveTheirOwnNonces(t *testing.T) {
	o := alone(t, 1, func(c *Config) { c.GrabEventsMax = 1000 })
	o.step(0, o.poll(100, time.Hour))
	o.step(0, o.hint("b", 0, 100))
	seen := map[uint64]bool{}
	for _, g := range o.fx.Batches[0].Grabs {
		seen[g.Nonce] = true
	}
	testkit.Equal(t, "nonces of 100 grabs", len(seen), 100)
}

// A poll whose time is over during a rest waits for the grab that rests for it, and one for which none does is
// answered at its time.
func TestPollsWhoseTimeEndsDuringARest(t *testing.T) {
	o := rests(t, 25, 7*ms)
	o.step(0, o.poll(1, 5*ms, "b"))
	o.step(0, join(o.hint("b", 0, 1), o.poll(1, 5*ms, "x")))
	if o.step(5*ms, Inputs{}); len(o.fx.Answers) != 1 || len(o.fx.Answers[0].Tasks) != 0 || o.s.Census().Polls != 1 {
		t.Fatalf("%+v; %+v", o.fx.Answers, o.s.Census())
	}
	if o.step(15*ms, Inputs{}); o.grabs() != 1 || len(o.fx.Answers) != 0 {
		t.Fatalf("%d are sent, %d answers", o.grabs(), len(o.fx.Answers))
	}
	if o.step(0, o.granted(0, 10)); len(o.fx.Answers) != 1 || len(o.fx.Answers[0].Tasks) != 1 {
		t.Fatalf("%+v", o.fx.Answers)
	}
}

// What rests where the shard is given up is not asked for any more: it is stored, and its poll is answered.
func TestWhatRestsIsStoredWhenTheShardDrains(t *testing.T) {
	o := rests(t, 25, 7*ms)
	o.grab()
	o.step(0, Inputs{Drain: true})
	if o.grabs() != 0 || len(o.fx.Answers) != 1 || len(o.fx.Calls) != 1 || len(o.fx.Calls[0].Put) != 1 {
		t.Fatalf("%d are sent, %d answers, it calls %+v", o.grabs(), len(o.fx.Answers), o.fx.Calls)
	}
	o.step(grab.HeardAfter, o.called())
	o.step(0, Inputs{})
	if !o.fx.Drained || o.s.Census().Grabs != 0 {
		t.Fatalf("drained: %v; %+v", o.fx.Drained, o.s.Census())
	}
}

// What rests is put aside where the partition turns out to be silent: the verdict on what was handed back is due.
func TestWhatRestsForASilentPartitionIsPutAside(t *testing.T) {
	o := rests(t, 150, 90*ms)
	o.step(0, Inputs{Bounced: []uint64{o.fx.Answers[0].ID}})
	if len(o.fx.Batches) != 1 || len(o.fx.Batches[0].HandBacks) != 150 {
		t.Fatalf("handed back are %+v", o.fx.Batches)
	}
	o.grab()
	if o.step(grab.SilentAfter, Inputs{}); o.s.Census().Aside != 1 || o.s.Census().Grabs != 0 {
		t.Fatalf("%+v", o.s.Census())
	}
}

// Under load batches of grabs grow: each is a sync to disk. One task alone does not wait.
func TestBatchesOfGrabsGrowUnderLoad(t *testing.T) {
	w, _ := begun(t, 1)
	const tasks, perMS = 2000, 10
	for i := range tasks + 1 {
		w.wait(fmt.Sprint("p", i), 1)
	}
	w.run(ms)
	for range tasks / perMS {
		w.ready("d", "l0", "b", 1, perMS)
		w.run(ms)
	}
	w.run(time.Second)
	batches := 0
	for _, b := range w.batches {
		if len(b.Grabs) > 0 {
			batches++
		}
	}
	if w.done() != tasks || batches > tasks/50 { // 20 come while one is under way
		t.Errorf("%d of %d tasks are done, in %d batches", w.done(), tasks, batches)
	}
	began := w.now
	task := w.ready("d", "l0", "b", 1, 1)[0]
	w.run(3 * ms) // its hint, its grab, the verdict
	if !task.worked {
		t.Errorf("one alone is %s after %v", task.state, w.now-began)
	}
}
