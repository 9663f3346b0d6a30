package match

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// The queue does as a plain list of polls does, whatever types they accept, and keeps no empty lines (I7).
func TestQueueIsFirstComeFirstServed(t *testing.T) {
	dice := testkit.Seed(t)
	var q pollQueue
	var all, out []*poll
	l := &list{taskBytes: 1}
	for n := range 1000 {
		switch k := dice.IntN(10); {
		case k < 4:
			p := newPoll(l, &Poll{Max: 1 + dice.IntN(3), Types: [][]string{nil, {"a"}, {"b", "a"}, {"b"}}[dice.IntN(4)]}, 0)
			p.order = uint64(n + 1)
			q.add(p)
			all = append(all, p)
		case k < 6 && len(all) > 0:
			i := dice.IntN(len(all))
			q.remove(all[i])
			out, all = append(out, all[i]), slices.Delete(all, i, i+1)
		case k < 8 && len(out) > 0: // it comes back
			i := dice.IntN(len(out))
			q.add(out[i])
			all, out = append(all, out[i]), slices.Delete(out, i, i+1)
			slices.SortFunc(all, func(a, b *poll) int { return cmp.Compare(a.order, b.order) })
		case len(all) > 0: // its room changes
			p := all[dice.IntN(len(all))]
			p.pending = dice.IntN(p.max + 1)
		}
		checkQueue(t, &q, all)
	}
}

// checkQueue compares a queue with the polls that it holds, in their order.
func checkQueue(t *testing.T, q *pollQueue, all []*poll) {
	t.Helper()
	var got []*poll
	q.each(func(p *poll) bool {
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
		i := slices.IndexFunc(all, func(p *poll) bool { return p.room(100) > 0 && (p.key == "" || strings.Contains(p.key, typ)) })
		switch p, room := q.taker(typ, 100); {
		case i < 0 && p != nil, i >= 0 && (p != all[i] || room != p.room(100)):
			t.Fatalf("%s goes to %+v, not to the %d-th", typ, p, i)
		}
	}
}

// What f wants no more of is left out, the others keep their order.
func TestQueueLeavesLinesOut(t *testing.T) {
	var q pollQueue
	for i, typ := range []string{"a", "b", "a", "c", "b", "c"} {
		q.add(&poll{key: typ, types: []string{typ}, order: uint64(i)})
	}
	got := ""
	q.each(func(p *poll) bool {
		got += p.key
		return p.key != "b"
	})
	testkit.Equal(t, "it went through", got, "abacc")
}
