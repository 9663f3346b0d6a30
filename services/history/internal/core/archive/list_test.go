package archive

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
)

// archived is a domain's tasks in pages and in the tail, as a list sees them.
type archived struct {
	pages map[Key][]PageAt
	index *Index // it has the tail
}

// rest is what a listing has not taken yet, so many places at a time, up to stop of them.
func (a *archived) rest(l *Listing, n, messages, stop int) (all []Place) {
	tail, mark := a.index.TailOf("shop", l.Before)
	l.Add(tail)
	within := func(in Key) {
		for k := range a.pages {
			if k.Level == in.Level-1 && slices.Equal(k.Path()[:len(in.Path())], in.Path()) {
				l.AddSpan(k)
			}
		}
	}
	within(Key{Domain: "shop", Level: Levels})
	for len(all) < stop {
		some := l.Take(min(n, stop-len(all)), messages)
		if all = append(all, some...); len(some) > 0 {
			continue
		}
		span, more := l.NextSpan()
		if !more {
			return all
		}
		for {
			places, whole := a.index.Newest(span, mark, l.Before, stop)
			if whole {
				l.Add(places)
				break
			}
			from, mark, _ := a.index.Wanted(span)
			a.index.AddPages(span, from, a.pages[span], mark, true)
		}
		within(span)
	}
	return all
}

// A list has each place of a domain once, in the order of the ids, from anywhere on, and goes on where it stopped.
func TestAListHasEachPlaceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]int64{1, 100_000, 2_000_000, 7 * 86_400_000}).Draw(t, "spread")
		draw := func(partition int) ids.TaskID {
			at := time.Duration(rapid.Int64Range(0, spread).Draw(t, "ms")) * time.Millisecond
			return ids.NewTaskID(start.Add(at), partition, rapid.Uint64Range(0, 9).Draw(t, "random")<<48|rapid.Uint64Range(0, 1).Draw(t, "last"))
		}
		a, seq := archived{map[Key][]PageAt{}, NewIndex(math.MaxInt)}, uint64(0)
		var all []Entry
		for range rapid.IntRange(0, 3).Draw(t, "indexed") {
			var some []Entry
			for range rapid.IntRange(0, 400).Draw(t, "n") {
				seq += rapid.Uint64Range(0, 1).Draw(t, "next")
				some = append(some, entry(Filed{draw(1), "shop"}, seq))
			}
			all = append(all, some...)
			for _, p := range Paginate(some) {
				seq++
				a.pages[p.Key] = append(a.pages[p.Key], PageAt{seq, p.Table})
			}
		}
		a.index.Mark(seq)
		last := map[Filed]uint64{}
		for range rapid.IntRange(0, 9).Draw(t, "tail") {
			seq++
			task, other := Filed{draw(1), "shop"}, Filed{draw(1), "bank"}
			a.index.AddTail(seq, []Filed{task, other})
			last[task] = seq
		}
		for task, seq := range last {
			all = append(all, entry(task, seq))
		}
		before := draw(rapid.IntRange(0, 2).Draw(t, "partition"))
		if rapid.Bool().Draw(t, "from the end") {
			before = ids.Last
		}
		var want []Place
		for _, e := range all {
			first := firstOf(e.Fingerprint, 1)
			if bytes.Compare(first[:], before[:]) < 0 { // a place may be that of an older task
				want = append(want, e.Place)
			}
		}
		slices.SortFunc(want, func(a, b Place) int { return b.compare(a) })
		want = slices.Compact(want)
		var got []Place
		stop := rapid.IntRange(1, 100).Draw(t, "stop")
		for from := before; ; {
			l := NewListing(from, 1)
			some := a.rest(l, rapid.IntRange(1, 50).Draw(t, "places"), rapid.IntRange(1, 5).Draw(t, "messages"), stop)
			got = append(got, some...)
			if len(some) < stop {
				break
			}
			next := l.Taken()
			if bytes.Compare(next[:], from[:]) >= 0 {
				t.Fatalf("a list from %v on stops at %v", from, next)
			}
			from = next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("listed are %v, want %v", got, want)
		}
	})
}
