package tablecall

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/arrival"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/fairness"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/grab"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/overflow"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/pairing"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// list is a tasklist without limits. It counts what it learns.
type list struct {
	Source[*list]
	index                       table.Index
	polls                       pairing.Queue[*list, grab.Grant]
	called, changed, reconsider int
}

func (*list) Weights() fairness.Weights { return nil }
func (l *list) Called()                 { l.called++ }
func (l *list) Changed()                { l.changed++ }
func (l *list) Reconsider()             { l.reconsider++ }

// domain is one whose tables are open.
type domain struct {
	*Tables[*list]
	all      Calls[*list]
	limits   limit.Limits
	arrivals arrival.Arrivals[*list]
	acks     []uint64
	out      Requests
	counts   CallCounts
	pd       pairing.Domain
	polls    pairing.Polls[*list, grab.Grant]
	lists    map[*limit.List]*list
	// again counts how often history was asked for all triggers.
	again int
}

// newDomain has tables that are being opened.
func newDomain() *domain {
	d := &domain{polls: pairing.NewPolls[*list, grab.Grant](), lists: map[*limit.List]*list{}}
	d.limits = limit.New(nil, 1)
	d.all = NewCalls(Config[*list]{
		Epoch: 7, AnswerBytesMax: 1 << 20, PopMax: 10, Strict: func(string, string) bool { return false }, Last: d.polls.Last,
		Of:     func(l *limit.List) *Source[*list] { return &d.lists[l].Source },
		Source: func(l *list) *Source[*list] { return &l.Source }, Retrigger: func(string) { d.again++ },
		Policies: &overflow.Turn{},
	}, &d.limits, &d.arrivals)
	d.turn(0)
	d.Tables = d.all.NewTables("d")
	return d
}

// opened has tables that are open.
func opened() *domain {
	d := newDomain()
	d.Opened(&table.Opened{Epoch: "life"})
	d.Start()
	return d
}

// turn begins a turn at an instant.
func (d *domain) turn(at time.Duration) {
	d.out.Reset()
	d.limits.Begin(at, 0)
	d.arrivals.Begin(&d.acks)
	d.all.Begin(at, &d.out, &d.counts)
}

// list makes a tasklist that contains triggers of some types, three of each.
func (d *domain) list(name string, types ...string) *list {
	l := &list{polls: pairing.NewQueue[*list, grab.Grant](&d.pd)}
	l.Source = Source[*list]{List: limit.NewList(table.Tasklist{Domain: "d", Name: name}, d.Domain, &l.index, nil), Of: l, Polls: &l.polls}
	d.lists[l.List] = l
	d.Sources = append(d.Sources, &l.Source)
	for i, typ := range types {
		l.index.Put(table.Column{Priority: 3, Type: typ}, int64(i+1), 3)
	}
	return l
}

// poll is a poll of a tasklist.
func (d *domain) poll(l *list, most int, types ...string) *grab.Poll[*list] {
	p := &grab.Poll[*list]{ID: 1, List: l, Max: most, Until: time.Minute}
	p.Accept(types)
	l.polls.Join(p)
	d.polls.Add(p)
	l.polls.Add(p)
	return p
}

// one makes a call, and returns what it takes.
func (d *domain) one() (c *Call[*list], wants string, idle int) {
	c = &Call[*list]{calls: &d.all}
	idle = len(d.want(c))
	for _, w := range c.out.Wants {
		wants += fmt.Sprint(w.Name, ":", w.N, "/", len(w.Candidates), " ")
	}
	return c, wants, idle
}

// TestACallAsksForWhatPollsHaveRoomFor: one want for all polls that accept the same types, as many triggers as a call may take.
func TestACallAsksForWhatPollsHaveRoomFor(t *testing.T) {
	d := opened()
	l, empty := d.list("l", "a", "b", "c"), d.list("m")
	d.poll(l, 2)
	d.poll(l, 3)
	other := d.poll(l, 9, "a")
	d.poll(empty, 1)
	d.Mark(&l.Source)
	d.Mark(&l.Source)
	d.Mark(&empty.Source)
	c, wants, idle := d.one()
	testkit.Equal(t, "takes", wants, "l:5/3 l:5/1 ")
	testkit.Equal(t, "have nothing to wait for", idle, 1)
	testkit.Equal(t, "asks for it", fmt.Sprint(l.AsksFor(other), empty.AsksFor(other), l.AskedUpTo() >= 3), "true false true")
	d.Mark(&l.Source)
	_, wants, _ = d.one()
	testkit.Equal(t, "takes while a call is under way", wants, "")
	c.over()
	_, wants, _ = d.one()
	testkit.Equal(t, "takes then", wants, "l:5/3 l:5/1 ")
}

// TestACallIsBounded: by the tasklists that it looks at, and by what it stores and forgets. The next one goes on.
func TestACallIsBounded(t *testing.T) {
	d := opened()
	for i := range LooksMax + 3 {
		d.Mark(&d.list(fmt.Sprint("l", i)).Source)
	}
	for _, want := range []int{LooksMax, 3, 0} {
		if c, _, idle := d.one(); c.looks != want || idle != want || c.cut != (want == LooksMax) || len(c.out.Wants) > 0 {
			t.Errorf("%d tasklists, of %d there is nothing to take; %v", c.looks, idle, c.cut)
		}
	}
	for i := range CallCandidatesMax + 3 {
		l := d.list(fmt.Sprint("l", i), "a")
		d.poll(l, 1)
		d.Mark(&l.Source)
	}
	for _, want := range []int{CallCandidatesMax, 3} {
		if c, _, _ := d.one(); len(c.out.Wants) != want || c.candidates != want || c.cut {
			t.Errorf("%d wants, %v", len(c.out.Wants), c.cut)
		}
	}
	d = opened()
	l := d.list("l")
	d.clears = make([]table.Place, CallCandidatesMax+1)
	for range putChunksMax + 1 {
		d.put(l.chunk("", 1))
	}
	for _, want := range []string{"1 513", "0 1", "0 0"} {
		d.all.CallAll()
		testkit.Equal(t, "columns, and chunks, are left", fmt.Sprint(len(d.clears), d.Chunks()), want)
		o := d.outcome()
		d.Called(false, &o)
	}
}

// TestSmallChunksAreJoined: those of one column and cost, up to the size of a chunk, with the age of the oldest.
func TestSmallChunksAreJoined(t *testing.T) {
	l := opened().list("l")
	chunk := func(typ string, readyAt int64, cost, n int) arrival.Arrival[*list] {
		return arrival.Of(l, table.Chunk{Tasklist: l.Tasklist, Column: table.Column{Priority: 3, Type: typ}, ReadyAt: readyAt, Cost: cost, Triggers: make([]byte, n*ids.TriggerBytes)})
	}
	c := &Call[*list]{}
	c.puts = []arrival.Arrival[*list]{chunk("a", 5, 0, 1), chunk("a", 3, 0, 2), chunk("b", 4, 0, 1), chunk("a", 1, 2, 1), chunk("b", 6, 0, table.ChunkTriggersMax)}
	c.join()
	got := ""
	for _, p := range c.out.Put {
		got += fmt.Sprint(p.Type, p.ReadyAt, ":", p.Len(), " ")
	}
	testkit.Equal(t, "stores", got, "a3:3 b4:1 a1:1 b6:128 ")
}

// TestAPollWhoseTimeIsOverIsAskedForOnce: it waits for the call under way, or for the next one, and for no other.
func TestAPollWhoseTimeIsOverIsAskedForOnce(t *testing.T) {
	d := opened()
	l := d.list("l", "a")
	p := d.poll(l, 1)
	may := func(when string, still, any bool) {
		t.Helper()
		testkit.Equal(t, when, fmt.Sprint(l.MayStillGet(p), l.MayGet(p)), fmt.Sprint(still, any))
	}
	may("nothing is under way", false, false)
	p.LookBy = 0
	d.Mark(&l.Source)
	may("it is to be asked for", true, true)
	c, _, _ := d.one()
	may("it is asked for", true, true)
	c.over()
	d.Mark(&l.Source)
	may("it was asked for", false, true)
	d.Open = false
	may("the tables are being opened", true, true)
	d.Down = true
	may("the tables do not answer", false, true)
}

// TestWhatIsMoreUrgentPrecedes: while the tables are asked, and if they are to be asked and hold something that is more urgent.
func TestWhatIsMoreUrgentPrecedes(t *testing.T) {
	d := opened()
	l := d.list("l", "a")
	d.poll(l, 1)
	testkit.Equal(t, "nothing is wanted", l.Precedes(4), false)
	d.Mark(&l.Source)
	testkit.Equal(t, "it is wanted", fmt.Sprint(l.Precedes(4), l.Precedes(3)), "true false")
	d.one()
	testkit.Equal(t, "it is asked for", l.Precedes(3), true)
}
