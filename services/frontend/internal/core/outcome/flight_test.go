package outcome

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var begun = time.UnixMilli(1_800_000_000_000)

// TestAWaitGrows for commands, and not for the outcomes of attempts.
func TestAWaitGrows(t *testing.T) {
	for grows, want := range map[bool]time.Duration{true: 4 * time.Second, false: time.Second} {
		f := New[int]([]Share{{Events: 1, Deadline: begun.Add(time.Minute)}}, grows)
		for range 5 {
			f.Send()
		}
		testkit.Equal(t, "wait", f.Wait(time.Second), want)
		testkit.Equal(t, "until the deadline", f.Until(begun.Add(59*time.Second), 2*time.Second), time.Second)
	}
}

// TestFlight: whatever is lost, late or doubled, each share ends once, with the verdicts of its own events or at its deadline; a message has no event twice, none of a share that
// is over, and none with a verdict.
func TestFlight(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		shares := make([]Share, 1+r.IntN(4))
		owner := []int{}
		for i := range shares {
			shares[i] = Share{Events: 1 + r.IntN(3), Deadline: begun.Add(time.Duration(r.IntN(20)) * time.Second)}
			for range shares[i].Events {
				owner = append(owner, i)
			}
		}
		f, ended := New[int](shares, r.IntN(2) == 0), make([]bool, len(shares))
		end := func(some []int) {
			for _, i := range some {
				if ended[i] {
					t.Fatalf("seed %d: share %d ends twice", seed, i)
				}
				ended[i] = true
			}
		}
		decided := map[int]bool{}
		for now := begun; f.Left() > 0; now = now.Add(time.Second) {
			end(f.Expired(now, false))
			places, other := f.Send()
			if !other && len(places) > 0 && now.Equal(begun) {
				t.Fatalf("seed %d: the first message has the name of another one", seed)
			}
			seen := map[int]bool{}
			for _, at := range places {
				if seen[at] || decided[at] || ended[owner[at]] {
					t.Fatalf("seed %d: event %d is sent: twice %t, decided %t, over %t", seed, at, seen[at], decided[at], ended[owner[at]])
				}
				seen[at] = true
			}
			if len(places) > 0 && r.IntN(3) > 0 {
				first := r.IntN(len(places))
				n := 1 + r.IntN(len(places)-first)
				verdicts := make([]*int, n)
				for k := range verdicts {
					at := places[first+k]
					verdicts[k], decided[at] = &at, true
				}
				if f.Take(first+1+len(places)-n, verdicts) || !f.Take(first, verdicts) {
					t.Fatalf("seed %d: verdicts are taken for events that were not sent, or not for those that were", seed)
				}
				f.Take(first, make([]*int, n)) // again
			}
			done := f.Concluded()
			end(done)
			at := 0
			for i, s := range shares {
				for k, v := range f.Verdicts(i) {
					if v != nil && *v != at+k {
						t.Fatalf("seed %d: share %d has the verdict of event %d", seed, i, *v)
					}
				}
				at += s.Events
			}
		}
	}
}
