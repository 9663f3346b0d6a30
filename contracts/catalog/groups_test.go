package catalog

import (
	"maps"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// Weights that are not 1 are known, and what was read before stays as it is.
func TestACatalogFollowsWeights(t *testing.T) {
	fill := func(b *catalogtest.KV) {
		b.Store(Groups.Key("shop", "old"), `{"name":"old","weight":7}`)
		b.Store(Groups.Key("shop", "plain"), `{"name":"plain"}`)
		b.Store(Groups.Key("shop", "broken"), `{`)
	}
	watching(t, fill, func(w *watched) {
		before := w.Weights("shop")
		if !maps.Equal(before, map[string]float64{"old": 7}) || w.Weights("bank") != nil {
			t.Errorf("weights %v", before)
		}
		put := func(name string, weight float64) {
			t.Helper()
			checktest.NoError(t, checktest.Err(Groups.Put(t.Context(), w.bucket, "shop", &yardv1.Group{Name: name, Weight: &weight})))
			w.reported(name, "shop")
		}
		put("idle", 0)
		put("a.b", 0.5)
		put("plain", 1)
		if got := w.Weights("shop"); !maps.Equal(got, map[string]float64{"old": 7, "idle": 0, "a.b": 0.5}) {
			t.Errorf("weights %v", got)
		}
		put("old", 1)
		checktest.NoError(t, checktest.Err(Groups.Delete(t.Context(), w.bucket, "shop", "a.b", 0)))
		w.reported("a deleted group", "shop")
		if got := w.Weights("shop"); !maps.Equal(got, map[string]float64{"idle": 0}) || !maps.Equal(before, map[string]float64{"old": 7}) {
			t.Errorf("weights %v, read before: %v", got, before)
		}
	})
}

// The numbers that groups have in limits per group are known, and what was read before stays as it is.
func TestACatalogFollowsTheLimitsOfGroups(t *testing.T) {
	fill := func(b *catalogtest.KV) {
		b.Store(Groups.Key("shop", "old"), `{"name":"old","max_concurrency":7}`)
		b.Store(Groups.Key("shop", "plain"), `{"name":"plain"}`)
	}
	watching(t, fill, func(w *watched) {
		before := w.GroupLimits("shop")
		if !maps.Equal(before, map[string]int{"old": 7}) || w.GroupLimits("bank") != nil {
			t.Errorf("limits %v", before)
		}
		put := func(name string, most int32) {
			t.Helper()
			checktest.NoError(t, checktest.Err(Groups.Put(t.Context(), w.bucket, "shop", &yardv1.Group{Name: name, MaxConcurrency: most})))
			w.reported(name, "shop")
		}
		put("acme", 3)
		put("old", 0)
		if got := w.GroupLimits("shop"); !maps.Equal(got, map[string]int{"acme": 3}) || !maps.Equal(before, map[string]int{"old": 7}) {
			t.Errorf("limits %v, read before: %v", got, before)
		}
		checktest.NoError(t, checktest.Err(Groups.Delete(t.Context(), w.bucket, "shop", "acme", 0)))
		w.reported("a deleted group", "shop")
		if got := w.GroupLimits("shop"); len(got) > 0 {
			t.Errorf("limits %v", got)
		}
	})
}
