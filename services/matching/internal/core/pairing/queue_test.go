package pairing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type poll = Poll[string, int]

// The queue does as a plain list of polls does, whatever types they accept, and keeps no empty lines (I7).
func TestQueueIsFirstComeFirstServed(t *testing.T) {
	dice := testkit.Seed(t)
	var d Domain
	q := NewQueue[string, int](&d)
	for range 100 {
		q.Weigh(1, 1)
	}
	polls := NewPolls[string, int]()
	var all, out []*poll
	for n := range 1000 {
		switch k := dice.IntN(10); {
		case k < 4:
			p := &poll{ID: uint64(n + 1), Max: 1 + dice.IntN(3)}
			p.Accept([][]string{nil, {"a"}, {"b", "a"}, {"b"}}[dice.IntN(4)])
			q.Join(p)
			polls.Add(p)
			q.Add(p)
			all = append(all, p)
		case k < 6 && len(all) > 0:
			i := dice.IntN(len(all))
			q.Remove(all[i])
			out, all = append(out, all[i]), slices.Delete(all, i, i+1)
		case k == 6 && len(out) > 0: // it is answered
			i := dice.IntN(len(out))
			q.Leave(out[i])
			polls.Remove(out[i])
			out = slices.Delete(out, i, i+1)
		case k < 8 && len(out) > 0: // it comes back
			i := dice.IntN(len(out))
			q.Add(out[i])
			all, out = append(all, out[i]), slices.Delete(out, i, i+1)
			slices.SortFunc(all, func(a, b *poll) int { return cmp.Compare(a.order, b.order) })
		case len(all) > 0: // its room changes
			p := all[dice.IntN(len(all))]
			p.Pending = dice.IntN(p.Max + 1)
		}
		checkQueue(t, &q, all)
		checkCounts(t, &q, &polls)
	}
}

// checkQueue compares a queue with the polls that it holds, in their order.
func checkQueue(t *testing.T, q *Queue[string, int], all []*poll) {
	t.Helper()
	var got []*poll
	q.Each(func(p *poll) bool {
		got = append(got, p)
		return true
	})
	if !slices.Equal(got, all) || q.n != len(all) {
		t.Fatalf("%d polls in the queue, %d counted, %d are there", len(got), q.n, len(all))
	}
	keys := map[string]bool{}
	for _, p := range all {
		keys[p.key] = true
	}
	if len(q.lines) != len(keys) || len(q.byKey) != len(keys) {
		t.Fatalf("%d lines of %d kinds of polls", len(q.lines), len(keys))
	}
	for _, typ := range []string{"a", "b", "c"} {
		i := slices.IndexFunc(all, func(p *poll) bool { return p.Room(100) > 0 && (p.key == "" || strings.Contains(p.key, typ)) })
		switch p, room := q.Taker(typ, 100); {
		case i < 0 && p != nil, i >= 0 && (p != all[i] || room != p.Room(100)):
			t.Fatalf("%s goes to %+v, not to the %d-th", typ, p, i)
		}
	}
}

// What f wants no more of is left out, the others keep their order.
func TestQueueLeavesLinesOut(t *testing.T) {
	q := NewQueue[string, int](&Domain{})
	for i, typ := range []string{"a", "b", "a", "c", "b", "c"} {
		q.Add(&poll{Types: []string{typ}, position: position[string, int]{key: typ, order: uint64(i)}})
	}
	got := ""
	q.Each(func(p *poll) bool {
		got += p.key
		return p.key != "b"
	})
	testkit.Equal(t, "it went through", got, "abacc")
}

// checkCounts counts the polls that are not answered, their different sets of types, and the types of those that wait.
func checkCounts(t *testing.T, q *Queue[string, int], polls *Polls[string, int]) {
	t.Helper()
	sets, takers, named := map[string]int{}, map[string]int{}, 0
	for _, p := range polls.All() {
		if sets[p.key]++; sets[p.key] > 1 {
			continue
		}
		for _, typ := range p.Types {
			takers[typ]++
			named++
		}
	}
	if !maps.Equal(q.sets, sets) || !maps.Equal(q.takers, takers) || q.Alive() != polls.Len() || *q.domain != (Domain{"", polls.Len(), named}) {
		t.Fatalf("sets %v, takers %v; counted %v, %v, %+v", sets, takers, q.sets, q.takers, *q.domain)
	}
	all, types := 0, map[string]int{}
	for _, line := range q.lines {
		if len(line.first.Types) == 0 {
			all++
		}
		for _, typ := range line.first.Types {
			types[typ]++
		}
	}
	if all != q.all || !maps.Equal(types, q.types) {
		t.Fatalf("%d lines take all, by type %v; counted %d, %v", all, types, q.all, q.types)
	}
}

// The types that the polls of a domain name are bounded, those of equal polls counted once (I14).
func TestI14_PollsMayNotNameTooManyTypes(t *testing.T) {
	var d Domain
	one, other := NewQueue[string, int](&d), NewQueue[string, int](&d)
	named := func(n int) *poll {
		types := make([]string, typesNamedMax/2)
		for i := range types {
			types[i] = fmt.Sprint(n, " ", i)
		}
		p := &poll{}
		p.Accept(append(types, types...)) // a type that is named twice is one
		return p
	}
	first := named(0)
	if !one.Join(first) || !one.Join(named(0)) || !other.Join(named(1)) || other.Join(named(2)) {
		t.Error("another number of types is let in")
	}
	if !other.Join(&poll{}) || one.Join(named(3)) {
		t.Error("who names no type is let in, and no one else")
	}
	if one.Leave(first); one.Join(named(3)) {
		t.Error("an equal poll is there still")
	}
	if one.Leave(first); !one.Join(named(3)) {
		t.Error("there is room again")
	}
}

// What a task weighs in an answer follows growth at once, and forgets it slowly.
func TestWeightOfTasks(t *testing.T) {
	q := NewQueue[string, int](&Domain{})
	for _, c := range []struct{ bytes, tasks, want int }{{2000, 2, 1000}, {500, 1, 938}, {3000, 3, 1000}, {0, 1, 875}} {
		q.Weigh(c.bytes, c.tasks)
		testkit.MustEqual(t, fmt.Sprintf("after %d tasks of %d bytes", c.tasks, c.bytes), q.weight(), c.want)
	}
}

// I14: the last quarter of the places is for domains with a sixteenth at most.
func TestI14_ADomainLeavesPlacesForOthers(t *testing.T) {
	const most = 64
	polls, loud, quiet := NewPolls[string, int](), Domain{}, Domain{}
	add := func(d *Domain) bool {
		if !polls.HasRoom(d, most) {
			return false
		}
		q := NewQueue[string, int](d)
		p := &poll{}
		q.Join(p)
		polls.Add(p)
		return true
	}
	loudN, quietN := 0, 0
	for add(&loud) {
		loudN++
	}
	for add(&quiet) {
		quietN++
	}
	if loudN != most-most/4 || quietN != most/16 || !polls.HasRoom(nil, most) {
		t.Errorf("%d of the loud one, %d of the quiet one", loudN, quietN)
	}
}
