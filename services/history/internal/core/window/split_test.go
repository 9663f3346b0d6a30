package window

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSplitAgainstTwoLanes: after a split both accounts stand where they would if the domain's messages had
// been read into an account of its own from the begin; but that what is done up to either's ack level stays done.
func TestSplitAgainstTwoLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lane, rest, own := NewLane(0), NewLane(0), NewLane(0)
		of := func(domain string) *Lane {
			if domain == "flood" {
				return own
			}
			return rest
		}
		type open struct {
			seq    uint64
			domain string
		}
		var left []open
		seq, floor := uint64(0), uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(left) > 0 && rapid.Bool().Draw(t, "done") {
				i := rapid.IntRange(0, len(left)-1).Draw(t, "which")
				lane.Done(left[i].seq)
				of(left[i].domain).Done(left[i].seq)
				left = append(left[:i], left[i+1:]...)
				continue
			}
			seq += rapid.Uint64Range(1, 3).Draw(t, "gap")
			floor += rapid.Uint64Range(0, 3).Draw(t, "events")
			domain, n := rapid.SampledFrom([]string{"flood", "shop", ""}).Draw(t, "domain"), rapid.IntRange(0, 3).Draw(t, "tasks")
			lane.Read(seq, n, 10*n, floor, domain)
			of(domain).Read(seq, n, 10*n, floor, domain)
			for range n {
				left = append(left, open{seq, domain})
			}
		}
		rest.Skip(seq)
		own.Skip(seq)
		before := lane.AckLevel()
		split := lane.Split("flood")
		for what, pair := range map[string][2]*Lane{"the lane": {lane, rest}, "the domain": {split, own}} {
			got, want := pair[0], pair[1]
			tasks, bytes := got.Span()
			wantTasks, wantBytes := want.Span()
			gotFloor, gotOpen := got.Floor()
			wantFloor, wantOpen := want.Floor()
			if got.AckLevel() != want.AckLevel() || got.ReadLevel() != seq || got.Active() != want.Active() || gotOpen != wantOpen || gotFloor != wantFloor ||
				tasks != wantTasks || bytes != wantBytes || got.AckLevel() < before {
				t.Fatalf("%s: %+v, want %+v", what, got, want)
			}
		}
		for _, o := range left {
			if o.domain == "flood" {
				split.Done(o.seq)
			} else {
				lane.Done(o.seq)
			}
		}
		if lane.AckLevel() != seq || split.AckLevel() != seq || lane.Active() != 0 || split.Active() != 0 {
			t.Fatalf("all is done: %+v, %+v", lane, split)
		}
	})
}
