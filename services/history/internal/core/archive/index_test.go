package archive

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func tableOf(all ...Entry) Table {
	slices.SortFunc(all, func(a, b Entry) int { return a.compare(b.Place) })
	return appendPages(nil, Key{}, all)[0].Table
}

func readAll(x *Index, task Filed) {
	for level := range Levels {
		k := KeyOf(task, level)
		from, mark, _ := x.Wanted(k)
		x.AddPages(k, from, nil, mark, true)
	}
}

func TestIndexKnowsWhatIsWhole(t *testing.T) {
	x, task := NewIndex(1<<20), made(0, 7)
	if _, whole := x.Find(task, nil); whole {
		t.Error("whole before anything was read")
	}
	readAll(x, task)
	if got, whole := x.Find(task, nil); !whole || len(got) != 0 {
		t.Errorf("%v, whole %v, after all was read", got, whole)
	}
	x.AddTail(5, []Filed{task})
	if got, whole := x.Find(task, nil); !whole || !slices.Equal(got, []uint64{5}) {
		t.Errorf("%v, whole %v: it is in the tail", got, whole)
	}
	x.Mark(9)
	if got, whole := x.Find(task, nil); whole || len(got) != 0 || x.TailFrom() != 10 {
		t.Errorf("%v, whole %v, tail from %d: it is in a page that was not read", got, whole, x.TailFrom())
	}
	k := KeyOf(task, 1)
	from, mark, wanted := x.Wanted(k)
	if from != 1 || mark != 9 || !wanted {
		t.Errorf("wanted from %d for %d: %v", from, mark, wanted)
	}
	pages := []PageAt{{8, tableOf(entry(task, 5))}}
	x.AddPages(k, from, pages, mark, false)
	if from, _, wanted := x.Wanted(k); from != 9 || !wanted {
		t.Errorf("a part was read: wanted %v from %d", wanted, from)
	}
	readAll(x, task)
	x.AddPages(k, from, pages, mark, true) // read by another too
	if got, whole := x.Find(task, nil); !whole || !slices.Equal(got, []uint64{5}) {
		t.Errorf("%v, whole %v, after its page was read", got, whole)
	}
	if _, _, wanted := x.Wanted(k); wanted {
		t.Error("wanted, though it is whole")
	}
	x.AddTail(9, []Filed{made(0, 8)})
	if got, _ := x.Find(made(0, 8), nil); len(got) != 0 {
		t.Errorf("%v: what is at the mark is in no tail", got)
	}
	x.Mark(4) // of a reader that was slow
	if _, whole := x.Find(task, nil); !whole || x.TailFrom() != 10 {
		t.Error("an old mark was taken")
	}
}

func TestTailIsTakenOnce(t *testing.T) {
	x, task := NewIndex(1<<20), made(0, 7)
	x.AddTail(5, []Filed{task})
	x.AddTail(4, []Filed{task})
	x.AddTail(5, nil)
	x.AddTail(6, nil)
	if got, _ := x.Find(task, nil); !slices.Equal(got, []uint64{5}) || x.TailFrom() != 7 {
		t.Errorf("%v, tail from %d", got, x.TailFrom())
	}
	x.Mark(5)
	x.AddTail(5, []Filed{task})
	if got, _ := x.Find(task, nil); len(got) != 0 || x.TailFrom() != 7 {
		t.Errorf("%v is left of the tail, which goes on from %d", got, x.TailFrom())
	}
}

func TestIndexForgetsWhatIsNotUsed(t *testing.T) {
	const spans = 20
	one := spanBytes + tableBytes + fingerprintBytes + offsetBytes
	x := NewIndex(spans * one)
	at := func(i int) Filed { return made(time.Duration(i)*10*time.Second, 7) }
	for i := range 3 * spans {
		x.AddPages(KeyOf(at(i), 0), 1, []PageAt{{8, tableOf(entry(at(i), uint64(i)))}}, 0, true)
		x.Find(at(0), nil) // the first is in use
	}
	if x.bytes != spans*one || len(x.spans) != x.used.Len() {
		t.Errorf("%d bytes in %d spans, want %d", x.bytes, len(x.spans), spans*one)
	}
	for i, want := range map[int]bool{0: true, 1: false, 3*spans - 1: true} {
		if got, _ := x.Find(at(i), nil); (len(got) > 0) != want {
			t.Errorf("span %d is known: %v", i, got)
		}
	}
	huge := make([]Entry, 1000)
	for i := range huge {
		huge[i] = entry(at(1000), 1)
	}
	x.AddPages(KeyOf(at(1000), 0), 1, []PageAt{{9, tableOf(huge...)}}, 0, true)
	if got, _ := x.Find(at(1000), nil); len(got) != 1000 || len(x.spans) != 1 {
		t.Errorf("a span larger than the index: %d places, %d spans", len(got), len(x.spans))
	}
}

// A reader that reads in any order, in parts, and forgets, agrees with the archive whenever it says that what it knows
// is whole.
func TestIndexAgreesWithTheArchive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type stored struct {
			key   Key // of a page
			table Table
			tasks []Filed
			mark  bool
		}
		archive, open := []stored(nil), Tail{} // the sequence is the place + 1
		seq := func() uint64 { return uint64(len(archive)) }
		known := map[Filed]uint64{}
		x := NewIndex(rapid.SampledFrom([]int{600, 2000, math.MaxInt}).Draw(t, "bytes"))
		tailRead := uint64(0)
		draw := func() Filed {
			at := time.Duration(rapid.IntRange(0, 3).Draw(t, "span")) * 7 * time.Minute
			return Filed{made(at, rapid.Uint64Range(1, 20).Draw(t, "random")).ID, rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "domain")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"file": func(*rapid.T) {
				task := draw()
				archive = append(archive, stored{tasks: []Filed{task}})
				known[task] = seq()
				open.Add(seq(), []Filed{task}, 1, 1)
			},
			"index": func(*rapid.T) {
				for _, p := range Paginate(open.Entries) {
					archive = append(archive, stored{key: p.Key, table: p.Table})
				}
				archive = append(archive, stored{mark: true})
				open = Tail{}
			},
			"read the mark": func(*rapid.T) {
				for i, s := range slices.Backward(archive) {
					if s.mark {
						x.Mark(uint64(i + 1))
						return
					}
				}
			},
			"read the tail": func(t *rapid.T) {
				to := min(seq(), x.TailFrom()+rapid.Uint64Range(0, 5).Draw(t, "n"))
				for i := x.TailFrom(); i <= to; i++ {
					x.AddTail(i, archive[i-1].tasks)
				}
				tailRead = x.TailFrom() - 1
			},
			"read a span": func(t *rapid.T) {
				k := KeyOf(draw(), rapid.IntRange(0, Levels-1).Draw(t, "level"))
				from, mark, _ := x.Wanted(k)
				var pages []PageAt
				for i := from; i <= seq(); i++ {
					if s := archive[i-1]; s.key == k && len(s.table.Offsets) > 0 {
						pages = append(pages, PageAt{i, s.table})
					}
				}
				n := rapid.IntRange(0, len(pages)).Draw(t, "n")
				x.AddPages(k, from, pages[:n], mark, n == len(pages))
			},
			"": func(t *rapid.T) {
				for task, at := range known {
					got, whole := x.Find(task, nil)
					if whole && at <= max(tailRead, x.mark) && !slices.Contains(got, at) {
						t.Fatalf("%v is in message %d, found is %v", task, at, got)
					}
				}
			},
		})
	})
}
