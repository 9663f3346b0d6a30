package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// seen are the pollers of a tasklist, in words.
func (o *owner) seen(domain, tasklist, after string, limit int) (all []string, more bool) {
	got := o.s.Pollers(domain, tasklist, after, limit, Now{Mono: o.w.now})
	for _, p := range got.Page {
		all = append(all, fmt.Sprint(p.Worker, " ", p.Version, " ", p.Types, " of ", p.TypesN, " ", p.Ago, " ", p.Waiting))
	}
	return all, got.More
}

// who are their names.
func (o *owner) who(domain, tasklist string) []string {
	var names []string
	for _, p := range o.s.Pollers(domain, tasklist, "", 1<<20, Now{Mono: o.w.now}).Page {
		names = append(names, p.Worker)
	}
	return names
}

// A worker is known by its name: the last poll says its version and types, and all that wait are counted. It is
// forgotten five minutes after the last one.
func TestPollersAreKnownForAWhile(t *testing.T) {
	w, o := begun(t, 1)
	poll := func(name string, p Poll) {
		p.Domain, p.Tasklist, p.Max = "d", "l0", 1
		w.poll(name, p)
	}
	poll("p", Poll{Worker: "ann", Version: "v1", Types: []string{"b", "a"}, For: time.Second})
	poll("q", Poll{Worker: "ann", Version: "v1", Types: []string{"a", "b"}, For: 3 * time.Second})
	poll("r", Poll{Worker: "bob", For: 0})
	poll("s", Poll{For: 3 * time.Second})
	w.poll("t", Poll{Domain: "d", Tasklist: "l1", Max: 1, Worker: "cid", For: time.Second})
	w.poll("u", Poll{Domain: "e", Tasklist: "l0", Max: 1, Worker: "dan", For: time.Second})
	w.run(500 * ms)
	all, more := o.seen("d", "l0", "", 9)
	testkit.Equal(t, "at first", all, []string{"ann v1 [a b] of 2 500ms 2", "bob  [] of 0 500ms 0", "  [] of 0 500ms 1"})
	if all, rest := o.seen("d", "l0", "", 1); len(all) != 1 || !rest || more {
		t.Errorf("a page of one: %v %v %v", all, rest, more)
	}
	all, more = o.seen("d", "l0", "ann", 1)
	testkit.Equal(t, "the second page", []any{all, more}, []any{[]string{"bob  [] of 0 500ms 0"}, true})
	all, more = o.seen("d", "l0", "bob", 1)
	testkit.Equal(t, "the last page", []any{all, more}, []any{[]string{"  [] of 0 500ms 1"}, false})

	w.run(time.Second)
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("type%02d", i))
	}
	poll("v", Poll{Worker: "ann", Version: "v2", Types: many, For: 30 * time.Second})
	w.run(0)
	all, _ = o.seen("d", "l0", "", 1)
	testkit.Equal(t, "another version", all, []string{fmt.Sprintf("ann v2 %v of 20 0s 2", many[:pollerTypesMax])})

	w.run(pollerFor - 2*time.Second)
	testkit.Equal(t, "before five minutes", o.who("d", "l0"), []string{"ann", "bob", ""})
	w.run(time.Second)
	testkit.Equal(t, "after them", o.who("d", "l0"), []string{"ann"})
	got := o.s.Pollers("d", "l0", "", 0, Now{Mono: w.now})
	if got.All != 1 || !got.More || got.Known < pollerFor {
		t.Errorf("%+v", got)
	}
	w.run(time.Minute)
	if len(o.s.pollers.byName)+len(o.s.pollers.byDomain)+o.s.pollers.all.Len() == 0 {
		t.Error("they are forgotten without a look, which this test was to show")
	}
	testkit.Equal(t, "in the end", o.who("d", "l0"), []string{})
	testkit.Equal(t, "are left", len(o.s.pollers.byName)+len(o.s.pollers.byDomain)+o.s.pollers.all.Len(), 0)
}

// I14: a domain fills three quarters of the places and pushes out its own oldest; another one always has room for a
// sixteenth, and then the largest gives way.
func TestI14PollersOfOneDomainPushOutTheirOwn(t *testing.T) {
	var ps pollers
	now := time.Duration(0)
	polls := func(domain string, from, to int) {
		for i := from; i < to; i++ {
			now += time.Microsecond
			ps.saw(&Poll{Domain: domain, Tasklist: "l", Worker: fmt.Sprint(i)}, nil, now)
		}
	}
	has := func(domain string, i int) bool { return ps.byName[pollerName{domain, "l", fmt.Sprint(i)}] != nil }
	count := func(domain string) int { return len(ps.of(domain, "l", now)) }
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
	if count("loud") != pollersMax-5*few || len(ps.byName) != pollersMax {
		t.Errorf("%d of the loud one, %d in all", count("loud"), len(ps.byName))
	}
	polls("quiet0", few, few+100)
	if count("quiet0") != few || count("quiet1") != few || has("quiet0", 99) || !has("quiet0", 100) || count("loud") != pollersMax-5*few {
		t.Errorf("%d and %d of quiet ones", count("quiet0"), count("quiet1"))
	}
	if ps.all.Len() != pollersMax || len(ps.byDomain) != 6 {
		t.Errorf("%d in all, %d domains", ps.all.Len(), len(ps.byDomain))
	}
}

// A page is bounded in bytes, too.
func TestAPageOfPollersIsBounded(t *testing.T) {
	w, o := begun(t, 1)
	long := make([]string, pollerTypesMax)
	for i := range long {
		long[i] = fmt.Sprintf("%064d", i)
	}
	for i := range 1000 {
		o.s.pollers.saw(&Poll{Domain: "d", Tasklist: "l", Worker: fmt.Sprintf("%0128d", i)}, long, w.now)
	}
	n, after := 0, ""
	for pages := 1; ; pages++ {
		got := o.s.Pollers("d", "l", after, 1000, Now{Mono: w.now})
		bytes := 0
		for i := range got.Page {
			bytes += got.Page[i].bytes()
		}
		if n += len(got.Page); bytes > pollersBytesMax || len(got.Page) == 0 {
			t.Fatalf("a page of %d, %d bytes", len(got.Page), bytes)
		}
		if !got.More {
			if n != 1000 || pages < 3 {
				t.Errorf("%d on %d pages", n, pages)
			}
			return
		}
		after = got.Page[len(got.Page)-1].Worker
	}
}

// A poll of a worker that is known costs no memory.
func TestAKnownPollerCostsNoMemory(t *testing.T) {
	var ps pollers
	m, types := &Poll{Domain: "d", Tasklist: "l", Worker: "ann", Version: "v1"}, []string{"a", "b"}
	now := time.Second
	first := ps.saw(m, types, now)
	if n := testing.AllocsPerRun(100, func() {
		now++
		if ps.saw(m, types, now) != first {
			t.Error("it is another one")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	types[0] = "c" // the poll's memory may be used again
	testkit.Equal(t, "first.types", first.types, []string{"a", "b"})
}
