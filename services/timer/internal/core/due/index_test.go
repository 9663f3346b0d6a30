package due

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/yardmaster-io/yardmaster/contracts/ids"
	"github.com/yardmaster-io/yardmaster/services/timer/internal/core/far"
)

func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := slab{}
		x := index{of: &entries}
		model := map[ids.TaskID]handle{}
		// Few ids of few first bytes, so that runs form and gaps are closed.
		id := rapid.Custom(func(t *rapid.T) ids.TaskID { return testID(rapid.IntRange(0, 60).Draw(t, "n")) })
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id := id.Draw(t, "id")
				if _, ok := model[id]; ok {
					t.Skip("there")
				}
				h := entries.add(entry{id: id})
				x.add(h)
				model[id] = h
			},
			"remove": func(t *rapid.T) {
				id := id.Draw(t, "id")
				h, ok := model[id]
				if !ok {
					t.Skip("not there")
				}
				x.remove(h)
				entries.remove(h)
				delete(model, id)
			},
			"": func(t *rapid.T) {
				if x.size != len(model) {
					t.Fatalf("size %d of %d", x.size, len(model))
				}
				for i := range x.parts {
					filled := 0
					for _, h := range x.parts[i].slots {
						if h != 0 {
							filled++
						}
					}
					if filled != x.parts[i].used {
						t.Fatalf("part %d has %d handles of %d entries", i, filled, x.parts[i].used)
					}
				}
				for n := range 61 {
					want, there := model[testID(n)]
					if got, ok := x.find(testID(n)); ok != there || got != want {
						t.Fatalf("find %d: %v %v, want %v %v", n, got, ok, want, there)
					}
				}
			},
		})
	})
}

// Each table holds about as many: one that held all would stop firing while it grows.
func TestIndexSpreads(t *testing.T) {
	entries := slab{}
	x := index{of: &entries}
	for n := range 16 * indexParts {
		x.add(entries.add(entry{id: testID(n)}))
	}
	for i := range x.parts {
		if used := x.parts[i].used; used > 64 {
			t.Errorf("table %d holds %d, 16 would be even", i, used)
		}
	}
}

// One part alone, where all runs collide.
func TestIndexClosesGaps(t *testing.T) {
	entries := slab{}
	x := index{of: &entries}
	var all []handle
	for n := 0; len(all) < 200; n++ {
		if id := testID(n); far.Hash(id)>>(64-indexPartBits) == 0 {
			h := entries.add(entry{id: id})
			x.add(h)
			all = append(all, h)
			if n := len(all); n <= 7 && len(x.parts[0].slots) != map[bool]int{true: 8, false: 16}[n <= 6] {
				t.Errorf("%d slots for %d: full is three quarters", len(x.parts[0].slots), n)
			}
		}
	}
	for i := range all {
		x.remove(all[(i*7)%len(all)])
		for j := i + 1; j < len(all); j++ {
			h := all[(j*7)%len(all)]
			if got, ok := x.find(entries.at(h).id); !ok || got != h {
				t.Fatalf("after %d removals %d is not found", i+1, h)
			}
		}
	}
	if x.size != 0 || x.parts[0].slots != nil {
		t.Errorf("%d left", x.size)
	}
}
