package archive

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/shared/testkit"
)

var start = time.UnixMilli(1_800_000_000_000).Truncate(8 * time.Hour)

func id(at time.Duration, random uint64) ids.TaskID { return ids.NewTaskID(start.Add(at), 1, random) }

// Every entry is found, in a page of one of its spans, with its message among the places.
func TestPaginate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 400).Draw(t, "n")
		spread := rapid.SampledFrom([]int64{1, 100_000, 2_000_000, 7 * 86_400_000}).Draw(t, "spread")
		var entries []Entry
		for range n {
			entries = append(entries, Entry{
				ID:         id(time.Duration(rapid.Int64Range(0, spread).Draw(t, "ms"))*time.Millisecond, rapid.Uint64Range(0, 1<<33).Draw(t, "random")),
				Seq:        rapid.OneOf(rapid.Uint64Range(1000, 1100), rapid.Uint64Range(1000, 1000+3*math.MaxUint16)).Draw(t, "seq"),
				RetentionS: rapid.Int64Range(1, 9).Draw(t, "retention"),
			})
		}
		pages := Paginate(slices.Clone(entries))
		stored := 0
		for _, p := range pages {
			if !p.WellFormed() || len(p.Offsets) == 0 {
				t.Fatalf("page %+v", p)
			}
			stored += len(p.Offsets) / offsetBytes
		}
		testkit.MustEqual(t, "entries in pages", stored, n)
		for _, e := range entries {
			found := 0
			for _, p := range pages {
				if KeyOf(e.ID, p.Level) == p.Key && slices.Contains(p.Find(Fingerprint(e.ID), nil), e.Seq) && p.RetentionS >= e.RetentionS {
					found++
				}
			}
			if found == 0 {
				t.Fatalf("%v is in no page", e)
			}
		}
	})
}

func entriesAt(n int, at func(int) time.Duration) (all []Entry) {
	for i := range n {
		all = append(all, Entry{ID: id(at(i), uint64(i)), Seq: 10 + uint64(i), RetentionS: 60})
	}
	return all
}

// A span gets a page from 64 tasks on, the shortest first.
func TestPaginateTakesTheShortestSpan(t *testing.T) {
	together := func(int) time.Duration { return time.Second }
	perMinute := func(i int) time.Duration { return time.Duration(i) * 5 * time.Second }
	perHour := func(i int) time.Duration { return time.Duration(i) * time.Minute }
	for _, c := range []struct {
		what  string
		n     int
		at    func(int) time.Duration
		level int
		pages int
	}{
		{"many of ten seconds", 64, together, 0, 1},
		{"too few of ten seconds", 63, together, 2, 1},
		{"many of ten minutes", 64, perMinute, 1, 1},
		{"over hours", 400, perHour, 2, 1},
		{"more than a page holds", 8193, together, 0, 2},
		{"none", 0, together, 0, 0},
	} {
		pages := Paginate(entriesAt(c.n, c.at))
		if len(pages) != c.pages {
			t.Errorf("%s: %d pages, want %d", c.what, len(pages), c.pages)
		}
		for _, p := range pages {
			if p.Level != c.level || p.Span != start.UnixMilli()/spanMS[c.level] {
				t.Errorf("%s: a page of %v", c.what, p.Key)
			}
		}
	}
}

func TestPagesKeepMessagesWithinAnOffset(t *testing.T) {
	entries := entriesAt(64, func(int) time.Duration { return 0 })
	entries[63].Seq = entries[0].Seq + math.MaxUint16
	testkit.Equal(t, "pages for the widest page", len(Paginate(slices.Clone(entries))), 1)
	entries[63].Seq++
	pages := Paginate(entries)
	if len(pages) != 2 || pages[1].Base != 10+math.MaxUint16+1 {
		t.Errorf("%d pages for one that is too wide, want 2", len(pages))
	}
}

func TestFind(t *testing.T) {
	table := Table{Base: 100, Fingerprints: []byte{0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0, 9}, Offsets: []byte{0, 1, 0, 2, 1, 0, 0, 4}}
	for fingerprint, want := range map[uint32][]uint64{
		0: nil, 1: {101}, 4: nil, 5: {102, 356}, 6: nil, 9: {104}, math.MaxUint32: nil,
	} {
		if got := table.Find(fingerprint, nil); !slices.Equal(got, want) {
			t.Errorf("%d is at %v, want %v", fingerprint, got, want)
		}
	}
	for _, broken := range []Table{
		{Fingerprints: []byte{0, 0, 0, 1}, Offsets: []byte{0}},
		{Fingerprints: []byte{0, 0, 0, 1}, Offsets: []byte{0, 1, 0, 2}},
		{Fingerprints: []byte{0, 0, 0, 1, 0, 0}, Offsets: []byte{0, 1, 0}},
	} {
		if got := broken.Find(1, nil); got != nil || broken.WellFormed() {
			t.Errorf("a broken table has %v", got)
		}
	}
}

func TestTailIsDue(t *testing.T) {
	var few, fat Tail
	for range tailMessages - 1 {
		few.Add(1, nil, 1, 1)
	}
	fat.Add(1, []ids.TaskID{id(0, 1), id(0, 2)}, 7, tailBytes-1)
	if few.Due() || fat.Due() {
		t.Error("due too early")
	}
	few.Add(2, nil, 1, 1)
	fat.Add(2, nil, 1, 1)
	if !few.Due() || !fat.Due() {
		t.Error("not due")
	}
	if want := (Entry{id(0, 2), 1, 7}); len(fat.Entries) != 2 || fat.Entries[1] != want {
		t.Errorf("entries %v", fat.Entries)
	}
}
