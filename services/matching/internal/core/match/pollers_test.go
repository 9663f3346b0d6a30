package match

import (
	"fmt"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/services/matching/internal/core/waiting"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// seen are the pollers of a tasklist, in words.
func (o *owner) seen(domain, tasklist, after string, limit int) (all []string, more bool) {
	got := o.s.Pollers(domain, tasklist, after, limit, Now{Mono: o.w.now})
	for _, p := range got.Seen {
		all = append(all, fmt.Sprint(p.Worker, " ", p.Version, " ", p.Types, " of ", p.TypesN, " ", p.Ago, " ", p.Waiting))
	}
	return all, got.More
}

// who are their names.
func (o *owner) who(domain, tasklist string) []string {
	var names []string
	for _, p := range o.s.Pollers(domain, tasklist, "", 1<<20, Now{Mono: o.w.now}).Seen {
		names = append(names, p.Worker)
	}
	return names
}

// A worker is known by its name: the last poll says its version and types, and all that wait are counted. It is
// forgotten five minutes after the last one.
func TestPollersAreKnownForAWhile(t *testing.T) {
	w, o := begun(t, 1)
	poll := func(name string, p waiting.Poll) {
		p.Domain, p.Tasklist, p.Max = "d", "l0", 1
		w.poll(name, p)
	}
	poll("p", waiting.Poll{Worker: "ann", Version: "v1", Types: []string{"b", "a"}, For: time.Second})
	poll("q", waiting.Poll{Worker: "ann", Version: "v1", Types: []string{"a", "b"}, For: 3 * time.Second})
	poll("r", waiting.Poll{Worker: "bob", For: 0})
	poll("s", waiting.Poll{For: 3 * time.Second})
	w.poll("t", waiting.Poll{Domain: "d", Tasklist: "l1", Max: 1, Worker: "cid", For: time.Second})
	w.poll("u", waiting.Poll{Domain: "e", Tasklist: "l0", Max: 1, Worker: "dan", For: time.Second})
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
	poll("v", waiting.Poll{Worker: "ann", Version: "v2", Types: many, For: 30 * time.Second})
	w.run(0)
	all, _ = o.seen("d", "l0", "", 1)
	testkit.Equal(t, "another version", all, []string{fmt.Sprintf("ann v2 %v of 20 0s 2", many[:16])})

	w.run(5*time.Minute - 2*time.Second)
	testkit.Equal(t, "before five minutes", o.who("d", "l0"), []string{"ann", "bob", ""})
	w.run(time.Second)
	testkit.Equal(t, "after them", o.who("d", "l0"), []string{"ann"})
	got := o.s.Pollers("d", "l0", "", 0, Now{Mono: w.now})
	if got.All != 1 || !got.More || got.Known < 5*time.Minute {
		t.Errorf("%+v", got)
	}
	w.run(time.Minute)
	testkit.Equal(t, "in the end", o.who("d", "l0"), []string{})
}
