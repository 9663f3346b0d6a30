package drained

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var start = time.Unix(1_700_000_000, 0)

func key(domain string, n int) Key { return Key{domain, fmt.Sprint("worker-", n)} }

// TestAVoiceSaysItForLongerThanAPollWaits: at once, often, then less often, and then no more; again if it is drained again.
func TestAVoiceSaysItForLongerThanAPollWaits(t *testing.T) {
	var v Voice
	said := func(from, to time.Duration) (times []time.Duration) {
		for at := from; at < to; at += 25 * time.Millisecond {
			if all := v.Say(start.Add(at)); len(all) > 0 {
				times = append(times, at)
			}
		}
		return times
	}
	testkit.Equal(t, "it speaks of no one", len(said(0, time.Second)), 0)
	all := map[Key]int64{key("shop", 1): 5}
	v.Take(all, start.Add(time.Second))
	times := said(time.Second, 100*time.Second)
	if times[0] != time.Second || times[1] != 1500*time.Millisecond {
		t.Errorf("said at %v", times[:2])
	}
	if last, most := times[len(times)-1], time.Second+SaidFor; last < most-sayRarely || last >= most || len(times) > 25 {
		t.Errorf("%d times, the last at %v", len(times), last)
	}
	v.Take(all, start.Add(100*time.Second)) // nothing new
	testkit.Equal(t, "said again", len(said(100*time.Second, 110*time.Second)), 0)
	all[key("shop", 2)] = 6
	v.Take(all, start.Add(110*time.Second))
	testkit.Equal(t, "said", v.Say(start.Add(110*time.Second)), []Key{key("shop", 2)})
	v.Take(map[Key]int64{key("shop", 1): 7}, start.Add(111*time.Second))
	testkit.Equal(t, "said", v.Say(start.Add(111*time.Second)), []Key{key("shop", 1)})
	v.Take(nil, start.Add(112*time.Second))
	testkit.Equal(t, "said of one that was resumed", len(said(112*time.Second, 120*time.Second)), 0)
}

// TestAWorkerIsGoneOnceItWasMissedForLong, by all that had listened for long enough; one look that finds it begins again.
func TestAWorkerIsGoneOnceItWasMissedForLong(t *testing.T) {
	one := key("shop", 1)
	all := map[Key]int64{one: 1}
	look := func(w *Watch, at time.Duration, heard bool, known time.Duration) bool {
		domain, ids := w.Next(all)
		if domain != "shop" || !slices.Equal(ids, []string{one.ID}) {
			t.Fatalf("next %s %v", domain, ids)
		}
		return len(w.Looked(domain, ids, map[string]bool{one.ID: heard}, known, start.Add(at))) == 1
	}
	w := &Watch{}
	for at := time.Duration(0); at < SilentAfter; at += time.Minute {
		if look(w, at, false, KnownAfter) {
			t.Fatalf("gone after %v", at)
		}
	}
	if look(w, SilentAfter, false, KnownAfter-1) || look(w, SilentAfter, true, KnownAfter) || look(w, SilentAfter, false, KnownAfter) || look(w, 2*SilentAfter-1, false, KnownAfter) {
		t.Error("gone too early")
	}
	if !look(w, 2*SilentAfter, false, KnownAfter) {
		t.Error("it is not gone")
	}
	w.Next(nil) // it was resumed, or forgotten
	if look(w, 3*SilentAfter, false, KnownAfter) {
		t.Error("it is gone at once")
	}
}

// TestI14_DomainsTakeTurns, in whatever order they come and go.
func TestI14_DomainsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := map[Key]int64{}
		n := rapid.IntRange(1, 5).Draw(t, "domains")
		for d := range n {
			for i := range rapid.IntRange(1, 3).Draw(t, "workers") {
				all[key(fmt.Sprint("d", d), i)] = 1
			}
		}
		w := &Watch{last: rapid.SampledFrom([]string{"", "d1", "d9", "x"}).Draw(t, "last")}
		seen := map[string]int{}
		total := 0
		for range n {
			domain, ids := w.Next(all)
			seen[domain]++
			total += len(ids)
		}
		if len(seen) != n || total != len(all) {
			t.Fatalf("%v, %d of %d", seen, total, len(all))
		}
	})
	if domain, ids := (&Watch{last: "x"}).Next(nil); domain != "" || len(ids) != 0 {
		t.Errorf("%s %v", domain, ids)
	}
}
