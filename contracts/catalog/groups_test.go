package catalog

import (
	"maps"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Groups have revisions as domains and types have, and names as types.
func TestGroupsAreKeptByRevision(t *testing.T) {
	b, ctx := newBucket(), t.Context()
	given := &yardv1.Group{Name: "acme.de", Weight: new(3.0)}
	first, err := PutGroup(ctx, b, "shop", given)
	if err != nil || first != 1 || given.Revision != 0 {
		t.Fatal(first, err, given)
	}
	if g, err := GetGroup(ctx, b, "shop", "acme.de"); err != nil || g.Name != "acme.de" || g.GetWeight() != 3 || g.Revision != first {
		t.Errorf("%v %v", g, err)
	}
	second, err := PutGroup(ctx, b, "shop", &yardv1.Group{Name: "acme.de", Revision: first})
	if err != nil || second <= first {
		t.Fatal(second, err)
	}
	if g, err := GetGroup(ctx, b, "shop", "acme.de"); err != nil || g.Weight != nil {
		t.Errorf("%v %v", g, err)
	}
	_, err = PutGroup(ctx, b, "shop", &yardv1.Group{Name: "acme.de", Weight: new(9.0), Revision: first})
	refused(t, "an old revision", err, fault.Stale, "/group/revision")
	_, err = GetGroup(ctx, b, "bank", "acme.de")
	refused(t, "a group of another domain", err, fault.NotFound, "")
	_, err = DeleteGroup(ctx, b, "shop", "acme.de", first)
	refused(t, "a delete of an old revision", err, fault.Stale, "/revision")
	if was, err := DeleteGroup(ctx, b, "shop", "acme.de", second); err != nil || was.Revision != second {
		t.Errorf("%v %v", was, err)
	}
	_, err = DeleteGroup(ctx, b, "shop", "acme.de", 0)
	refused(t, "what is deleted already", err, fault.NotFound, "")
	for _, name := range []string{"", "*", ".a", "a.", "a..b"} {
		_, err := PutGroup(ctx, b, "shop", &yardv1.Group{Name: name})
		refused(t, "group "+name, err, fault.InvalidArgument, "/group/name")
		_, err = PutGroup(ctx, b, name, &yardv1.Group{Name: "acme"})
		refused(t, "domain "+name, err, fault.InvalidArgument, "/domain")
		_, err = GetGroup(ctx, b, "shop", name)
		refused(t, "get "+name, err, fault.NotFound, "")
	}
	b.broken = errBroken
	_, err = GetGroup(ctx, b, "shop", "acme")
	refused(t, "a bucket that is away", err, fault.Unavailable, "")
}

// A domain goes with the settings of its groups, and with no other's.
func TestADomainTakesItsGroupsAlong(t *testing.T) {
	b, ctx := newBucket(), t.Context()
	for _, name := range []string{"shop", "shop2"} {
		if _, err := PutDomain(ctx, b, &yardv1.Domain{Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := PutGroup(ctx, b, name, &yardv1.Group{Name: "acme.de"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := DeleteDomain(ctx, b, "shop", 0); err != nil {
		t.Fatal(err)
	}
	if !b.entries[topology.GroupKey("shop", "acme.de")].gone || b.entries[topology.GroupKey("shop2", "acme.de")].gone {
		t.Error("the wrong groups are left")
	}
}

// Weights that are not 1 are known, and what was read before stays as it is.
func TestACatalogFollowsWeights(t *testing.T) {
	fill := func(b *bucket) {
		b.set(topology.GroupKey("shop", "old"), []byte(`{"name":"old","weight":7}`), false)
		b.set(topology.GroupKey("shop", "plain"), []byte(`{"name":"plain"}`), false)
		b.set(topology.GroupKey("shop", "broken"), []byte(`{`), false)
	}
	watching(t, fill, func(w *watched) {
		before := w.Weights("shop")
		if !maps.Equal(before, map[string]float64{"old": 7}) || w.Weights("bank") != nil {
			t.Errorf("weights %v", before)
		}
		put := func(name string, weight float64) {
			t.Helper()
			if _, err := PutGroup(t.Context(), w.bucket, "shop", &yardv1.Group{Name: name, Weight: &weight}); err != nil {
				t.Fatal(err)
			}
			w.reported(name, "shop")
		}
		put("idle", 0)
		put("a.b", 0.5)
		put("plain", 1)
		if got := w.Weights("shop"); !maps.Equal(got, map[string]float64{"old": 7, "idle": 0, "a.b": 0.5}) {
			t.Errorf("weights %v", got)
		}
		if g, ok := w.Group("shop", "a.b"); !ok || g.GetWeight() != 0.5 || g.Revision == 0 {
			t.Errorf("%v %v", g, ok)
		}
		if got := names(w.Groups("shop")); !slices.Equal(got, []string{"a.b", "idle", "old", "plain"}) || w.Counts("shop") != (Counts{Groups: 4}) || w.Counts("bank") != (Counts{}) {
			t.Errorf("groups %v, %+v", got, w.Counts("shop"))
		}
		put("old", 1)
		if _, err := DeleteGroup(t.Context(), w.bucket, "shop", "a.b", 0); err != nil {
			t.Fatal(err)
		}
		w.reported("a deleted group", "shop")
		if got := w.Weights("shop"); !maps.Equal(got, map[string]float64{"idle": 0}) || !maps.Equal(before, map[string]float64{"old": 7}) {
			t.Errorf("weights %v, read before: %v", got, before)
		}
	})
}

// The numbers that groups have in limits per group are known, and what was read before stays as it is.
func TestACatalogFollowsTheLimitsOfGroups(t *testing.T) {
	fill := func(b *bucket) {
		b.set(topology.GroupKey("shop", "old"), []byte(`{"name":"old","max_concurrency":7}`), false)
		b.set(topology.GroupKey("shop", "plain"), []byte(`{"name":"plain"}`), false)
	}
	watching(t, fill, func(w *watched) {
		before := w.GroupLimits("shop")
		if !maps.Equal(before, map[string]int{"old": 7}) || w.GroupLimits("bank") != nil {
			t.Errorf("limits %v", before)
		}
		put := func(name string, most int32) {
			t.Helper()
			if _, err := PutGroup(t.Context(), w.bucket, "shop", &yardv1.Group{Name: name, MaxConcurrency: most}); err != nil {
				t.Fatal(err)
			}
			w.reported(name, "shop")
		}
		put("acme", 3)
		put("old", 0)
		if got := w.GroupLimits("shop"); !maps.Equal(got, map[string]int{"acme": 3}) || !maps.Equal(before, map[string]int{"old": 7}) {
			t.Errorf("limits %v, read before: %v", got, before)
		}
		if _, err := DeleteGroup(t.Context(), w.bucket, "shop", "acme", 0); err != nil {
			t.Fatal(err)
		}
		w.reported("a deleted group", "shop")
		if got := w.GroupLimits("shop"); len(got) > 0 {
			t.Errorf("limits %v", got)
		}
	})
}
