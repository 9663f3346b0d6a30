package grab

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/limit"
	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/table"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// lanes are the ways to one partition, with the effects of the last turn.
type lanes struct {
	Lanes[int]
	t      *testing.T
	out    Effects
	counts Counts
	now    time.Duration
	made   uint64
}

// fenced has a partition that may be asked; a batch has three events at most.
func fenced(t *testing.T) *lanes {
	l := &lanes{t: t, Lanes: New[int](Config{Partitions: 1, InFlightMax: 1, EventsMax: 3, AnswerBytesMax: 1000, Nonce: func() uint64 { return 8 }})}
	l.turn(0)
	l.SendFences()
	l.decide(1, Verdict{})
	return l
}

// turn begins the next turn after a while.
func (l *lanes) turn(after time.Duration) {
	l.now += after
	l.out.Reset()
	l.Begin(l.now, &l.out, &l.counts)
}

func (l *lanes) decide(batch uint64, all ...Verdict) Outcome[int] {
	return l.Decide(&Verdicts{Batch: batch, All: all})
}

// trigger is one that was not made before.
func (l *lanes) trigger() ids.Trigger {
	l.made++
	return ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 0, l.made), Version: 1}
}

// ask asks for a trigger of a column.
func (l *lanes) ask(p *Poll[int], at table.Column) (ids.Trigger, Asked) {
	t := l.trigger()
	from := &Origin[int]{Chunk: table.Chunk{Tasklist: table.Tasklist{Domain: "d", Name: "l"}, Column: at}, At: l.now}
	p.Asked++
	return t, l.Ask(Request[int]{Trigger: t, Poll: p, From: from}, ids.AppendTrigger(nil, t))
}

// summary is what became of some requests: the flags of each.
func summary(ends []End[int]) (out string) {
	for _, e := range ends {
		for _, f := range []struct {
			is   bool
			name string
		}{{e.Detach, "detach"}, {e.Over, "over"}, {e.Free, "free"}, {e.Again, "again"}, {e.Aside, "aside"}, {e.Granted, "grant"}} {
			if f.is {
				out += f.name + " "
			}
		}
		out += "| "
	}
	return out
}

// TestWhatFollowsFromAVerdict: a slot is free where no attempt runs, and only an answer that was full has the trigger matched again. A verdict counts once.
func TestWhatFollowsFromAVerdict(t *testing.T) {
	for code, want := range map[fault.Code]string{
		"": "detach over grant | ", fault.Stale: "detach over free | ", fault.NotFound: "detach over free | ",
		fault.FailedPrecondition: "detach over free | ", fault.ResourceExhausted: "detach over free again | ",
	} {
		l := fenced(t)
		made, asked := l.ask(&Poll[int]{}, table.Column{})
		l.Send()
		testkit.MustEqual(t, "asked", fmt.Sprint(asked, len(l.out.Batches), l.counts.GrabBatches), "0 2 1")
		testkit.Equal(t, string(code), summary(l.decide(2, Verdict{Refused: string(code)}).Ends), want)
		testkit.Equal(t, string(code)+", again", summary(l.decide(2, Verdict{Refused: string(code)}).Ends), "")
		// One that may pass another time may be asked for again.
		passes := code == fault.FailedPrecondition || code == fault.ResourceExhausted
		testkit.Equal(t, string(code)+", is known", l.Made(ids.AppendTrigger(nil, made)), !passes)
	}
}

// TestACopyThatIsRefused: the one before may have been granted, so it is handed back. Its slot is free when history knows.
func TestACopyThatIsRefused(t *testing.T) {
	l := fenced(t)
	l.ask(&Poll[int]{}, table.Column{})
	l.Send()
	l.turn(ResendAfter)
	if l.Resend(); len(l.out.Batches) != 1 || l.out.Batches[0].Number != 2 {
		t.Fatalf("%+v", l.out.Batches)
	}
	testkit.Equal(t, "refused", summary(l.decide(2, Verdict{Refused: string(fault.FailedPrecondition)}).Ends), "detach over | ")
	l.HandOver(nil)
	testkit.MustEqual(t, "hand-backs", len(l.out.Batches[1].HandBacks), 1)
	testkit.Equal(t, "not decided", summary(l.decide(3, Verdict{Refused: string(fault.Unavailable)}).Ends), "")
	l.HandOver(nil)
	testkit.Equal(t, "history knows", summary(l.decide(4, Verdict{}).Ends), "free | ")
}

// TestWhatIsAsideKeepsItsPlace: it comes back to the column of its tasklist that it came from, in chunks of a bounded size.
func TestWhatIsAsideKeepsItsPlace(t *testing.T) {
	low, high := table.Column{Priority: 2, Type: "b"}, table.Column{Priority: 1, Type: "b"}
	l := &lanes{t: t, Lanes: New[int](Config{Partitions: 1, InFlightMax: 1, EventsMax: 3})} // not fenced
	for _, c := range []struct {
		name    string
		column  table.Column
		readyAt int64
		n       int
	}{{"l", low, 1, 2}, {"l", low, 2, 1}, {"l", high, 2, 1}, {"m", high, 2, table.ChunkTriggersMax + 1}} {
		for range c.n {
			from := &Origin[int]{Chunk: table.Chunk{Tasklist: table.Tasklist{Domain: "d", Name: c.name}, Column: c.column, ReadyAt: c.readyAt}}
			r := Request[int]{Trigger: l.trigger(), From: from}
			testkit.MustEqual(t, "it is", l.Ask(r, ids.AppendTrigger(nil, r.Trigger)), SetAside)
		}
	}
	_, _, n, _ := l.Census()
	_, aside, _ := l.Leave()
	got := ""
	for _, c := range aside {
		got += fmt.Sprint(c.Name, c.Priority, c.ReadyAt, ":", c.Len(), " ")
	}
	testkit.Equal(t, "are aside", fmt.Sprint(got, n), fmt.Sprint("l2 1:2 l2 2:1 l1 2:1 m1 2:128 m1 2:1 ", 5+table.ChunkTriggersMax))
}

// TestASilentPartition: polls wait no more for what it was asked, what gathers is set aside, and it comes back with the next verdict. Nothing is rejected meanwhile.
func TestASilentPartition(t *testing.T) {
	l := fenced(t)
	l.ask(&Poll[int]{}, table.Column{})
	l.Send()
	l.ask(&Poll[int]{}, table.Column{})
	l.turn(SilentAfter - 1)
	testkit.Equal(t, "it may answer yet", summary(l.Listen().Ends), "")
	stop := StopRequest{Limit: &limit.Limit{Domain: &limit.Domain{}}}
	testkit.Equal(t, "may be rejected", l.AddStop(stop), Gathered)
	l.turn(1)
	testkit.Equal(t, "it is silent", summary(l.Listen().Ends), "detach | detach over free aside | ")
	testkit.Equal(t, "may be rejected while it is silent", l.AddStop(stop), Dropped)
	l.decide(2, Verdict{})
	if back := l.Listen().Back; len(back) != 1 || back[0].Len() != 1 {
		t.Errorf("%+v come back", back)
	}
}

// TestAnAnsweredPollGetsNoMore: its grab is not sent, and its trigger is matched again.
func TestAnAnsweredPollGetsNoMore(t *testing.T) {
	l := fenced(t)
	l.ask(&Poll[int]{Answered: true}, table.Column{})
	testkit.Equal(t, "it ends", summary(l.Send()), "detach over free again | ")
	testkit.Equal(t, "batches", len(l.out.Batches), 1) // the fence
}

// stopsOf are requests to stop tasks of groups, and an attempt.
func stopsOf(mine, others *limit.Limit) []StopRequest {
	return []StopRequest{
		{Limit: mine},
		{Limit: mine, Back: table.Chunk{Column: table.Column{Group: "g"}}},
		{Limit: mine, Back: table.Chunk{Column: table.Column{Group: "h"}}},
		{Limit: mine, Stop: Stop{Displace: true}},
		{Limit: others},
	}
}

// TestStopsGoOneBatchAtATime: those of a paused group wait on, and a verdict counts once.
func TestStopsGoOneBatchAtATime(t *testing.T) {
	l := fenced(t)
	mine := &limit.Limit{Domain: &limit.Domain{}}
	for _, st := range append(stopsOf(mine, mine), stopsOf(mine, mine)...) {
		l.AddStop(st)
	}
	l.turn(0)
	paused := func(st *StopRequest) bool { return st.Back.Group == "g" }
	if back := l.HandOver(paused); len(back) != 1 || len(l.out.Batches) != 1 || len(l.out.Batches[0].Stops) != 2 || !l.UnderWay() {
		t.Fatalf("%d go back, sent is %+v", len(back), l.out.Batches)
	}
	l.HandOver(paused)
	testkit.Equal(t, "batches", len(l.out.Batches), 1)
	refused := Verdict{Refused: string(fault.FailedPrecondition)}
	if got := l.decide(2, Verdict{}, refused).Stops; len(got) != 2 || got[0].WaitsOn() || !got[1].WaitsOn() || len(l.decide(2, refused).Stops) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestI14OneDomainsStopsDoNotBlockOthers: more is to be stopped of one domain than waits to be sent at most.
func TestI14OneDomainsStopsDoNotBlockOthers(t *testing.T) {
	l := fenced(t)
	d, e := &limit.Limit{Domain: &limit.Domain{}}, &limit.Limit{Domain: &limit.Domain{}}
	for n := range StopsOfDomainMax + 1 {
		testkit.MustEqual(t, "is refused", l.AddStop(StopRequest{Limit: d}) == Dropped, n == StopsOfDomainMax)
	}
	testkit.Equal(t, "of another domain", l.AddStop(StopRequest{Limit: e}), Gathered)
	testkit.Equal(t, "of no partition", l.AddStop(StopRequest{Limit: e, Stop: Stop{Trigger: ids.Trigger{ID: ids.NewTaskID(time.UnixMilli(1), 7, 1)}}}), Malformed)
	for len(l.stops()) < StopsMax {
		other := &limit.Limit{Domain: &limit.Domain{}}
		for range StopsOfDomainMax {
			l.AddStop(StopRequest{Limit: other})
		}
	}
	testkit.Equal(t, "are too many", l.AddStop(StopRequest{Limit: e}), Dropped)
}

// stops are those that wait to be sent.
func (l *lanes) stops() []StopRequest { return l.all[0].stops }
