package archive

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var start = time.UnixMilli(1_800_000_000_000).Truncate(8 * time.Hour)

// id is a task whose first and last random bits differ from those of another number.
func made(at time.Duration, random uint64) Filed {
	return Filed{ids.NewTaskID(start.Add(at), 1, random<<48|random), "shop"}
}

func entry(t Filed, seq uint64) Entry { return Entry{Place{Fingerprint(t.ID), seq}, 60, t.Domain} }

// Every entry is in a page of its domain, of its retention and of one of its spans, with its message among the places. A span with a page
// is in a longer one that has a page.
func TestPaginate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 400).Draw(t, "n")
		spread := rapid.SampledFrom([]int64{1, 100_000, 2_000_000, 7 * 86_400_000}).Draw(t, "spread")
		var entries []Entry
		for range n {
			at := time.Duration(rapid.Int64Range(0, spread).Draw(t, "ms")) * time.Millisecond
			entries = append(entries, Entry{
				Place{
					Fingerprint(made(at, rapid.Uint64Range(0, 1<<33).Draw(t, "random")).ID),
					rapid.OneOf(rapid.Uint64Range(1000, 1100), rapid.Uint64Range(1000, 1000+3*math.MaxUint16)).Draw(t, "seq"),
				},
				rapid.Int64Range(1, 9).Draw(t, "retention"), rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "domain"),
			})
		}
		pages := Paginate(slices.Clone(entries))
		stored := 0
		for _, p := range pages {
			if !p.WellFormed() || len(p.Offsets) == 0 && p.Level == 0 {
				t.Fatalf("page %+v", p)
			}
			stored += len(p.Offsets) / offsetBytes
			parent := func(o Page) bool {
				return o.Domain == p.Domain && o.Level == p.Level+1 && slices.Equal(o.Path(), p.Path()[:len(o.Path())]) && o.RetentionS >= p.RetentionS
			}
			if p.Level < Levels-1 && !slices.ContainsFunc(pages, parent) {
				t.Fatalf("no page contains %+v", p.Key)
			}
		}
		testkit.MustEqual(t, "entries in pages", stored, n)
		for _, e := range entries {
			if !slices.ContainsFunc(pages, func(p Page) bool {
				return p.Domain == e.Domain && int64(e.Fingerprint>>16)/spanMS[p.Level] == p.Span && slices.Contains(p.Find(e.Fingerprint, nil), e.Seq) && p.RetentionS == e.RetentionS
			}) {
				t.Fatalf("%v is in no page", e)
			}
		}
	})
}

func entriesAt(n int, at func(int) time.Duration) (all []Entry) {
	for i := range n {
		all = append(all, entry(made(at(i), uint64(i)), 10+uint64(i)))
	}
	return all
}

// A span of ten seconds gets a page from 256 tasks on, one of ten minutes from 64 on, the shortest first.
func TestPaginateTakesTheShortestSpan(t *testing.T) {
	together := func(int) time.Duration { return time.Second }
	perMinute := func(i int) time.Duration { return time.Duration(i) * 5 * time.Second }
	perHour := func(i int) time.Duration { return time.Duration(i) * time.Minute }
	for _, c := range []struct {
		what string
		n    int
		at   func(int) time.Duration
		want string // the levels of the pages; an empty page ends with a 0
	}{
		{"many of ten seconds", 256, together, "[0 10 20]"},
		{"too few of ten seconds", 255, together, "[1 20]"},
		{"many of ten minutes", 64, perMinute, "[1 20]"},
		{"too few of ten minutes", 63, perMinute, "[2]"},
		{"over hours", 400, perHour, "[2]"},
		{"more than a page holds", 8193, together, "[0 0 10 20]"},
		{"none", 0, together, "[]"},
	} {
		levels := []int{}
		for _, p := range Paginate(entriesAt(c.n, c.at)) {
			if len(p.Offsets) == 0 {
				p.Level *= 10
			}
			if levels = append(levels, p.Level); p.Level < Levels && p.Span != start.UnixMilli()/spanMS[p.Level] {
				t.Errorf("%s: a page of %v", c.what, p.Key)
			}
		}
		testkit.Equal(t, c.what, fmt.Sprint(levels), c.want)
	}
}

func TestPagesKeepMessagesWithinAnOffset(t *testing.T) {
	entries := entriesAt(2, func(int) time.Duration { return 0 })
	entries[1].Seq = entries[0].Seq + math.MaxUint16
	testkit.Equal(t, "pages for the widest page", len(Paginate(slices.Clone(entries))), 1)
	entries[1].Seq++
	pages := Paginate(entries)
	if len(pages) != 2 || pages[1].Base != 10+math.MaxUint16+1 {
		t.Errorf("%d pages for one that is too wide, want 2", len(pages))
	}
}

// The index follows when one of the bounds is reached.
func TestTail(t *testing.T) {
	tail := new(Tail)
	tail.Add(1, []Filed{made(0, 1), made(0, 2)}, 7, 100)
	tail.Add(2, nil, 1, 1)
	if want := (Entry{Place{Fingerprint(made(0, 2).ID), 1}, 7, "shop"}); len(tail.Entries) != 2 || tail.Entries[1] != want {
		t.Errorf("tail %+v", tail)
	}
	tail.Add(3, []Filed{made(9*time.Hour, 3), {made(0, 4).ID, "bank"}}, 1, 0)
	for bounds, want := range map[Bounds]bool{{4, 102, 4}: false, {3, 102, 4}: true, {4, 101, 4}: true, {4, 102, 3}: true} {
		testkit.Equal(t, fmt.Sprint(bounds), tail.Exceeds(bounds), want)
	}
}
