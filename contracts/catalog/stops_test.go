package catalog

import (
	"maps"
	"slices"
	"testing"

	"github.com/yardmaster-io/yardmaster/contracts/fault"
	"github.com/yardmaster-io/yardmaster/contracts/gen/yardv1"
	"github.com/yardmaster-io/yardmaster/contracts/topology"
)

// Pauses and drains come, change and go, each as a change of its domain, and neither is the other. What is over counts at 0 only.
func TestACatalogFollowsPausesAndDrains(t *testing.T) {
	fill := func(b *bucket) {
		b.set(topology.TasklistDrainKey("shop", "old"), []byte(`{"by":"ann","since_ms":5,"until_ms":9}`), false)
		b.set(topology.TypeDrainKey("shop", "broken"), []byte(`{`), false)
		b.set(topology.TypePauseKey("shop", "pay.out"), []byte(`{"by":"bob","since_ms":5}`), false)
	}
	watching(t, fill, func(w *watched) {
		if p := w.DrainedTasklist("shop", "old"); p.GetBy() != "ann" || w.PausedTasklist("shop", "old") != nil || w.DrainedTasklist("bank", "old") != nil {
			t.Errorf("%v", p)
		}
		if p := w.PausedType("shop", "pay.out"); p.GetBy() != "bob" || w.DrainedType("shop", "pay.out") != nil {
			t.Errorf("%v", p)
		}
		before := w.now.Load()
		for _, key := range []string{topology.TypeDrainKey("shop", "pay.out"), topology.TasklistDrainKey("shop", "mail"), topology.TasklistPauseKey("shop", "mail"), topology.GroupPauseKey("shop", "acme"), topology.GroupDrainKey("shop", "a.b")} {
			if err := PutPause(t.Context(), w.bucket, key, &yardv1.Pause{SinceMs: 7}); err != nil {
				t.Fatal(err)
			}
		}
		w.reported("three drains and two pauses", "shop", "shop", "shop", "shop", "shop")
		for at, want := range map[int64][]string{0: {"mail", "old"}, 8: {"mail", "old"}, 9: {"mail"}} {
			all := w.Drains("shop", at)
			if got := slices.Sorted(maps.Keys(all.Tasklists)); !slices.Equal(got, want) || len(all.Types) != 1 || all.Types["pay.out"] == nil || all.Groups["a.b"] == nil || all.Len() != len(want)+2 {
				t.Errorf("at %d: %v %v", at, got, all)
			}
		}
		if all := w.Pauses("shop", 9); len(all.Tasklists) != 1 || all.Tasklists["mail"] == nil || len(all.Types) != 1 || len(all.Groups) != 1 || all.Groups["acme"] == nil {
			t.Errorf("%v", all)
		}
		if w.PausedGroup("shop", "acme") == nil || w.DrainedGroup("shop", "acme") != nil || w.DrainedGroup("shop", "a.b") == nil || w.PausedGroup("bank", "acme") != nil {
			t.Error("a group is not what it is")
		}
		if len(before.drains.lists["shop"]) != 1 || len(before.drains.types["shop"]) != 0 || len(before.drains.groups["shop"]) != 0 {
			t.Errorf("what was read has changed: %v", before.drains)
		}
		if ends := w.PauseEnds(1); len(ends) != 0 {
			t.Errorf("the end of a drain concerns no shard: %v", ends)
		}
		if p, err := DeletePause(t.Context(), w.bucket, topology.TasklistDrainKey("shop", "mail")); err != nil || p.SinceMs != 7 {
			t.Fatal(p, err)
		}
		w.reported("a drain that has ended", "shop")
		if w.DrainedTasklist("shop", "mail") != nil || w.PausedTasklist("shop", "mail") == nil {
			t.Error("the drain is there, or the pause is not")
		}
		_, err := DeletePause(t.Context(), w.bucket, topology.TasklistDrainKey("shop", "mail"))
		refused(t, "what has ended", err, fault.NotFound, "")
	})
}

// A domain goes with its pauses and drains, and with no other's.
func TestADomainTakesItsPausesAndDrainsAlong(t *testing.T) {
	b, ctx := newBucket(), t.Context()
	keysOf := func(domain string) []string {
		return []string{
			topology.TasklistPauseKey(domain, "mail"), topology.TypePauseKey(domain, "pay"),
			topology.TasklistDrainKey(domain, "mail"), topology.TypeDrainKey(domain, "pay.out"),
			topology.GroupPauseKey(domain, "acme"), topology.GroupDrainKey(domain, "a.b"),
		}
	}
	for _, domain := range []string{"shop", "shop2"} {
		if _, err := PutDomain(ctx, b, &yardv1.Domain{Name: domain}); err != nil {
			t.Fatal(err)
		}
		for _, key := range keysOf(domain) {
			if err := PutPause(ctx, b, key, &yardv1.Pause{SinceMs: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := DeleteDomain(ctx, b, "shop", 0); err != nil {
		t.Fatal(err)
	}
	for domain, there := range map[string]bool{"shop": false, "shop2": true} {
		for _, key := range keysOf(domain) {
			if b.entries[key].gone == there {
				t.Errorf("%s is there: %v", key, !there)
			}
		}
	}
}

// A pause in force is not deleted as one that is over, whatever a frontend believed of it a moment ago.
func TestOnlyWhatIsOverIsDeletedAsOver(t *testing.T) {
	b, ctx, key := newBucket(), t.Context(), topology.TasklistPauseKey("shop", "mail")
	for _, c := range []struct {
		until int64
		stays bool
	}{{0, true}, {10, true}, {9, false}} {
		if err := PutPause(ctx, b, key, &yardv1.Pause{SinceMs: 1, UntilMs: c.until}); err != nil {
			t.Fatal(err)
		}
		if err := DeletePauseOver(ctx, b, key, 9); err != nil || b.entries[key].gone == c.stays {
			t.Errorf("until %d: there %v, want %v: %v", c.until, !b.entries[key].gone, c.stays, err)
		}
	}
	if err := DeletePauseOver(ctx, b, key, 9); err != nil {
		t.Errorf("what is gone: %v", err)
	}
}
