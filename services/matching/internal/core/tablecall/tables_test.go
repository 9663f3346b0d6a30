package tablecall

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// column is one of a type, of one group or of those that share it.
func column(group string) table.Column { return table.Column{Priority: 3, Type: "a", Group: group} }

// chunk has n triggers of a column of a tasklist.
func (l *list) chunk(group string, n int) arrival.Arrival[*list] {
	return arrival.Of(l, table.Chunk{Tasklist: l.Tasklist, Column: column(group), ReadyAt: 5, Triggers: make([]byte, n*ids.TriggerBytes)})
}

// put has a chunk stored of which no trigger was asked for.
func (d *domain) put(a arrival.Arrival[*list]) { d.Put(&a, func([]byte) bool { return false }) }

// arrive has a message with one trigger stored.
func (d *domain) arrive(l *list) {
	message := arrival.NewDelivery(1)
	d.arrivals.Add(l, &arrival.Triggers{Tasklist: l.Tasklist, Column: column(""), ReadyAt: 1, Packed: make([]byte, ids.TriggerBytes)}, message)
	d.arrivals.Finish(message)
	d.put(d.arrivals.All[0])
	d.arrivals.All = nil
}

// outcome is that of the last call, with so many limits and wants.
func (d *domain) outcome() table.Outcome {
	c := d.out.Calls[len(d.out.Calls)-1]
	return table.Outcome{Taken: make([]table.Taken, len(c.Wants)), Limits: make([]table.LimitState, len(c.Stances))}
}

// What arrives while tables are being opened waits, as far as there is room. It arrives again when they are open, and is stored then.
func TestChunksWaitUntilTheTablesAreOpen(t *testing.T) {
	d := newDomain()
	l := d.list("l")
	testkit.Equal(t, "opens", d.out.Opens, []string{"d"})
	for range WaitingChunksMax + 1 {
		d.put(l.chunk("", 1))
	}
	testkit.Equal(t, "wait", d.Chunks(), WaitingChunksMax)
	d.all.CallAll()
	testkit.Equal(t, "calls while they are being opened", len(d.out.Calls), 0)
	d.Opened(&table.Opened{Epoch: "life"})
	d.Start()
	testkit.Equal(t, "asks history, since one was too much", d.again, 1)
	testkit.Equal(t, "arrive again", len(d.arrivals.All), WaitingChunksMax)
	d.put(d.arrivals.All[0])
	d.all.CallAll()
	if c := d.out.Calls; len(c) != 1 || len(c[0].Put) != 1 || c[0].Epoch != "life" || c[0].Seq != (table.Seq{Epoch: 7, Call: 1}) || l.index.Triggers() != 1 {
		t.Errorf("calls: %+v", c)
	}
}

// One call of a domain is under way at a time. What comes meanwhile makes the next one.
func TestOneCallIsUnderWay(t *testing.T) {
	d := opened()
	l := d.list("l")
	d.all.CallAll()
	testkit.Equal(t, "calls for nothing", len(d.out.Calls), 0)
	d.put(l.chunk("", 1))
	d.all.CallAll()
	d.put(l.chunk("", 2))
	d.all.CallAll()
	if len(d.out.Calls) != 1 || !d.Calling() || d.Chunks() != 1 || !l.Putting() {
		t.Fatalf("%d calls, %d chunks wait", len(d.out.Calls), d.Chunks())
	}
	o := d.outcome()
	d.Called(false, &o)
	d.all.CallAll()
	testkit.Equal(t, "calls", len(d.out.Calls), 2)
	testkit.Equal(t, "triggers in the table", l.index.Triggers(), 3)
}

// What becomes of a call decides about what it was to store, and whether the tables are opened again.
func TestWhatBecomesOfACall(t *testing.T) {
	for name, c := range map[string]struct {
		failed                bool
		out                   table.Outcome
		arrive, opens, losses int
		acked                 int
	}{
		"done":       {acked: 1},
		"failed":     {failed: true, arrive: 1},
		"superseded": {out: table.Outcome{Overtaken: true}},
		"lost":       {out: table.Outcome{Lost: true}, opens: 1, losses: 1, acked: 1},
	} {
		d := opened()
		l := d.list("l")
		d.arrive(l)
		d.all.CallAll()
		d.turn(1)
		d.Called(c.failed, &c.out)
		if len(d.arrivals.All) != c.arrive || len(d.out.Opens) != c.opens || d.counts.Losses != int64(c.losses) {
			t.Errorf("%s: %d arrive again, opens %v, %+v", name, len(d.arrivals.All), d.out.Opens, d.counts)
		}
		testkit.Equal(t, name+": acknowledged", len(d.acks), c.acked)
		if c.acked > 0 {
			continue
		}
		d.turn(RetryEvery)
		d.Retry()
		testkit.Equal(t, name+": opens too early", len(d.out.Opens), 0)
		d.turn(1 + RetryEvery)
		d.Retry()
		testkit.Equal(t, name+": opens", len(d.out.Opens), 1)
		d.Opened(&table.Opened{Epoch: "life"})
		d.Start()
		testkit.Equal(t, name+": asks history", d.again, 1)
	}
}

// Tables that began another life have lost their memory: what is known of them is forgotten, and history sends all triggers.
func TestTablesThatBeganAnotherLife(t *testing.T) {
	for name, c := range map[string]struct {
		o       table.Opened
		renewed bool
	}{
		"the same":     {table.Opened{Epoch: "life"}, false},
		"another":      {table.Opened{Epoch: "other"}, true},
		"a fresh life": {table.Opened{Epoch: "life", Fresh: true}, true},
	} {
		d := opened()
		l := d.list("l", "a", "b")
		testkit.Equal(t, name, d.Renewed(&c.o), c.renewed)
		d.Opened(&c.o)
		l.Found(&table.Known{Tasklist: l.Tasklist, Column: column(""), ReadyAt: 1, Triggers: 4})
		d.Start()
		testkit.Equal(t, name+": triggers in the table", l.index.Triggers(), 4)
		testkit.Equal(t, name+": history is asked", d.again == 1, c.renewed)
	}
}

// A call takes triggers for polls. They wait for the turn, and the tasklist learns of them.
func TestWhatACallTook(t *testing.T) {
	d := opened()
	l := d.list("l", "a")
	d.poll(l, 2)
	d.Mark(&l.Source)
	d.all.CallAll()
	o := d.outcome()
	b := table.Batch{Chunk: l.chunk("", 2).Chunk}
	o.Taken[0] = table.Taken{Batches: []table.Batch{b}, Heads: []table.Head{{Column: column(""), Empty: true}}}
	d.Called(false, &o)
	if taken := d.all.Taken; len(taken) != 1 || taken[0].List != l || taken[0].Chunk.Len() != 2 || taken[0].Path != limit.Unlimited || d.counts.Matches != 2 {
		t.Errorf("took %+v, %+v", taken, d.counts)
	}
	testkit.Equal(t, "triggers in the table", l.index.Triggers(), 0)
	if l.called != 1 || l.reconsider == 0 || l.changed == 0 || !l.Idle() {
		t.Errorf("the tasklist learns %+v", l)
	}
}

// A domain that starts over releases what waits, forgets all columns before anything else is stored, and has history send all triggers.
func TestADomainStartsOver(t *testing.T) {
	d := opened()
	l := d.list("l", "b")
	l.Found(&table.Known{Tasklist: l.Tasklist, Column: column("h"), ReadyAt: 1, Rank: 7, Triggers: 1})
	d.arrive(l)
	d.StartOver()
	testkit.Equal(t, "wait, are acknowledged", fmt.Sprint(d.Chunks(), d.acks), "0 [1]")
	testkit.Equal(t, "history is asked", d.again, 1)
	if !l.index.Empty() || l.Ranks.Now(column("h")) != 0 || l.Putting() {
		t.Errorf("%d triggers are left", l.index.Triggers())
	}
	d.put(l.chunk("", 1))
	d.all.CallAll()
	testkit.Equal(t, "are forgotten", fmt.Sprint(d.out.Calls[0].Clear, len(d.out.Calls[0].Put)), "[{{d l 0} {3 a h}} {{d l 0} {3 b }}] 1")
}

// What a call takes that was under way is void, and what it was to store is released.
func TestACallFromBeforeIsVoid(t *testing.T) {
	for _, over := range []bool{false, true} {
		for _, failed := range []bool{false, true} {
			d := opened()
			l := d.list("l", "a")
			d.poll(l, 1)
			d.put(l.chunk("", 1))
			d.Mark(&l.Source)
			d.all.CallAll()
			if over {
				d.StartOver()
			}
			o := d.outcome()
			o.Taken[0] = table.Taken{
				Batches: []table.Batch{{Chunk: l.chunk("", 1).Chunk}},
				Heads:   []table.Head{{Column: column(""), ReadyAt: 1}},
			}
			d.Called(failed, &o)
			taken, again := map[bool]int{false: 1}[over || failed], map[bool]int{true: 1}[failed && !over]
			name := fmt.Sprintf("over %v, failed %v: ", over, failed)
			testkit.Equal(t, name+"taken", len(d.all.Taken), taken)
			testkit.Equal(t, name+"arrive again", len(d.arrivals.All), again)
			testkit.Equal(t, name+"nothing is known", l.index.Empty(), over)
		}
	}
}

// Columns hold triggers of unknown groups if a limit has come that counts their type per group.
func TestGroupsThatAreNotKnown(t *testing.T) {
	d := opened()
	l := d.list("l", "b")
	d.Meet([]limit.Setting{{Ref: table.PerGroupRef("type/a"), Max: 1, PerGroup: true, Types: []string{"a"}}})
	l.Repath()
	l.index.PutGroup(column("g"), 1, 1, 1, 1)
	testkit.Equal(t, "of another type, or of one group", d.HoldsUnknown(), false)
	l.index.Put(column(""), 1, 1)
	testkit.Equal(t, "of several groups", d.HoldsUnknown(), true)
}

// Tables are in use while something of them waits, is asked for, or was lost.
func TestTablesThatAreInUse(t *testing.T) {
	d := newDomain()
	testkit.Equal(t, "being opened", d.InUse(), true)
	d.Opened(&table.Opened{Epoch: "life"})
	d.Start()
	testkit.Equal(t, "open", d.InUse(), false)
	d.Opened(&table.Opened{Epoch: "other"})
	testkit.Equal(t, "triggers were lost", d.InUse(), true)
	d.Start()
	l := d.list("l")
	testkit.Equal(t, "with a tasklist", d.InUse(), true)
	d.put(l.chunk("", 1))
	d.Forget(func(*list) bool { return true })
	d.all.CallAll()
	testkit.Equal(t, "with a call", d.InUse(), true)
	o := d.outcome()
	d.Called(false, &o)
	testkit.Equal(t, "in the end", d.InUse(), false)
}
