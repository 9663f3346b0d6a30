package line

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/history/internal/core/taskstate"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// seat is that of a task of a key, the n-th of message seq.
func seat(key string, seq uint64, n int) *Seat {
	return &Seat{Task: &taskstate.Task{
		ID: ids.TaskID{14: byte(seq), 15: byte(n)}, Domain: "shop", State: taskstate.Ready, Position: ids.NewPosition(seq, ids.LaneKeyed),
		Extra: &taskstate.Extra{Order: &taskstate.Order{Key: key, Index: uint32(n)}},
	}}
}

func full(ls *Lines) (all []string) {
	ls.Full(func(key Key, tasks int) { all = append(all, fmt.Sprint(key.Name, tasks)) })
	return all
}

// TestLinesAreFull while they have as many tasks as they may: the longest come first, and no more than a report has room for.
func TestLinesAreFull(t *testing.T) {
	ls := New(3)
	var all []*Seat
	for n := range 4 {
		all = append(all, seat("a", 1, n), seat("b", 1, n))
		ls.Enter(all[2*n])
		if n < 3 {
			ls.Enter(all[2*n+1])
		}
	}
	testkit.NoError(t, ls.Check(all[:7], false))
	testkit.Equal(t, "full", fmt.Sprint(full(ls)), "[a4 b3]")
	ls.Leave(all[3])
	testkit.Equal(t, "with room", fmt.Sprint(full(ls)), "[a4]")
	ls.Enter(all[3]) // it has its place again
	testkit.Equal(t, "full again", fmt.Sprint(full(ls)), "[a4 b3]")
	for n := range 200 {
		for i := range 3 {
			ls.Enter(seat(fmt.Sprint("c", n), 2, i))
		}
	}
	if got := full(ls); len(got) != fullMax || got[0] != "a4" {
		t.Errorf("%d keys are full, at first %s", len(got), got[0])
	}
	unbounded := New(0)
	unbounded.Enter(all[0])
	testkit.Equal(t, "without a bound", len(full(unbounded)), 0)
}

// TestALineForgetsTasksThatHaveLeft: it keeps few places for them, wherever they were.
func TestALineForgetsTasksThatHaveLeft(t *testing.T) {
	ls := New(0)
	var all []*Seat
	for n := range 100 {
		all = append(all, seat("a", 1, n))
		ls.Enter(all[n])
	}
	for _, s := range all[1:99] {
		testkit.Equal(t, "the first one", ls.Leave(s), all[0])
	}
	if n := len(ls.of[Key{"shop", "a"}].places); n > 4 {
		t.Errorf("%d places for 2 tasks", n)
	}
	testkit.Equal(t, "the last one", ls.Leave(all[0]), all[99])
	testkit.Equal(t, "none is left", ls.Leave(all[99]), nil)
	testkit.Equal(t, "lines", ls.Len(), 0)
}

// TestALineIsInOrder, however tasks come and go: the first is the one with the earliest place.
func TestALineIsInOrder(t *testing.T) {
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 0))
		ls := New(dice.IntN(4))
		var in []*Seat
		for range 60 {
			if len(in) > 0 && dice.IntN(3) == 0 {
				i := dice.IntN(len(in))
				ls.Leave(in[i])
				in = slices.Delete(in, i, i+1)
			} else if s := seat("a", 1+uint64(dice.IntN(9)), dice.IntN(9)); !slices.ContainsFunc(in, func(o *Seat) bool { return o.Task.ID == s.Task.ID }) {
				ls.Enter(s)
				in = append(in, s)
			}
			slices.SortFunc(in, func(a, b *Seat) int { return placeOf(a).compare(placeOf(b)) })
			for i, s := range in {
				if s.First() != (i == 0) {
					t.Fatalf("seed %d: task %d of %d is first: %v", seed, i, len(in), s.First())
				}
			}
			testkit.NoError(t, ls.Check(in, false))
		}
	}
}
