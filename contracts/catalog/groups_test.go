package catalog

import (
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/catalog/catalogtest"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/internal/checktest"
)

// A group has the weight and the number that are set, as soon as they are.
func TestACatalogFollowsGroups(t *testing.T) {
	fill := func(b *catalogtest.KV) {
		b.Store(Groups.Key("shop", "old"), `{"name":"old","weight":7,"max_concurrency":7}`)
		b.Store(Groups.Key("shop", "plain"), `{"name":"plain"}`)
		b.Store(Groups.Key("shop", "broken"), `{`)
	}
	watching(t, fill, func(w *watched) {
		is := func(domain, group string, weight float64, most int) {
			t.Helper()
			checktest.Equal(t, "weight of "+group, w.GroupWeight(domain, group), weight)
			checktest.Equal(t, "limit of "+group, w.GroupMax(domain, group), most)
		}
		put := func(g *yardv1.Group) {
			t.Helper()
			checktest.NoError(t, checktest.Err(Groups.Put(t.Context(), w.bucket, "shop", g)))
			w.reported(g.Name, "shop")
		}
		is("shop", "old", 7, 7)
		is("bank", "old", 1, 0)
		is("shop", "plain", 1, 0)
		is("shop", "broken", 1, 0)
		put(&yardv1.Group{Name: "idle", Weight: new(0.0)})
		put(&yardv1.Group{Name: "a.b", Weight: new(0.5), MaxConcurrency: 3})
		put(&yardv1.Group{Name: "old", Weight: new(1.0)})
		is("shop", "idle", 0, 0)
		is("shop", "a.b", 0.5, 3)
		is("shop", "old", 1, 0)
		checktest.NoError(t, checktest.Err(Groups.Delete(t.Context(), w.bucket, "shop", "a.b", 0)))
		w.reported("a deleted group", "shop")
		is("shop", "a.b", 1, 0)
	})
}
