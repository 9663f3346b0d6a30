package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// who are the workers that polled a tasklist, as far as is known.
func who(ps *Pollers, domain, tasklist string, now time.Duration) []string {
	var names []string
	for after := ""; ; {
		page := ps.Page(domain, tasklist, after, 1<<20, now)
		for _, p := range page.Seen {
			names = append(names, p.Worker)
		}
		if !page.More {
			return names
		}
		after = names[len(names)-1]
	}
}

// I14: a domain fills three quarters of the places and pushes out its own oldest; another one always has room for a
// sixteenth, and then the largest gives way.
func TestI14PollersOfOneDomainPushOutTheirOwn(t *testing.T) {
	ps := NewPollers(0)
	now := time.Duration(0)
	polls := func(domain string, from, to int) {
		for i := from; i < to; i++ {
			now += time.Microsecond
			ps.Saw(Poll{Domain: domain, Tasklist: "l", Worker: fmt.Sprint(i)}, now)
		}
	}
	count := func(domain string) int { return ps.Page(domain, "l", "", 0, now).All }
	has := func(domain string, i int) bool { return slices.Contains(who(&ps, domain, "l", now), fmt.Sprint(i)) }
	const most, few = pollersMax - pollersMax/4, pollersMax / 16
	polls("loud", 0, most)
	polls("loud", 0, 1) // it is not the oldest any more
	polls("loud", most, most+2)
	if count("loud") != most || !has("loud", 0) || has("loud", 1) || has("loud", 2) || !has("loud", 3) {
		t.Errorf("%d of the loud one", count("loud"))
	}
	for i := range 5 {
		polls(fmt.Sprint("quiet", i), 0, few)
	}
	testkit.Equal(t, "of the loud one", count("loud"), pollersMax-5*few)
	polls("quiet0", few, few+100)
	if count("quiet0") != few || count("quiet1") != few || has("quiet0", 99) || !has("quiet0", 100) || count("loud") != pollersMax-5*few {
		t.Errorf("%d and %d of quiet ones", count("quiet0"), count("quiet1"))
	}
}

// A page is bounded, whatever it is asked for.
func TestAPageOfPollersIsBounded(t *testing.T) {
	ps := NewPollers(0)
	for i := range 1000 {
		ps.Saw(Poll{Domain: "d", Tasklist: "l", Worker: fmt.Sprintf("%0128d", i)}, 0)
	}
	n, after := 0, ""
	for pages := 1; ; pages++ {
		got := ps.Page("d", "l", after, 1000, 0)
		if n += len(got.Seen); len(got.Seen) > pageMax || len(got.Seen) == 0 {
			t.Fatalf("a page of %d", len(got.Seen))
		}
		if !got.More {
			if n != 1000 || pages != 1000/pageMax {
				t.Errorf("%d on %d pages", n, pages)
			}
			return
		}
		after = got.Seen[len(got.Seen)-1].Worker
	}
}

// A poll of a worker that is known costs no memory.
func TestAKnownPollerCostsNoMemory(t *testing.T) {
	ps := NewPollers(0)
	m := Poll{Domain: "d", Tasklist: "l", Worker: "ann", Version: "v1", Types: []string{"a", "b"}}
	now := time.Second
	first := ps.Saw(m, now)
	if n := testing.AllocsPerRun(100, func() {
		now++
		if ps.Saw(m, now) != first {
			t.Error("it is another one")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	m.Types[0] = "c" // the poll's memory may be used again
	testkit.Equal(t, "types", ps.Page("d", "l", "", 1, now).Seen[0].Types, []string{"a", "b"})
}

// Of the workers of a tasklist those count that may take a type. The last one of them is named, or the last one of all.
func TestWhoServesATasklist(t *testing.T) {
	ps := NewPollers(0)
	many := make([]string, pollerTypesMax+1)
	for i := range many {
		many[i] = fmt.Sprintf("%02d", i)
	}
	saw := func(at time.Duration, worker, tasklist string, types ...string) {
		ps.Saw(Poll{Domain: "d", Tasklist: tasklist, Worker: worker, Version: "v1", Types: types}, at)
	}
	said := func(typ string) string {
		s := ps.Serving("d", "l", typ, 10*time.Second)
		last := "none"
		if s.Last != nil {
			last = fmt.Sprint(s.Last.Worker, " ", s.Last.Ago)
		}
		return fmt.Sprint(s.Takers, " of ", s.All, ", ", last, ", ", s.Known)
	}
	testkit.Equal(t, "no worker", said("a"), "0 of 0, none, 10s")
	saw(time.Second, "ann", "l", "a", "b")
	saw(2*time.Second, "bob", "l", "b")
	saw(3*time.Second, "cleo", "other")
	testkit.Equal(t, "one of two", said("a"), "1 of 2, ann 9s, 10s")
	testkit.Equal(t, "both", said("b"), "2 of 2, bob 8s, 10s")
	testkit.Equal(t, "neither", said("c"), "0 of 2, bob 8s, 10s")
	saw(4*time.Second, "dan", "l")
	testkit.Equal(t, "one accepts all", said("c"), "1 of 3, dan 6s, 10s")
	saw(5*time.Second, "eve", "l", many...)
	testkit.Equal(t, "one accepts more than are remembered", said("c"), "2 of 4, eve 5s, 10s")
}
