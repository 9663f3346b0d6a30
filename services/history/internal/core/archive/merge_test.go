package archive

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

// Runs find what the pages that they were merged from find, and stay few.
func TestRunsFindWhatTheirPagesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reach := rapid.SampledFrom([]uint64{3, 1000, 2 * math.MaxUint16}).Draw(t, "reach")
		var pages []Table
		var runs []run
		for range rapid.IntRange(0, 40).Draw(t, "pages") {
			base := rapid.Uint64Range(1, 1+reach).Draw(t, "base")
			all := make([]Entry, rapid.IntRange(1, 9).Draw(t, "entries"))
			for i := range all {
				seq := base + rapid.SampledFrom([]uint64{0, 1, 2, math.MaxUint16}).Draw(t, "offset")
				all[i] = entry(made(0, rapid.Uint64Range(0, 5).Draw(t, "random")), seq)
			}
			all[0].Seq = base
			pages = append(pages, tableOf(all...))
			runs = appendRun(runs, pages[len(pages)-1])
		}
		for random := range uint64(7) {
			var got, want []uint64
			for _, r := range runs {
				part := r.Find(Fingerprint(made(0, random).ID), nil)
				if !slices.IsSorted(part) {
					t.Fatalf("the places of %d in a run are %v", random, part)
				}
				got = append(got, part...)
			}
			for _, p := range pages {
				want = p.Find(Fingerprint(made(0, random).ID), want)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%d is at %v, want %v", random, got, want)
			}
		}
		for i := range runs[:max(len(runs), 1)-1] {
			if runs[i].entries() < 2*runs[i+1].entries() && runs[i].reach(runs[i+1]) <= math.MaxUint16 {
				t.Fatalf("runs of %d and %d entries are apart", runs[i].entries(), runs[i+1].entries())
			}
		}
	})
}

// What is too far apart for an offset stays apart, and a broken page spoils no other.
func TestWhatCannotBeMergedStaysApart(t *testing.T) {
	at := func(seq uint64) Table { return tableOf(entry(made(0, 1), seq)) }
	broken := Table{Base: 11, Fingerprints: make([]byte, 8), Offsets: []byte{0}}
	for what, c := range map[string]struct {
		tables []Table
		runs   int
	}{
		"at the reach":    {[]Table{at(10), at(10 + math.MaxUint16)}, 1},
		"past the reach":  {[]Table{at(10), at(11 + math.MaxUint16)}, 2},
		"backwards":       {[]Table{at(10 + math.MaxUint16), at(10)}, 1},
		"far backwards":   {[]Table{at(11 + math.MaxUint16), at(10)}, 2},
		"a broken one":    {[]Table{at(10), broken, at(12)}, 1},
		"an empty one":    {[]Table{at(10), {Base: 10}}, 1},
		"twice as long":   {[]Table{tableOf(entry(made(0, 1), 1), entry(made(0, 2), 1)), at(2)}, 2},
		"of equal length": {[]Table{at(10), at(11)}, 1},
	} {
		var runs []run
		for _, table := range c.tables {
			runs = appendRun(runs, table)
		}
		testkit.Equal(t, what, len(runs), c.runs)
	}
}

func TestFindTellsTheLatestFirst(t *testing.T) {
	x, task := NewIndex(1<<20), made(0, 7)
	var pages []PageAt
	for seq := uint64(1); seq <= 5; seq++ {
		pages = append(pages, PageAt{10 + seq, tableOf(entry(task, seq))})
	}
	x.AddPages(KeyOf(task, 1), 1, pages, 0, true)
	x.AddTail(20, []Filed{task})
	if got, _ := x.Find(task, nil); !slices.Equal(got, []uint64{20, 5, 4, 3, 2, 1}) {
		t.Error(got)
	}
}

// BenchmarkFind looks tasks up in a span with many pages of 2,600 tasks each, which is what 1 MiB of the archive holds.
func BenchmarkFind(b *testing.B) {
	for _, count := range []int{1, 10, 50, 200} {
		b.Run(fmt.Sprintf("pages=%d", count), func(b *testing.B) {
			const each = 2600
			x := NewIndex(32 << 20)
			var all []Filed
			for n := range count {
				entries := make([]Entry, each)
				for i := range entries {
					all = append(all, made(0, rand.Uint64()))
					entries[i] = entry(all[len(all)-1], uint64(n*70+i*64/each))
				}
				x.AddPages(KeyOf(all[0], 0), 1, []PageAt{{uint64(n*70 + 65), tableOf(entries...)}}, 0, true)
			}
			var room [8]uint64
			i := 0
			for b.Loop() {
				if got, _ := x.Find(all[i%len(all)], room[:0]); len(got) == 0 {
					b.Fatal("a task is not found")
				}
				i += 7919
			}
		})
	}
}
