package admission

import (
	"fmt"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// rated drives a gate whose window takes a thousand tasks, and whose domains have these full weights. They may be changed.
type rated struct {
	*bench
	of  map[string]FullWeight
	seq uint64
}

func newRated(t *testing.T) *rated {
	t.Helper()
	r := &rated{bench: newBench(t), of: map[string]FullWeight{}}
	r.g = New(Config{WindowTasks: 1000, WindowBytes: 1 << 20, FullWeight: func(domain string) FullWeight { return r.of[domain] }})
	r.tick(0)
	return r
}

// comes reads the next message of a domain, by the lane's reader or its own, and returns how many of its tasks are over the rate.
func (r *rated) comes(domain string, n int) (over int) {
	r.Helper()
	at, by := Queue{lane, ids.PlaceOf(domain, "")}, ids.Place("")
	r.seq++
	in := r.file(false, r.seq, at.Place, n)
	if !in {
		by = at.Place
		r.file(true, r.seq, at.Place, n)
	}
	return r.g.Meter(Queue{lane, by}, domain, n)
}

// tick lets time pass.
func (r *rated) tick(ms int64) {
	r.now += ms
	r.g.Refill(r.now)
	r.g.MergeBack()
}

func (r *rated) isSplit(what string, want bool) {
	r.Helper()
	testkit.Equal(r, what, r.g.IsSplit(Queue{lane, "a"}), want)
}

// A domain may bring in a second's worth. The message that comes before that is used up comes in whole, and is paid for before the next one.
func TestADomainWithoutBudgetIsSplitOff(t *testing.T) {
	r := newRated(t)
	r.of["a"] = FullWeight{PerSecond: 10}
	testkit.Equal(t, "over", r.comes("a", 9), 0)
	r.isSplit("within its rate", false)
	testkit.Equal(t, "over", r.comes("a", 11), 0)
	r.isSplit("over its rate", true)
	testkit.Equal(t, "of a domain without a rate", r.comes("b", 1000), 0)
	for range 2 { // what is over is not paid for
		testkit.Equal(t, "over", r.comes("a", 100), 100)
	}
	r.tick(1000)
	testkit.Equal(t, "while it pays", r.comes("a", 1), 1)
	r.tick(100)
	testkit.Equal(t, "over", r.comes("a", 1), 0)
	testkit.Equal(t, "split off", r.g.Splits(), 1)
}

// It goes back when its budget is as large as after a rest, and all its messages are read.
func TestADomainGoesBackWithinItsRate(t *testing.T) {
	r := newRated(t)
	r.of["a"] = FullWeight{PerSecond: 10}
	r.comes("a", 20)
	r.tick(1900)
	r.isSplit("with a part of its budget", true)
	r.seq++
	testkit.Equal(t, "its next message is passed over", r.file(false, r.seq, "a", 1), false)
	r.tick(100)
	r.isSplit("with all of its budget, and an unread message", true)
	r.file(true, r.seq, "a", 1)
	r.tick(0)
	r.isSplit("within its rate", false)
	testkit.Equal(t, "over", r.comes("a", 5), 0)
	r.isSplit("with a message more", false)
}

// While a domain is over its rate it has one turn of five, of whatever lane; within it as many as any other, and alone all.
func TestADomainOverItsRateHasOneTurnOfFive(t *testing.T) {
	r := newRated(t)
	own, a, b, other := Queue{Lane: lane}, Queue{lane, "a"}, Queue{lane, "b"}, Queue{Lane: ids.LaneLast}
	for _, domain := range []string{"a", "b"} {
		r.of[domain] = FullWeight{PerSecond: 10}
		r.comes(domain, 10)
	}
	r.tick(100)
	testkit.Equal(t, "over", r.comes("a", 11), 0)
	for domain, low := range map[string]bool{"a": true, "b": false} {
		testkit.Equal(t, domain+" has the low class", r.g.States(domain)[ids.Lanes].LowClass, low)
	}
	testkit.Equal(t, "all", reads(t, r.g, nil, 80, own, a, b), map[Queue]int{own: 32, a: 16, b: 32})
	testkit.Equal(t, "with its lane", reads(t, r.g, nil, 80, own, a), map[Queue]int{own: 64, a: 16})
	testkit.Equal(t, "with a domain within its rate", reads(t, r.g, map[string]int{"a": 50}, 80, a, b), map[Queue]int{a: 16, b: 64})
	testkit.Equal(t, "with a less urgent lane", reads(t, r.g, nil, 80, a, other), map[Queue]int{a: 16, other: 64})
	testkit.Equal(t, "alone", reads(t, r.g, nil, 80, a), map[Queue]int{a: 80})
	testkit.Equal(t, "the others alone", reads(t, r.g, nil, 80, own, b), map[Queue]int{own: 40, b: 40})
	r.g.Refill(r.now + 1100)
	testkit.Equal(t, "within its rate", reads(t, r.g, nil, 80, own, a, b), map[Queue]int{own: 40, a: 20, b: 20})
}

// Domains that are over their rates have the turns of their class by lane and weight.
func TestDomainsOverTheirRatesTakeTurnsByLaneAndWeight(t *testing.T) {
	r := newRated(t)
	a, b, urgent := Queue{lane, "a"}, Queue{lane, "b"}, Queue{lane - 1, "c"}
	for _, domain := range []string{"a", "b", "c"} {
		r.of[domain] = FullWeight{PerSecond: 1}
		r.g.Meter(Queue{Lane: lane}, domain, 5)
	}
	r.g.Meter(Queue{Lane: lane - 1}, "c", 1)
	testkit.Equal(t, "by weight", reads(t, r.g, map[string]int{"a": 3}, 40, a, b), map[Queue]int{a: 30, b: 10})
	testkit.Equal(t, "by lane", reads(t, r.g, nil, 24, a, urgent), map[Queue]int{a: 8, urgent: 16})
}

// In shadow what is over the rate is counted, and nothing else is different.
func TestARateInShadowOnlyCounts(t *testing.T) {
	r := newRated(t)
	r.of["a"] = FullWeight{PerSecond: 10, Shadow: true}
	testkit.Equal(t, "over", r.comes("a", 10), 0)
	testkit.Equal(t, "over", r.comes("a", 7), 7)
	r.isSplit("in shadow", false)
	own, a := Queue{Lane: lane}, Queue{lane, "a"}
	r.g.Replay(Step{Queue: a, Kind: Split}) // it was, since it held up others
	testkit.Equal(t, "turns", reads(t, r.g, nil, 80, own, a), map[Queue]int{own: 40, a: 40})
	r.tick(0)
	r.isSplit("after it has caught up", false)

	r.of["a"] = FullWeight{PerSecond: 10}
	testkit.Equal(t, "over", r.comes("a", 1), 1)
	r.isSplit("once the rate is in force", true)
}

// A rate may be changed at any time.
func TestARateIsChanged(t *testing.T) {
	r := newRated(t)
	r.of["a"] = FullWeight{PerSecond: 1}
	r.comes("a", 1000)
	r.of["a"] = FullWeight{PerSecond: 1000}
	r.tick(1000)
	testkit.Equal(t, "over a higher one", r.comes("a", 500), 0)
	r.of["a"] = FullWeight{PerSecond: 1}
	r.tick(250)
	r.comes("a", 1000)
	r.of["a"] = FullWeight{}
	testkit.Equal(t, "over none", r.comes("a", 1000), 0)
	r.leave(3000)
	r.tick(0)
	r.isSplit("without a rate", false)
}

// Tasks that are not due, and go to the timer, count when they come back. A domain that has its own reader is not split off again by what that reads.
func TestSomeTasksDoNotSplit(t *testing.T) {
	r := newRated(t)
	r.of["a"] = FullWeight{PerSecond: 1}
	testkit.Equal(t, "over", r.g.Meter(Queue{Lane: ids.LaneLater}, "a", 10)+r.g.Meter(Queue{Lane: ids.LaneLater}, "a", 10), 0)
	testkit.Equal(t, "over", r.g.Meter(Queue{lane, "a.mail"}, "a", 10)+r.g.Meter(Queue{lane, "a.mail"}, "a", 10), 10)
	testkit.Equal(t, "splits", r.g.Splits(), 0)
}

// A takeover splits off by the log, and knows no rate.
func TestATakeoverNeedsNoRates(t *testing.T) {
	r := newRated(t)
	r.of["a"] = FullWeight{PerSecond: 10}
	r.comes("b", 1)
	r.comes("a", 10)
	r.comes("a", 3)
	r.comes("b", 1)
	next := newRated(t)
	for _, s := range r.g.BeginTurn() {
		if s.Kind != Read {
			next.g.Replay(s)
			continue
		}
		for seq := s.From + 1; seq <= s.To; seq++ {
			next.file(s.Place != "", seq, []ids.Place{"b", "a", "a", "b"}[seq-1], []int{1, 10, 3, 1}[seq-1])
		}
	}
	testkit.Equal(t, "queues", fmt.Sprint(next.g.Cursors()), fmt.Sprint(r.g.Cursors()))
	testkit.Equal(t, "lanes", next.g.ReadLevels(), r.g.ReadLevels())
	testkit.Equal(t, "tasks", len(next.tasks), len(r.tasks))
}
