package far_test

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

func testID(n int) ids.TaskID { return ids.NewTaskID(time.UnixMilli(1), 0, uint64(n)) }

type filed struct {
	id ids.TaskID
	at far.Place
}

// The index is a set of places of tasks, with marks.
func TestTheIndexIsASetOfPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x far.Index
		model := map[filed]bool{}
		drawn := rapid.Custom(func(t *rapid.T) filed {
			return filed{testID(rapid.IntRange(0, 20).Draw(t, "n")), far.Place{
				Seq:   rapid.SampledFrom([]uint64{2, math.MaxUint32, 1 << 32, 1<<32 + 1}).Draw(t, "seq"),
				Index: rapid.SampledFrom([]uint32{0, 1, far.IndexMost}).Draw(t, "index"),
			}}
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				f := drawn.Draw(t, "one")
				if _, ok := model[f]; ok {
					t.Skip("there")
				}
				model[f] = rapid.Bool().Draw(t, "marked")
				x.Add(f.id, f.at, model[f])
			},
			"mark": func(t *rapid.T) {
				f := drawn.Draw(t, "one")
				marked, ok := model[f]
				if got := x.Mark(f.id, f.at); got != (ok && !marked) {
					t.Fatalf("%+v was marked: %v", f, got)
				}
				if ok {
					model[f] = true
				}
			},
			"remove": func(t *rapid.T) {
				f := drawn.Draw(t, "one")
				marked, ok := model[f]
				if got := x.Remove(f.id, f.at); got != (ok && !marked) {
					t.Fatalf("%+v was removed: %v", f, got)
				}
				delete(model, f)
			},
			"": func(t *rapid.T) { agree(t, &x, model) },
		})
	})
}

func agree(t *rapid.T, x *far.Index, model map[filed]bool) {
	placesOf, waits := map[ids.TaskID][]far.Place{}, map[ids.TaskID]bool{}
	for f, marked := range model {
		placesOf[f.id] = append(placesOf[f.id], f.at)
		if !marked {
			waits[f.id] = true
		}
		if got, ok := x.Has(f.id, f.at); !ok || got != marked {
			t.Fatalf("%+v: marked %v %v, want %v", f, got, ok, marked)
		}
	}
	for n := range 21 {
		got, want := x.Places(testID(n)), placesOf[testID(n)]
		if len(got) > 0 != waits[testID(n)] {
			t.Fatalf("task %d: %v, want %v", n, got, want)
		}
		for _, at := range want {
			if len(got) > 0 && !slices.Contains(got, at) {
				t.Fatalf("task %d: %v, want %v", n, got, want)
			}
		}
	}
}

// Runs of slots around the end of a part, and gaps in them.
func TestRemovedPlacesLeaveNoGap(t *testing.T) {
	var x far.Index
	const n = 200_000
	for i := range n {
		x.Add(testID(i), far.Place{Seq: uint64(i/10 + 1), Index: uint32(i % 10)}, false)
	}
	for i := 0; i < n; i += 2 {
		if !x.Remove(testID(i), far.Place{Seq: uint64(i/10 + 1), Index: uint32(i % 10)}) {
			t.Fatalf("task %d is not found", i)
		}
	}
	for i := range n {
		if _, ok := x.Has(testID(i), far.Place{Seq: uint64(i/10 + 1), Index: uint32(i % 10)}); ok != (i%2 == 1) {
			t.Fatalf("task %d is there: %v", i, ok)
		}
	}
}

// I7: a far task takes ten bytes, at sizes between those at which the parts grow.
func TestI7_AFarTaskTakes10Bytes(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, n := range []int{1_000_000, 1_250_000} {
		before := heap()
		x := &far.Index{}
		for i := range n {
			x.Add(testID(i), far.Place{Seq: uint64(i + 1)}, false)
		}
		if took := float64(heap()-before) / float64(n); took < 8 || took > 10.2 {
			t.Errorf("%d tasks take %.1f bytes each", n, took)
		}
		runtime.KeepAlive(x)
	}
}

// BenchmarkPlaces is a lookup among ten million tasks.
func BenchmarkPlaces(b *testing.B) {
	var x far.Index
	const n = 10_000_000
	for i := range n {
		x.Add(testID(i), far.Place{Seq: uint64(i + 1)}, false)
	}
	i, candidates := 0, 0
	for b.Loop() {
		candidates += len(x.Places(testID(i * 7919 % n)))
		i++
	}
	b.ReportMetric(float64(candidates)/float64(i), "places")
}
