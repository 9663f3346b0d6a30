package replica

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/ids"
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
		for at := from; at < from+domainCommandsMax; at += 500 {
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
	for n := range domainCommandsMax/500 - 1 {
		b.cancels("d", numbers(1+500*n, 500*n+500)...)
	}
	check(false)
	b.cancels("d", numbers(domainCommandsMax-499, domainCommandsMax)...)
	check(false, "d")
	share("c", 10_001)
	share("b", 20_001)
	check(false, "b", "c", "d")
	share("a", 30_001)
	check(true, "a", "b", "c", "d")

	// The stores have none of them, and the lanes have been read.
	for n := 1; n <= domainCommandsMax; n++ {
		b.r.Step(&Found{Search: Search{ID: id(n), Domain: "d", Cancel: true}}, b.now, new(Effects))
	}
	for range 4*domainCommandsMax/endWaitsMax + 1 {
		b.step(Tick{})
	}
	check(false, "a", "b", "c")
	testkit.Equal(t, "commands wait", b.r.early.commands, 3*domainCommandsMax+1)
}

// TestATickLooksAtSomeWaits: what waits is looked at in turn, so many tasks at a tick.
func TestATickLooksAtSomeWaits(t *testing.T) {
	b := newBench(t, Config{})
	last := 2*endWaitsMax + 10
	b.cancels("shop", numbers(1, last)...)
	for n := 1; n <= last; n++ {
		b.r.Step(&Found{Search: Search{ID: id(n), Domain: "shop", Cancel: true}}, b.now, new(Effects))
	}
	for _, want := range []int{last - endWaitsMax, last - 2*endWaitsMax, 0} {
		b.step(Tick{})
		testkit.Equal(t, "commands wait", b.r.early.commands, want)
	}
}

// TestOutcomesThatWaitAreBounded: past the bound an outcome of a task that has left is refused at
// once; when a search is answered there is room again.
func TestOutcomesThatWaitAreBounded(t *testing.T) {
	b := newBench(t, Config{})
	b.submit(nil, 1) // so that the position has been read
	in := &Events{Seq: 2, At: b.now.MS, ReplyTo: "asker"}
	for n := 2; n < questionsMax+2; n++ {
		in.Events = append(in.Events, taskstate.Event{Kind: taskstate.Succeeded, ID: id(n), Domain: "shop", Fence: ids.Token{Position: ids.NewPosition(1, 3), Version: 1}})
	}
	b.seq = 2
	if fx := b.step(in); len(fx.Searches) != questionsMax || len(fx.Answers) != 0 {
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

// TestNothingIsPromisedBehindAServicesCancel: it is about the task of any domain. What a client asks for behind it is answered when both are decided.
func TestNothingIsPromisedBehindAServicesCancel(t *testing.T) {
	for before, promised := range map[string]bool{"": false, "depot": true} { // another domain's changes nothing
		b := newBench(t, Config{})
		b.seq = 40
		first := b.cancels(before, 1)
		b.change(1, taskstate.Update{Request: 7, Priority: 1})
		fx := b.step(&Found{Search: first.Searches[0]})
		if len(fx.Searches) != 1 || fx.Searches[0].Domain != "shop" {
			t.Fatalf("behind a cancel of %q the searches are %+v", before, fx.Searches)
		}
		f := &Found{Search: fx.Searches[0], Unread: &Entry{Task: taskstate.Task{
			ID: id(1), Domain: "shop", Tasklist: "mail", Type: "send", Priority: 3, Policy: storyPolicy, Position: ids.NewPosition(30, 3),
		}}}
		f.Ends[3] = 30
		if got := len(b.step(f).Answers) > 0; got != promised {
			t.Errorf("behind a cancel of %q it is answered: %v", before, got)
		}
	}
}
