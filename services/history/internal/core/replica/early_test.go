package replica

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/locate"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// cancels reads a message of cancels of tasks that no one knows.
func (b *bench) cancels(domain string, numbers ...int) *Effects {
	b.Helper()
	b.seq++
	in := &Events{Seq: b.seq, At: b.now.MS, Bytes: 10, ReplyTo: "asker"}
	for _, n := range numbers {
		in.Events = append(in.Events, taskstate.Event{Kind: taskstate.Cancel, ID: id(n), Domain: domain})
	}
	return b.step(in)
}

// TestWaitingCommandsAreReported: past its share a domain is named, past the bound the partition
// is full; what is in the log waits in any case.
func TestWaitingCommandsAreReported(t *testing.T) {
	b := newBench(t, Config{})
	share := func(domain string, from int) {
		for at := from; at < from+locate.DomainCommandsMax; at += 500 {
			b.cancels(domain, numbers(at, at+499)...)
		}
	}
	check := func(full bool, domains ...string) {
		t.Helper()
		if w := b.r.Waiting(); w.Full != full || !slices.Equal(w.Domains, domains) {
			t.Errorf("%+v, want %v %v", w, full, domains)
		}
	}
	check(false)
	b.cancels("quiet", 60_000)
	for n := range locate.DomainCommandsMax/500 - 1 {
		b.cancels("d", numbers(1+500*n, 500*n+500)...)
	}
	check(false)
	b.cancels("d", numbers(locate.DomainCommandsMax-499, locate.DomainCommandsMax)...)
	check(false, "d")
	share("c", 10_001)
	share("b", 20_001)
	check(false, "b", "c", "d")
	share("a", 30_001)
	check(true, "a", "b", "c", "d")

	// The stores have none of them, and the lanes have been read.
	for n := 1; n <= locate.DomainCommandsMax; n++ {
		b.r.Step(&Found{Search: Search{ID: id(n), Domain: "d", Command: true}}, b.now, new(Effects))
	}
	for range 4*locate.DomainCommandsMax/locate.ExpireMax + 1 {
		b.step(Tick{})
	}
	check(false, "a", "b", "c")
	testkit.Equal(t, "commands wait", b.r.locator.Weight(""), 3*locate.DomainCommandsMax+1)
}

// TestATickLooksAtSomeWaits: what waits is looked at in turn, so many tasks at a tick.
func TestATickLooksAtSomeWaits(t *testing.T) {
	b := newBench(t, Config{})
	last := 2*locate.ExpireMax + 10
	b.cancels("shop", numbers(1, last)...)
	for n := 1; n <= last; n++ {
		b.r.Step(&Found{Search: Search{ID: id(n), Domain: "shop", Command: true}}, b.now, new(Effects))
	}
	for _, want := range []int{last - locate.ExpireMax, last - 2*locate.ExpireMax, 0} {
		b.step(Tick{})
		testkit.Equal(t, "commands wait", b.r.locator.Weight(""), want)
	}
}

// TestOutcomesThatWaitAreBounded: past the bound an outcome of a task that has left is refused at
// once; when a search is answered there is room again.
func TestOutcomesThatWaitAreBounded(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1) // so that the position has been read
	in := &Events{Seq: 2, At: b.now.MS, ReplyTo: "asker"}
	for n := 2; n < locate.QuestionsMax+2; n++ {
		in.Events = append(in.Events, taskstate.Event{Kind: taskstate.Succeeded, ID: id(n), Domain: "shop", Fence: ids.Token{Position: ids.NewPosition(1, 3), Version: 1}})
	}
	b.seq = 2
	if fx := b.step(in); len(fx.Searches) != locate.QuestionsMax || len(fx.Answers) != 0 {
		t.Fatalf("%d searches, %d answers", len(fx.Searches), len(fx.Answers))
	}
	late := func() fault.Code {
		fx := b.event(taskstate.Succeeded, 60_000, ids.Token{Position: ids.NewPosition(1, 3), Version: 1})
		if len(fx.Answers) == 0 {
			return "waits"
		}
		return fx.Answers[0].Verdicts[0].Code
	}
	testkit.Equal(t, "one too many", late(), fault.Unavailable)
	b.step(&Found{Search: Search{ID: id(2), Domain: "shop"}})
	testkit.Equal(t, "with room again", late(), "waits")
}

// cancelFrom is a turn with one cancel of the first task.
func cancelFrom(seq uint64, domain string) *Events {
	return &Events{Seq: seq, At: scenarioStart, Bytes: 10, ReplyTo: "asker", RequestID: seq, Events: []taskstate.Event{{Kind: taskstate.Cancel, ID: id(1), Domain: domain}}}
}

// A caller without an answer repeats a cancel of a dead task. The lane goes on, always 50 behind its end: a repeat puts nothing off.
func TestARepeatPutsOffNothing(t *testing.T) {
	b := newBench(t, Config{})
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.seq = 43
	answers := 0
	for end := uint64(100); end < 5000; end += 50 {
		fx := b.step(cancelFrom(b.r.EventAt()+44, "shop"))
		f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), Unsure: true}
		f.Ends[3] = end
		answers += len(b.step(f).Answers)
		b.step(&Submits{Lane: 3, Seq: end - 50, At: scenarioStart, Bytes: 10})
		fx = b.step(Tick{})
		b.prove(fx)
		answers += len(fx.Answers)
	}
	if len(b.r.locator.Commands()) > 2 {
		t.Errorf("%d cancels are answered, %d wait", answers, len(b.r.locator.Commands()))
	}
}

// The log has a second copy of a stay that died, and the next stay behind that, where no search finds it. The cancel waits for it.
func TestACopyOfTheDeadStayDecidesNothing(t *testing.T) {
	b := newBench(t, Config{})
	b.r.Admit(Queue{Lane: 3}, "", 30)
	b.seq = 43
	fx := b.step(cancelFrom(44, "shop"))
	twin := deadLetterOf()
	twin.State, twin.Before, twin.Position = taskstate.None, twin.Position, ids.NewPosition(45, 3)
	f := &Found{Search: fx.Searches[0], Archived: deadLetterOf(), Unread: twin, Unsure: true}
	f.Ends[3] = 50
	fx = b.step(f)
	e := deadLetterOf()
	taskstate.Bring(e, &taskstate.Event{Seq: 41, Redrive: &taskstate.Redrive{Request: 9}}, scenarioStart)
	b.step(&Submits{Lane: 3, Seq: 50, At: scenarioStart, Bytes: 10, Tasks: []*Entry{{Task: *e}}})
	if task := b.r.Get(id(1)); len(fx.Answers) > 0 && fx.Answers[0].Verdicts[0].Code != "" || task.State != taskstate.Cancelled {
		t.Errorf("%+v, the task is %s", fx.Answers, task.State)
	}
}
