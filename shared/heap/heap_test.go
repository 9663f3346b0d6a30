package heap

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

type item struct{ at, place int }

// The heap does as a list does that is sorted, whatever comes, changes and goes.
func TestHeapAgainstSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Heap[*item]{Less: func(a, b *item) bool { return a.at < b.at }, Place: func(v *item) *int { return &v.place }}
		var in []*item
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			at := rapid.IntRange(0, 50).Draw(t, "at")
			i := rapid.IntRange(0, max(0, len(in)-1)).Draw(t, "which")
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what < 3 || len(in) == 0:
				in = append(in, &item{at: at})
				h.Push(in[len(in)-1])
			case what == 3:
				in[i].at = at
				h.Fix(in[i])
			case what == 4:
				gone := in[i]
				h.Remove(gone)
				h.Remove(gone) // it is not in any more
				if in = slices.Delete(in, i, i+1); gone.place != 0 {
					t.Fatalf("what is out has place %d", gone.place)
				}
			default:
				h.First().at += at
				h.FixFirst()
			}
			for at, v := range h.All() {
				if v.place != at+1 {
					t.Fatalf("the value at %d has place %d", at, v.place)
				}
			}
		}
		slices.SortFunc(in, func(a, b *item) int { return cmp.Compare(a.at, b.at) })
		for n, want := range in {
			if h.Len() != len(in)-n || h.First().at != want.at || h.Pop().at != want.at {
				t.Fatalf("value %d of %d is not %d", n, len(in), want.at)
			}
		}
		if h.Len() > 0 {
			t.Fatalf("%d are left", h.Len())
		}
	})
}

// A heap of which only the front is taken needs no places.
func TestHeapWithoutPlaces(t *testing.T) {
	h := Heap[int]{Less: func(a, b int) bool { return a > b }}
	for _, v := range []int{3, 1, 2} {
		h.Push(v)
	}
	testkit.Equal(t, "result", []int{h.Pop(), h.Pop(), h.Pop()}, []int{3, 2, 1})
}
