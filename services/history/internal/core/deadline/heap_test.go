package deadline

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type lease struct {
	Entry
	id int
}

func TestHeapAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Heap[*lease]{Entry: func(l *lease) *Entry { return &l.Entry }}
		leases := make([]*lease, 20)
		for i := range leases {
			leases[i] = &lease{id: i}
		}
		want := map[int]int64{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			l := leases[rapid.IntRange(0, len(leases)-1).Draw(t, "which")]
			at := rapid.Int64Range(0, 50).Draw(t, "at")
			h.Set(l, at)
			if at == 0 {
				delete(want, l.id)
			} else {
				want[l.id] = at
			}
			if rapid.Bool().Draw(t, "remove") {
				h.Remove(l)
				delete(want, l.id)
			}
		}
		now := rapid.Int64Range(0, 60).Draw(t, "now")
		var due, expect []int64
		for {
			next, some := h.Next()
			l, ok := h.PopDue(now)
			if !ok {
				break
			}
			if !some || next != want[l.id] {
				t.Fatalf("next %d, popped %d", next, want[l.id])
			}
			due = append(due, want[l.id])
			delete(want, l.id)
		}
		for _, at := range want {
			if at <= now {
				expect = append(expect, at)
			}
		}
		if len(expect) > 0 || !slices.IsSorted(due) || h.Len() != len(want) {
			t.Fatalf("left behind %v, popped %v, %d left, want %d", expect, due, h.Len(), len(want))
		}
	})
}
