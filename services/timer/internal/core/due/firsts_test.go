package due

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// In any order, with repeats, and trimmed at any time: the newest are kept, each once.
func TestTheNewestAreKept(t *testing.T) {
	for seed := range uint64(100) {
		draw := rand.New(rand.NewPCG(seed, 3))
		most := 1 + draw.IntN(20)
		n := NewFirsts(most, Newest)
		var want []ids.TaskID
		for i := range draw.IntN(200) {
			id := testID(draw.IntN(60))
			n.Add(Found{Ref: Ref{ID: id, Seq: uint64(i)}})
			want = append(want, id)
			if draw.IntN(5) == 0 {
				n.Trim()
			}
			if draw.IntN(9) == 0 {
				n.Add(Found{Ref: Ref{ID: id, Seq: uint64(i)}})
			}
		}
		slices.SortFunc(want, func(a, b ids.TaskID) int { return bytes.Compare(b[:], a[:]) })
		want = slices.Compact(want)
		all, more := n.All()
		var got []ids.TaskID
		for _, s := range all {
			got = append(got, s.ID)
		}
		if !slices.Equal(got, want[:min(most, len(want))]) || more != (len(want) >= most) {
			t.Fatalf("seed %d: the newest %d of %v: %v, more %v", seed, most, want, got, more)
		}
	}
}

func TestWhatIsReadTogetherIsBoundedAndNeverEmpty(t *testing.T) {
	all := []Found{{Bytes: 10}, {Bytes: 20}, {Bytes: 30}, {Bytes: 5}}
	for _, c := range []struct{ tasks, bytes, want int }{{9, 100, 4}, {3, 100, 3}, {9, 60, 3}, {9, 59, 2}, {9, 9, 1}, {1, 0, 1}} {
		if got := FirstOf(all, c.tasks, c.bytes); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
	testkit.Equal(t, "of none", FirstOf(nil, 9, 9), 0)
}
