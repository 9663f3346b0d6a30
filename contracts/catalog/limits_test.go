package catalog

import (
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Limits have revisions as domains and types have.
func TestLimitsAreKeptByRevision(t *testing.T) {
	b, ctx := newBucket(), t.Context()
	given := &yardv1.Limit{Name: "acme", MaxConcurrency: 3}
	first, err := PutLimit(ctx, b, "shop", given)
	if err != nil || first != 1 || given.Revision != 0 {
		t.Fatal(first, err, given)
	}
	if l, err := GetLimit(ctx, b, "shop", "acme"); err != nil || l.Name != "acme" || l.MaxConcurrency != 3 || l.Revision != first {
		t.Errorf("%v %v", l, err)
	}
	second, err := PutLimit(ctx, b, "shop", &yardv1.Limit{Name: "acme", MaxConcurrency: 2, Revision: first})
	if err != nil || second <= first {
		t.Fatal(second, err)
	}
	_, err = PutLimit(ctx, b, "shop", &yardv1.Limit{Name: "acme", MaxConcurrency: 9, Revision: first})
	refused(t, "an old revision", err, fault.Stale, "/limit/revision")
	_, err = GetLimit(ctx, b, "bank", "acme")
	refused(t, "a limit of another domain", err, fault.NotFound, "")
	_, err = DeleteLimit(ctx, b, "shop", "acme", first)
	refused(t, "a delete of an old revision", err, fault.Stale, "/revision")
	if was, err := DeleteLimit(ctx, b, "shop", "acme", second); err != nil || was.MaxConcurrency != 2 || was.Revision != second {
		t.Errorf("%v %v", was, err)
	}
	_, err = DeleteLimit(ctx, b, "shop", "acme", 0)
	refused(t, "what is deleted already", err, fault.NotFound, "")
	for _, name := range []string{"", "a.b", "*"} {
		_, err := PutLimit(ctx, b, "shop", &yardv1.Limit{Name: name})
		refused(t, "limit "+name, err, fault.InvalidArgument, "/limit/name")
		_, err = PutLimit(ctx, b, name, &yardv1.Limit{Name: "acme"})
		refused(t, "domain "+name, err, fault.InvalidArgument, "/domain")
		_, err = GetLimit(ctx, b, "shop", name)
		refused(t, "get "+name, err, fault.NotFound, "")
	}
	b.broken = errBroken
	_, err = GetLimit(ctx, b, "shop", "acme")
	refused(t, "a bucket that is away", err, fault.Unavailable, "")
}

// A domain goes with its limits and tasklists, and with no other's.
func TestADomainTakesItsLimitsAlong(t *testing.T) {
	b, ctx := newBucket(), t.Context()
	for _, name := range []string{"shop", "shop2"} {
		if _, err := PutDomain(ctx, b, &yardv1.Domain{Name: name}); err != nil {
			t.Fatal(err)
		}
		if _, err := PutLimit(ctx, b, name, &yardv1.Limit{Name: "acme", MaxConcurrency: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := PutTasklist(ctx, b, name, &yardv1.Tasklist{Name: "mail"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := DeleteDomain(ctx, b, "shop", 0); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{
		topology.LimitKey("shop", "acme"): false, topology.TasklistSettingsKey("shop", "mail"): false,
		topology.LimitKey("shop2", "acme"): true, topology.TasklistSettingsKey("shop2", "mail"): true,
	} {
		if there := !b.entries[key].gone; there != want {
			t.Errorf("%s is there: %v", key, there)
		}
	}
}

// A limit that comes, changes and goes is reported as a change of its domain. What is no limit is not kept as one.
func TestACatalogFollowsLimits(t *testing.T) {
	fill := func(b *bucket) {
		b.set(topology.LimitKey("shop", "old"), []byte(`{"name":"old","max_concurrency":7}`), false)
		b.set(topology.LimitKey("shop", "broken"), []byte(`{`), false)
		b.set("limit.shop.a.b", []byte(`{"name":"a.b"}`), false)
	}
	watching(t, fill, func(w *watched) {
		if l, ok := w.Limit("shop", "old"); !ok || l.MaxConcurrency != 7 || l.Revision != 1 {
			t.Errorf("%v %v", l, ok)
		}
		if got := names(w.Limits("shop")); !slices.Equal(got, []string{"old"}) {
			t.Errorf("limits %v", got)
		}
		before := w.now.Load()
		for _, most := range []int32{3, 2} {
			if _, err := PutLimit(t.Context(), w.bucket, "shop", &yardv1.Limit{Name: "acme", MaxConcurrency: most}); err != nil {
				t.Fatal(err)
			}
		}
		w.reported("a new limit and its change", "shop", "shop")
		if l, ok := w.Limit("shop", "acme"); !ok || l.MaxConcurrency != 2 {
			t.Errorf("%v %v", l, ok)
		}
		if got := names(w.Limits("shop")); !slices.Equal(got, []string{"acme", "old"}) || len(w.Limits("bank")) != 0 {
			t.Errorf("limits %v", got)
		}
		if len(before.limits["shop"]) != 1 {
			t.Errorf("what was read has changed: %v", before.limits)
		}
		if _, err := DeleteLimit(t.Context(), w.bucket, "shop", "old", 0); err != nil {
			t.Fatal(err)
		}
		w.reported("a deleted limit", "shop")
		if _, ok := w.Limit("shop", "old"); ok {
			t.Error("a deleted limit is there")
		}
	})
}
